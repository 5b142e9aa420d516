"""Recall: the index ranks, PostgreSQL answers."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from memory_api.fusion import reciprocal_rank_fusion
from memory_api.index_arm import IndexArm
from memory_api.records import Asker, Memory, Recalled, ServedBy
from memory_api.store.memories import MemoryStore
from memory_api.store.recall import RecallStore

DEFAULT_LIMIT = 10

# Words are matched for more than is asked for: both arms vote on the order.
_OVERFETCH = 4


async def recall(
    store: RecallStore,
    memories: MemoryStore,
    index: IndexArm,
    asker: Asker,
    *,
    query: str,
    limit: int,
    time_left_s: float,
) -> Recalled:
    """At most ``limit`` (0 means 10) active memories that ``asker`` may use now, best first.

    The texts are read last, under the whole authorisation of that moment (I2, I3), so neither a
    stale index nor a permission withdrawn while it was asked can surface anything. Banks that did
    not answer are answered for by shared words, and so are all where stale hits took the place of
    memories that are still there (I10).
    """
    limit = limit or DEFAULT_LIMIT
    usable = await store.usable_banks(asker)
    banks = usable.banks
    answer = await index.ask(banks, query, time_left_s=time_left_s)

    async def read_fused(unanswered: Collection[str]) -> dict[UUID, Memory]:
        lexical = await store.lexical_matches(
            asker,
            query,
            # What is indexed while the index answers is in neither answer otherwise.
            asked_at=usable.read_at,
            unanswered_banks=unanswered,
            limit=limit * _OVERFETCH,
        )
        ranked = reciprocal_rank_fusion([answer.memory_ids, lexical])
        readable = await memories.read(asker, ranked)
        return {
            each: readable[each] for each in ranked if each in readable and readable[each].text is not None
        }

    found = await read_fused(answer.unanswered.keys())
    if len(found) < limit and not found.keys() >= set(answer.memory_ids):
        found = await read_fused(banks)
    return Recalled(
        memories=tuple(found.values())[:limit],
        served_by=_served_by(len(banks), len(answer.unanswered)),
        degraded_reason=min(answer.unanswered.values(), default=None),
    )


def _served_by(asked: int, unanswered: int) -> ServedBy:
    if unanswered == 0:
        return ServedBy.INDEX
    return ServedBy.LEXICAL if unanswered == asked else ServedBy.MIXED
