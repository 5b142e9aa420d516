"""Asking the index: many banks at once, each under the same deadline, behind a circuit breaker.

Only ids, order and scores come back (I2). What a bank does not answer in time is named with a
reason, so that PostgreSQL can answer for it (I10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from uuid import UUID

from hindsight_index import (
    BankMissing,
    HindsightError,
    HindsightIndex,
    HindsightProtocolError,
    HindsightRefused,
    HindsightUnavailable,
    Hit,
)
from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

_LANES = 20

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, "INDEX_TIMEOUT"),
    (OpenedState, "INDEX_UNAVAILABLE"),
    (HindsightUnavailable, "INDEX_UNAVAILABLE"),
    (HindsightRefused, "INDEX_REFUSED"),
    (BankMissing, "INDEX_BANK_MISSING"),
    (HindsightProtocolError, "INDEX_PROTOCOL_ERROR"),
    (HindsightError, "INDEX_ERROR"),  # last: whatever else its package says went wrong
)


class _SaysNothing(TimeoutError):
    """The index had less time than it may take: the caller left less, or others were before it in line."""


@dataclass(frozen=True, slots=True)
class IndexAnswer:
    """Memory ids, best first over all banks, and the reason for each bank that gave none."""

    memory_ids: tuple[UUID, ...]
    unanswered: Mapping[str, str]


class IndexArm:
    """The index as recall sees it."""

    def __init__(
        self,
        index: HindsightIndex,
        *,
        timeout_s: float,
        breaker_threshold: int = 5,
        breaker_open_s: float = 5.0,
        max_tokens: int = 4096,
    ) -> None:
        self._index = index
        self._timeout_s = timeout_s
        self._max_tokens = max_tokens
        # As many at once as the client has connections; the rest stand in line here, where their
        # waiting does not count against the index.
        self._lanes = asyncio.Semaphore(_LANES)
        # Only silence and overload open the breaker. A refusal or a missing bank is an answer.
        self._breakers = AsyncCircuitBreakerFactory(
            default_threshold=breaker_threshold,
            default_ttl=breaker_open_s,
            exclude=[BankMissing, HindsightRefused, HindsightProtocolError],
        )

    async def ask(self, banks: Sequence[str], query: str, *, time_left_s: float) -> IndexAnswer:
        """Asks all ``banks`` in parallel for at most half of ``time_left_s``; never raises for the index."""
        timeout_s = min(self._timeout_s, time_left_s / 2)
        answers = await asyncio.gather(*(self._ask_one(bank, query, timeout_s) for bank in banks))
        hits: list[Hit] = []
        unanswered: dict[str, str] = {}
        for bank, answer in zip(banks, answers, strict=True):
            if isinstance(answer, str):
                unanswered[bank] = answer
            else:
                hits.extend(answer)
        # Across banks only the semantic score compares (DESIGN §8); Python's sort is stable.
        hits.sort(key=lambda hit: -(hit.semantic if hit.semantic is not None else -1.0))
        ids = (_memory_id(hit.document_id) for hit in hits)
        return IndexAnswer(tuple(dict.fromkeys(each for each in ids if each is not None)), unanswered)

    async def _ask_one(self, bank: str, query: str, timeout_s: float) -> Sequence[Hit] | str:
        try:
            breaker = await self._breakers.get_breaker("index")
            async with AsyncExitStack() as opinion:
                await opinion.enter_async_context(breaker)
                try:
                    return await self._recall(bank, query, timeout_s)
                except (_SaysNothing, asyncio.CancelledError):
                    # The breaker hears neither of a failure nor of a success.
                    opinion.pop_all()
                    raise
        except (TimeoutError, OpenedState, HindsightError) as error:
            return next(reason for kind, reason in _REASONS if isinstance(error, kind))

    async def _recall(self, bank: str, query: str, timeout_s: float) -> Sequence[Hit]:
        loop = asyncio.get_running_loop()
        asked_at = loop.time() + timeout_s
        try:
            async with asyncio.timeout(timeout_s), self._lanes:
                asked_at = loop.time()
                # The client's own limit only has to come later.
                return await self._index.recall(
                    bank, query, max_tokens=self._max_tokens, timeout_s=timeout_s + 1
                )
        except TimeoutError:
            if loop.time() - asked_at < self._timeout_s * 0.95:
                raise _SaysNothing from None
            raise


def _memory_id(document_id: str) -> UUID | None:
    try:
        return UUID(document_id)
    except ValueError:
        return None
