"""Deadline and number: every call is bounded, and so is how many run at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import grpc
from google.protobuf.message import Message

from memory_api.interceptors.unary import UnaryBehavior, UnaryInterceptor
from memory_api.status import deadline_exceeded, too_many_calls


class Limits(UnaryInterceptor):
    """Ends a call at the caller's deadline, or after ``max_call_s`` where it set none or a later one. Methods
    (``/package.Service/Method``) in ``max_call_s_of`` have limits of their own.

    Runs at most ``max_concurrent_calls``. gRPC's own limit would count health checks too, and a
    service that is merely busy would be killed for not being alive.
    """

    def __init__(
        self,
        *,
        max_call_s: float,
        max_concurrent_calls: int,
        max_call_s_of: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self._max_call_s = max_call_s
        self._max_call_s_of = max_call_s_of
        self._free = max_concurrent_calls

    async def around(
        self,
        method: str,
        request: Message,
        context: grpc.aio.ServicerContext[Any, Any],
        inner: UnaryBehavior,
    ) -> Message:
        if self._free == 0:
            busy = too_many_calls()
            await context.abort(busy.code, busy.text, busy.trailing_metadata)
        left_s, most_s = context.time_remaining(), self._max_call_s_of.get(method, self._max_call_s)
        self._free -= 1
        try:
            async with asyncio.timeout(most_s if left_s is None else min(left_s, most_s)):
                return await inner(request, context)
        except TimeoutError:
            status = deadline_exceeded()
            await context.abort(status.code, status.text, status.trailing_metadata)
        finally:
            self._free += 1
