"""How many bytes a call may bring."""

from __future__ import annotations

_KIB = 1024

#: The largest request but those below, ForgetMemories with 1,000 names and etags, is below 80 KiB.
MAX_REQUEST_BYTES = 256 * _KIB

APPLY_AUTHORITY = "/openbot.memory.v1.AuthorityService/ApplyAuthority"

#: Methods with a limit of their own.
_MAX_REQUEST_BYTES_OF = {APPLY_AUTHORITY: 4096 * _KIB}  # a company's whole authority

#: Two tokens of at most 8 KiB each, and what tracing adds.
_MAX_METADATA_BYTES = 24 * _KIB

#: Channel arguments that let gRPC refuse what is too large for every method before it is read. A compressed
#: request counts as what it unpacks to.
SIZE_OPTIONS = (
    ("grpc.max_receive_message_length", max(MAX_REQUEST_BYTES, *_MAX_REQUEST_BYTES_OF.values())),
    ("grpc.max_metadata_size", _MAX_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", _MAX_METADATA_BYTES),
)


def max_request_bytes(method: str) -> int:
    """The largest serialised request of ``method``, a full name such as ``/package.Service/Method``."""
    return _MAX_REQUEST_BYTES_OF.get(method, MAX_REQUEST_BYTES)
