"""Errors: what an operation raises becomes a status by the one table; the unknown becomes INTERNAL."""

from __future__ import annotations

from typing import Any

import grpc
import structlog
from google.protobuf.message import Message

from memory_api.interceptors.unary import UnaryBehavior, UnaryInterceptor
from memory_api.status import internal, status_of

_log = structlog.get_logger()


class Failures(UnaryInterceptor):
    """Sends the status of what went wrong. Logs only what is unknown, by type and place (I13)."""

    async def around(
        self,
        method: str,
        request: Message,
        context: grpc.aio.ServicerContext[Any, Any],
        inner: UnaryBehavior,
    ) -> Message:
        try:
            return await inner(request, context)
        except grpc.aio.AbortError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary: nothing of ours may reach gRPC's own handler
            status = status_of(error)
            if status is None:
                _log.error("unexpected error", method=method, exc_info=error)
                status = internal()
        await context.abort(status.code, status.text, status.trailing_metadata)
