"""Reading and recording memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from tenant_db import Connection, TenantDatabase, collect, load_statements

from memory_api.records import Asker, IndexState, Memory, Target

_SQL = load_statements(Path(__file__).with_name("memories.sql"))


@dataclass(frozen=True, slots=True)
class Scope:
    """What a scope is known by, within its company and person."""

    kind: str
    team: str | None
    source: str | None
    only_bot: str | None


class MemoryStore:
    """Memories of one person at a time."""

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def usable_scope(self, connection: Connection, asker: Asker, target: Target) -> Scope | None:
        """The scope this session may write to, None if it may not.

        The authority tables stay as they are until the running transaction ends (I6).
        """
        await _SQL.hold_authority(connection)
        row = await _SQL.usable_scope(
            connection,
            bot=asker.bot,
            sources=sorted(asker.sources),
            source=target.source,
            only_bot=target.this_bot_only,
        )
        return None if row is None else Scope(row["kind"], row["team_id"], row["source_id"], row["bot_id"])

    async def record(
        self,
        connection: Connection,
        asker: Asker,
        *,
        memory_id: UUID,
        scope: Scope,
        text: str,
    ) -> None:
        """Writes the memory, its index entry and its outbox row in the running transaction."""
        of_scope = {
            "kind": scope.kind,
            "team": scope.team,
            "source": scope.source,
            "only_bot": scope.only_bot,
        }
        tenant = {"company": asker.company, "person": asker.user}
        await _SQL.create_scope(connection, **tenant, **of_scope)
        scope_id = await _SQL.scope_id(connection, **of_scope)
        await _SQL.insert_memory(connection, memory_id=memory_id, scope_id=scope_id, content=text, **tenant)
        await _SQL.insert_index_entry(connection, memory_id=memory_id, **tenant)
        await _SQL.enqueue(connection, memory_ids=[memory_id])

    async def read(
        self, asker: Asker, memory_ids: Iterable[UUID], connection: Connection | None = None
    ) -> dict[UUID, Memory]:
        """The memories among ``memory_ids`` that ``asker`` may see now, forgotten ones included (I3)."""
        if connection is None:
            async with self._database.of(asker.company, asker.user) as own:
                return await self.read(asker, memory_ids, own)
        rows = await collect(
            _SQL.read_memories(
                connection, bot=asker.bot, sources=sorted(asker.sources), memory_ids=list(memory_ids)
            )
        )
        return {row["memory_id"]: _memory(row) for row in rows}

    async def list_active(
        self, asker: Asker, *, after: tuple[datetime, UUID] | None, limit: int
    ) -> Sequence[Memory]:
        """Active memories, newest first, at most ``limit``, after a (record time, id) position."""
        async with self._database.of(asker.company, asker.user) as connection:
            rows = await collect(
                _SQL.list_memories(
                    connection,
                    bot=asker.bot,
                    sources=sorted(asker.sources),
                    before_time=after[0] if after else None,
                    before_id=after[1] if after else None,
                    row_limit=limit,
                )
            )
            return [_memory(row) for row in rows]


def _memory(row: Any) -> Memory:
    return Memory(
        memory_id=row["memory_id"],
        version=row["version"],
        text=row["text"],
        team=row["team_id"],
        source=row["source_id"],
        only_bot=row["bot_id"],
        recorded_at=row["recorded_at"],
        index_state=IndexState(row["index_state"]),
        index_state_at=row["index_state_at"],
        index_failure_reason=row["failure_reason"],
    )
