"""The one way our interceptors wrap an RPC."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc
from google.protobuf.message import DecodeError, Message

from memory_api.interceptors.sizes import max_request_bytes

UnaryBehavior = Callable[[Message, "grpc.aio.ServicerContext[Any, Any]"], Awaitable[Message]]

#: Our own methods; health and reflection are not ours and carry no memory.
OWN_PREFIX = "/openbot.memory.v1."


class Malformed(Message):
    """Stands for a request whose bytes are no message of its method. ``Validation`` refuses it, after
    the caller is known; gRPC itself would answer UNKNOWN, with the parser's words."""


class TooLarge(Message):
    """Stands for a request of more than ``max_bytes``, which was not parsed. ``Callers`` refuses it, after
    the caller is known; gRPC's own limit is one for all methods."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes


def _tolerant(deserialize: Callable[[bytes], Any] | None, max_bytes: int) -> Callable[[bytes], Any] | None:
    if deserialize is None:
        return None

    def parse(raw: bytes) -> Any:
        if len(raw) > max_bytes:
            return TooLarge(max_bytes)
        try:
            return deserialize(raw)
        except DecodeError:
            return Malformed()

    return parse


class UnaryInterceptor(grpc.aio.ServerInterceptor, ABC):
    """Wraps every unary RPC of ours in :meth:`around`; leaves other services alone."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler = await continuation(handler_call_details)
        method: str = handler_call_details.method
        if handler is None or not method.startswith(OWN_PREFIX):
            return handler
        if handler.unary_unary is None:
            raise TypeError("a streaming RPC needs interceptors of its own")
        # The stubs know the blocking server's handlers only; under grpc.aio they are coroutines.
        inner = cast(UnaryBehavior, handler.unary_unary)

        async def behave(request: Message, context: grpc.aio.ServicerContext[Any, Any]) -> Message:
            return await self.around(method, request, context, inner)

        return grpc.unary_unary_rpc_method_handler(
            behave,
            request_deserializer=_tolerant(handler.request_deserializer, max_request_bytes(method)),
            response_serializer=handler.response_serializer,
        )

    @abstractmethod
    async def around(
        self,
        method: str,
        request: Message,
        context: grpc.aio.ServicerContext[Any, Any],
        inner: UnaryBehavior,
    ) -> Message:
        """Calls ``inner(request, context)`` and returns its answer, or aborts."""
