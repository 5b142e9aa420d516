"""Asking the index whether it still holds anything of a forgotten memory.

Banks are asked once a round, however many of their memories are probed. A round begins after the
deletions that it is about, so its answers are younger than they.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hindsight_index import HindsightIndex

# Any other status, also one that nobody knows yet, may still do something.
_FINISHED = frozenset({"completed", "failed", "cancelled"})

# Task payloads of these operations hold identifiers only (shown by the contract tests).
_CONTENT_FREE_OPERATIONS = frozenset({"graph_maintenance", "vector_index_maintenance"})
_IDENTIFIER_KEYS = frozenset({"type", "bank_id", "operation_id"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What was observed, in counts and flags, and the reason why it is not enough; None if it is."""

    reason: str | None
    observed: Mapping[str, int | bool]


class IndexProbe:
    """One round of questions. Every method raises ``HindsightError`` if the index cannot be asked."""

    #: Set by whoever found that the index does not answer at all.
    silent = False

    def __init__(self, index: HindsightIndex) -> None:
        self._index = index
        self._exists: dict[str, bool] = {}
        self._observations: dict[str, int] = {}
        self._operations: dict[str, Answer] = {}

    async def active(self, bank: str, document_id: str) -> Answer:
        """The document, its units, and observations, which banks of ours never make."""
        if not await self._bank_exists(bank):
            return _BANK_MISSING
        document = await self._index.document(bank, document_id)
        units = await self._index.count_units(bank, document_id)
        if bank not in self._observations:
            self._observations[bank] = await self._index.count_observations(bank)
        observations = self._observations[bank]
        observed: dict[str, int | bool] = {
            "bank_exists": True,
            "document_present": document is not None,
            "units": units,
            "observations": observations,
        }
        if document is not None:
            return Answer("DOCUMENT_PRESENT", observed)
        if units:
            return Answer("UNITS_PRESENT", observed)
        return Answer("OBSERVATIONS_PRESENT" if observations else None, observed)

    async def operations(self, bank: str) -> Answer:
        """Operations that still run, and finished ones whose payload is more than identifiers."""
        if bank not in self._operations:
            self._operations[bank] = await self._ask_operations(bank)
        return self._operations[bank]

    async def _ask_operations(self, bank: str) -> Answer:
        if not await self._bank_exists(bank):
            return _BANK_MISSING
        operations = await self._index.operations(bank)
        running = sum(operation.status not in _FINISHED for operation in operations)
        holding = 0
        for operation in operations:
            if operation.type not in _CONTENT_FREE_OPERATIONS:
                keys = await self._index.operation_payload_keys(bank, operation.id)
                holding += keys is not None and not keys <= _IDENTIFIER_KEYS
        observed = {"operations": len(operations), "running": running, "holding_payload": holding}
        if running:
            return Answer("OPERATION_RUNNING", observed)
        return Answer("OPERATION_PAYLOAD_RETAINED" if holding else None, observed)

    async def _bank_exists(self, bank: str) -> bool:
        if bank not in self._exists:
            self._exists[bank] = await self._index.bank_exists(bank)
        return self._exists[bank]


# An index that lost the bank, or is another one, proves nothing about the first.
_BANK_MISSING = Answer("BANK_MISSING", {"bank_exists": False})
