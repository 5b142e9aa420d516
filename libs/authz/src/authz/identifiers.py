"""The two spellings of a name that a token may carry.

Both are plain ASCII, so a name can be logged, compared and stored as it is: no NUL, no white space, no
bidirectional controls, no look-alike that Unicode normalisation would merge.
"""

import re
from typing import TypeGuard

_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_TRUST_DOMAIN = r"[a-z0-9._-]{1,255}"
_PATH_SEGMENT = r"/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]+"
_SPIFFE_ID = re.compile(rf"spiffe://{_TRUST_DOMAIN}(?:{_PATH_SEGMENT})+")
_SPIFFE_ID_BYTES = 2048


def is_identifier(value: object) -> TypeGuard[str]:
    """Whether ``value`` can name a user, company, bot or source: 1 to 128 characters."""
    return isinstance(value, str) and _IDENTIFIER.fullmatch(value) is not None


def is_spiffe_id(value: object) -> TypeGuard[str]:
    """Whether ``value`` names a workload, ``spiffe://trust-domain/path`` (SPIFFE-ID, section 2).

    No user info, port, query, fragment, percent-encoding, empty or dot segment and no trailing slash; at
    most 2048 bytes. A trust domain alone names no workload and is refused.
    """
    return (
        isinstance(value, str) and len(value) <= _SPIFFE_ID_BYTES and _SPIFFE_ID.fullmatch(value) is not None
    )
