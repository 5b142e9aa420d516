"""Identity: two signed tokens to a principal, and whether it may call this RPC at all."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import grpc
from authz import IdentityVerifier, Principal, decide
from google.protobuf.message import Message

from memory_api.interceptors.unary import UnaryBehavior, UnaryInterceptor

_principal: ContextVar[Principal] = ContextVar("principal")

_BEARER = "bearer "


def current_principal() -> Principal:
    """The verified caller of the running RPC. Raises ``LookupError`` outside one."""
    return _principal.get()


class Identity(UnaryInterceptor):
    """Verifies ``authorization`` and ``openbot-session`` and consults the table of RPCs.

    A header given twice counts as not given: which of the two was meant is the caller's secret.
    """

    def __init__(self, verifier: IdentityVerifier) -> None:
        self._verifier = verifier

    async def around(
        self,
        method: str,
        request: Message,
        context: grpc.aio.ServicerContext[Any, Any],
        inner: UnaryBehavior,
    ) -> Message:
        authorization = _only(context, "authorization")
        if authorization is not None and authorization[: len(_BEARER)].lower() == _BEARER:
            authorization = authorization[len(_BEARER) :]
        else:
            authorization = None
        principal = self._verifier.verify(authorization, _only(context, "openbot-session"))
        decide(method.rpartition("/")[2], principal)
        token = _principal.set(principal)
        try:
            return await inner(request, context)
        finally:
            _principal.reset(token)


def _only(context: grpc.aio.ServicerContext[Any, Any], key: str) -> str | None:
    values = [value for name, value in context.invocation_metadata() or () if name == key]
    return values[0] if len(values) == 1 and isinstance(values[0], str) else None
