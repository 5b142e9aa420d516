"""Validation: the rules written in the contract, checked before a servicer sees the request."""

from __future__ import annotations

from typing import Any

import grpc
import protovalidate
from google.protobuf.message import Message

from memory_api.errors import InvalidRequest
from memory_api.interceptors.unary import Malformed, UnaryBehavior, UnaryInterceptor

_MAX_VIOLATIONS = 20


class Validation(UnaryInterceptor):
    """Refuses a request that breaks a protovalidate rule, naming fields and rules, never values (I13)."""

    async def around(
        self,
        method: str,
        request: Message,
        context: grpc.aio.ServicerContext[Any, Any],
        inner: UnaryBehavior,
    ) -> Message:
        if isinstance(request, Malformed):
            raise InvalidRequest((("", "is not a message of this method"),))
        violations = protovalidate.collect_violations(request)
        if violations:
            raise InvalidRequest(
                tuple(
                    (_path(violation.proto), violation.proto.message)
                    for violation in violations[:_MAX_VIOLATIONS]
                )
            )
        return await inner(request, context)


def _path(violation: Any) -> str:
    path = ""
    for element in violation.field.elements if violation.field else ():
        path += f".{element.field_name}" if path else element.field_name
        if element.subscript is not None and element.subscript.field == "index":
            path += f"[{element.subscript.value}]"
    return path
