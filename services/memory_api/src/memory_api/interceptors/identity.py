"""Identity: two signed tokens to a principal, and whether it may call this RPC at all."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import grpc
from authz import (
    AuthenticationFailed,
    IdentityVerifier,
    Principal,
    Service,
    decide,
    needs_session,
)
from google.protobuf.message import Message

from memory_api.interceptors.unary import UnaryBehavior, UnaryInterceptor

_caller: ContextVar[Principal | Service] = ContextVar("caller")

_BEARER = "bearer "


def current_principal() -> Principal:
    """The verified caller of the running RPC with its session. Raises ``LookupError`` where there is none."""
    caller = _caller.get()
    if isinstance(caller, Principal):
        return caller
    raise LookupError("the running RPC has no session")


def current_service() -> Service:
    """The verified workload of the running RPC. Raises ``LookupError`` outside one."""
    caller = _caller.get()
    return caller.service if isinstance(caller, Principal) else caller


class Identity(UnaryInterceptor):
    """Verifies ``authorization`` and ``openbot-session`` and consults the table of RPCs.

    A header given twice counts as not given: which of the two was meant is the caller's secret. A method
    that goes without a session looks at none.
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
        name = method.rpartition("/")[2]
        authorization = _only(context, "authorization")
        if authorization is not None and authorization[: len(_BEARER)].lower() == _BEARER:
            authorization = authorization[len(_BEARER) :]
        else:
            authorization = None
        session = _only(context, "openbot-session")
        try:
            caller = self._verified(name, authorization, session)
        except AuthenticationFailed:
            # A key may be newer than what its issuer published when it was asked last.
            if not await self._verifier.refreshed():
                raise
            caller = self._verified(name, authorization, session)
        decide(name, caller)
        token = _caller.set(caller)
        try:
            return await inner(request, context)
        finally:
            _caller.reset(token)

    def _verified(self, method: str, authorization: str | None, session: str | None) -> Principal | Service:
        if needs_session(method):
            return self._verifier.verify(authorization, session)
        return self._verifier.verify_service(authorization)


def _only(context: grpc.aio.ServicerContext[Any, Any], key: str) -> str | None:
    values = [value for name, value in context.invocation_metadata() or () if name == key]
    return values[0] if len(values) == 1 and isinstance(values[0], str) else None
