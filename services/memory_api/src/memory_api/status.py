"""The one table from what went wrong to what a client sees.

Status codes follow AIP-193; details are ``google.rpc`` messages: ErrorInfo always, BadRequest for
fields, RetryInfo where the same request may be sent again. docs/errors.md lists the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

import grpc
from authz import AuthenticationFailed, PermissionDenied
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message as ProtobufMessage
from google.rpc import error_details_pb2, status_pb2
from tenant_db import DatabaseConflict, DatabaseUnavailable

from memory_api import errors

DOMAIN = "memory.openbot"
_DETAILS_KEY = "grpc-status-details-bin"
_SOON = timedelta(milliseconds=200)

#: Error class to status; the first class that matches decides.
_CODES: tuple[tuple[type[Exception], grpc.StatusCode], ...] = (
    (errors.InvalidRequest, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.NotFound, grpc.StatusCode.NOT_FOUND),
    (errors.RequestIdReused, grpc.StatusCode.ALREADY_EXISTS),
    (errors.RevisionReused, grpc.StatusCode.ALREADY_EXISTS),
    (errors.FailedPrecondition, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.EtagMismatch, grpc.StatusCode.ABORTED),
    (errors.StoreConflict, grpc.StatusCode.ABORTED),
    (errors.StoreUnavailable, grpc.StatusCode.UNAVAILABLE),
    (AuthenticationFailed, grpc.StatusCode.UNAUTHENTICATED),
    (PermissionDenied, grpc.StatusCode.PERMISSION_DENIED),
)


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """A status ready to be sent: code, fixed text and trailing metadata with the details."""

    code: grpc.StatusCode
    text: str
    trailing_metadata: tuple[tuple[str, bytes], ...]


def status_of(error: Exception) -> ClientStatus | None:
    """The status for ``error``, or None if it is unknown and must become :func:`internal`."""
    if isinstance(error, DatabaseConflict):
        error = errors.StoreConflict()
    elif isinstance(error, DatabaseUnavailable):
        error = errors.StoreUnavailable()
    for kind, code in _CODES:
        if isinstance(error, kind):
            return _status(
                code,
                str(error),
                _reason(error),
                violations=error.violations if isinstance(error, errors.InvalidRequest) else (),
                retry_after=error.retry_after if isinstance(error, errors.Retryable) else None,
                metadata=error.metadata if isinstance(error, errors.FailedPrecondition) else {},
            )
    return None


def internal() -> ClientStatus:
    """For everything unknown: a fixed text; the log has the type and the place."""
    return _status(grpc.StatusCode.INTERNAL, "Internal error.", "INTERNAL")


def deadline_exceeded() -> ClientStatus:
    """The caller's deadline, or our limit where the caller set none or a longer one, has passed."""
    return _status(grpc.StatusCode.DEADLINE_EXCEEDED, "The deadline has passed.", "DEADLINE_EXCEEDED")


def too_many_calls() -> ClientStatus:
    """As many calls as may run are running; the same call may be sent again."""
    return _status(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "Too many calls are running.",
        "TOO_MANY_CALLS",
        retry_after=_SOON,
    )


def caller_too_many_calls() -> ClientStatus:
    """As many calls of this caller as may run are running. When one will end is unknown."""
    return _status(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "Too many calls of this caller are running.",
        "CALLER_TOO_MANY_CALLS",
        retry_after=_SOON,
    )


def caller_too_fast(wait: timedelta) -> ClientStatus:
    """This caller's calls come faster than they may; the next one may after ``wait``."""
    return _status(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "This caller sends calls too fast.",
        "CALLER_TOO_FAST",
        retry_after=wait,
    )


def request_too_large(max_bytes: int) -> ClientStatus:
    """The request is larger than its method takes; it was not read."""
    return _status(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "The request is too large for this method.",
        "REQUEST_TOO_LARGE",
        metadata={"max_bytes": str(max_bytes)},
    )


def _reason(error: Exception) -> str:
    if isinstance(error, errors.DomainError):
        return error.reason
    if isinstance(error, AuthenticationFailed | PermissionDenied):
        return error.reason.name
    raise TypeError(type(error))


def _status(
    code: grpc.StatusCode,
    text: str,
    reason: str,
    *,
    violations: tuple[tuple[str, str], ...] = (),
    retry_after: timedelta | None = None,
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> ClientStatus:
    details: list[ProtobufMessage] = [
        error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=metadata)
    ]
    if violations:
        details.append(
            error_details_pb2.BadRequest(
                field_violations=[
                    error_details_pb2.BadRequest.FieldViolation(field=field, description=rule)
                    for field, rule in violations
                ]
            )
        )
    if retry_after is not None:
        delay = duration_pb2.Duration()
        delay.FromTimedelta(retry_after)
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    number: int = code.value[0]
    packed = status_pb2.Status(code=number, message=text, details=[_packed(detail) for detail in details])
    return ClientStatus(code, text, ((_DETAILS_KEY, packed.SerializeToString()),))


def _packed(detail: ProtobufMessage) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed
