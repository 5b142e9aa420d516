"""Callers: none takes what the others need, neither a workload nor a company inside one."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.message import Message

from memory_api.allowance import Allowance, Allowances
from memory_api.interceptors.identity import current_principal, current_service
from memory_api.interceptors.unary import TooLarge, UnaryBehavior, UnaryInterceptor
from memory_api.status import caller_too_fast, caller_too_many_calls, request_too_large


def caller() -> tuple[str, str]:
    """The verified workload of the running RPC, and the company of its session, "" without one."""
    workload = current_service().workload_id
    try:
        return workload, current_principal().company
    except LookupError:
        return workload, ""


class Callers(UnaryInterceptor):
    """Bounds each workload, and inside it each company, in calls at once, calls a second and bytes.

    A call that is refused for number or pace takes nothing from either, or noise of one company would use
    up its workload; one that is too large counts. What is counted is this process's own.
    """

    def __init__(self, *, workload: Allowance, company: Allowance) -> None:
        self._workloads: Allowances[tuple[str, str]] = Allowances(workload)
        self._companies: Allowances[tuple[str, str]] = Allowances(company)

    async def around(
        self,
        method: str,
        request: Message,
        context: grpc.aio.ServicerContext[Any, Any],
        inner: UnaryBehavior,
    ) -> Message:
        workload, company = caller()
        taken = [(self._workloads, (workload, ""))]
        if company:
            taken.append((self._companies, (workload, company)))
        if not all(tier.has_room(key) for tier, key in taken):
            status = caller_too_many_calls()
            await context.abort(status.code, status.text, status.trailing_metadata)
        if wait := max(tier.wait(key) for tier, key in taken):
            status = caller_too_fast(wait)
            await context.abort(status.code, status.text, status.trailing_metadata)
        for tier, key in taken:
            tier.take(key)
        try:
            if isinstance(request, TooLarge):
                status = request_too_large(request.max_bytes)
                await context.abort(status.code, status.text, status.trailing_metadata)
            return await inner(request, context)
        finally:
            for tier, key in taken:
                tier.give_back(key)
