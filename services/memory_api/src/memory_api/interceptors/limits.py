"""Deadline and size: every call ends in bounded time and is of bounded size."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from google.protobuf.message import Message

from memory_api.interceptors.unary import UnaryBehavior, UnaryInterceptor
from memory_api.status import deadline_exceeded

#: The largest request, ForgetMemories with 1,000 names and etags, is below 80 KiB.
MAX_REQUEST_BYTES = 256 * 1024

#: Two tokens of at most 8 KiB each, and what tracing adds.
MAX_METADATA_BYTES = 24 * 1024

#: Channel arguments that let gRPC refuse oversized calls before they are read.
SIZE_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
)


class Limits(UnaryInterceptor):
    """Ends a call at the caller's deadline, or after ``max_call_s`` where it set none or a later one."""

    def __init__(self, *, max_call_s: float) -> None:
        self._max_call_s = max_call_s

    async def around(
        self,
        method: str,
        request: Message,
        context: grpc.aio.ServicerContext[Any, Any],
        inner: UnaryBehavior,
    ) -> Message:
        left_s = context.time_remaining()
        try:
            async with asyncio.timeout(self._max_call_s if left_s is None else min(left_s, self._max_call_s)):
                return await inner(request, context)
        except TimeoutError:
            status = deadline_exceeded()
            await context.abort(status.code, status.text, status.trailing_metadata)
