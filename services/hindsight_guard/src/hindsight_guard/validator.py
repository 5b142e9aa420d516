"""Second line, inside Hindsight: every hook refuses unless the token allows it for this bank."""

from __future__ import annotations

import inspect
from typing import Any

from hindsight_api.extensions import (
    OperationValidationError,
    OperationValidatorExtension,
    ValidationResult,
)
from hindsight_api.extensions.base import Extension
from hindsight_api.extensions.operation_validator import (
    BankListContext,
    BankListResult,
    BankListScope,
    BankReadContext,
    BankWriteContext,
    CreateBankContext,
    PrecheckContext,
    RecallContext,
    ReflectContext,
    RetainContext,
    TagScopeContext,
)
from hindsight_api.models import RequestContext

from hindsight_guard.operations import OPERATIONS
from hindsight_guard.settings import verifier_from_environment
from hindsight_guard.tokens import TokenInvalid

_REFUSED = "not allowed"

# What Hindsight's own workers may do: the follow-up of a delete, nothing that writes text.
_INTERNAL = frozenset({"submit_async_graph_maintenance"})


class GuardOperationValidator(OperationValidatorExtension):
    """Denies by default: a hook that Hindsight asks and that is not answered here refuses, whichever
    version brought it. Only ``on_*``, which Hindsight calls when all is over, are left as they are.

    Whether a retain is asynchronous is not among what Hindsight tells its hooks: the door refuses
    those (asgi.py); here at least the worker's half of one is refused.
    """

    def __init__(self, config: dict[str, str]) -> None:
        super().__init__(config)
        self._verifier = verifier_from_environment()
        for name in set(dir(OperationValidatorExtension)) - set(dir(Extension)) - vars(type(self)).keys():
            if not name.startswith(("_", "on_")):
                known = getattr(type(self), name)
                setattr(self, name, _denied if inspect.iscoroutinefunction(known) else _denied_at_once)

    def _result(self, context: RequestContext, bank: str, *operations: str) -> ValidationResult:
        try:
            grant = self._verifier.verify(context.api_key)
        except TokenInvalid:
            return ValidationResult.reject(_REFUSED, 401)
        if any(grant.allows(bank, operation) for operation in operations):
            return ValidationResult.accept()
        return ValidationResult.reject(_REFUSED)

    async def precheck(self, ctx: PrecheckContext) -> ValidationResult:
        """Before a body is read."""
        operation = {"recall": "recall", "retain": "document.retain"}.get(ctx.operation.value)
        if operation is None:
            return ValidationResult.reject(_REFUSED)
        return self._result(ctx.request_context, ctx.bank_id, operation)

    async def validate_retain(self, ctx: RetainContext) -> ValidationResult:
        """Synchronous retains of ours; never a worker's, which would be an asynchronous one (I7)."""
        if ctx.request_context.internal or ctx.attachments:
            return ValidationResult.reject(_REFUSED)
        return self._result(ctx.request_context, ctx.bank_id, "document.retain")

    async def validate_recall(self, ctx: RecallContext) -> ValidationResult:
        """Recalls of ours."""
        return self._result(ctx.request_context, ctx.bank_id, "recall")

    async def validate_reflect(self, ctx: ReflectContext) -> ValidationResult:
        """Never: Hindsight ranks, it does not answer (I2)."""
        return ValidationResult.reject(_REFUSED)

    async def validate_create_bank(self, ctx: CreateBankContext) -> ValidationResult:
        """Only where it was asked for: a retain into an unknown bank does not make one."""
        return self._result(ctx.request_context, ctx.bank_id, "bank.create")

    async def validate_bank_read(self, ctx: BankReadContext) -> ValidationResult:
        """The reads that an allowed operation is made of."""
        return self._bank(ctx.request_context, ctx.bank_id, ctx.operation.value)

    async def validate_bank_write(self, ctx: BankWriteContext) -> ValidationResult:
        """The writes that an allowed operation is made of."""
        return self._bank(ctx.request_context, ctx.bank_id, ctx.operation.value)

    def _bank(self, context: RequestContext, bank: str, hook: str) -> ValidationResult:
        if context.internal:
            return ValidationResult.accept() if hook in _INTERNAL else ValidationResult.reject(_REFUSED)
        return self._result(context, bank, *(name for name, each in OPERATIONS.items() if hook in each.hooks))

    async def resolve_tag_scope(self, ctx: TagScopeContext) -> Any:
        """No narrowing by tags: tags never decide anything."""
        return None

    async def resolve_write_tag_scope(self, ctx: TagScopeContext) -> Any:
        """No narrowing by tags."""
        return None

    async def bank_list_scope(self, request_context: RequestContext) -> BankListScope | None:
        """Nobody lists banks."""
        return BankListScope(bank_ids=[])

    async def filter_bank_list(self, ctx: BankListContext) -> BankListResult:
        """Nobody lists banks."""
        return BankListResult(banks=[])

    async def filter_mcp_tools(
        self, bank_id: str, request_context: RequestContext, tools: frozenset[str]
    ) -> frozenset[str]:
        """MCP is closed."""
        return frozenset()


async def _denied(*_args: Any, **_kwargs: Any) -> Any:
    # Raised, not returned: what an unknown hook should return is unknown as well.
    raise OperationValidationError(_REFUSED)


def _denied_at_once(*_args: Any, **_kwargs: Any) -> Any:
    raise OperationValidationError(_REFUSED)
