"""Stopping use, and reading how far clearing has come."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from uuid import UUID

from tenant_db import Connection, TenantDatabase, collect, load_statements

from memory_api.records import Asker, Clearance, Forget, ForgetCause, ForgetState

_SQL = load_statements(Path(__file__).with_name("forgets.sql"))


class ForgetStore:
    """Forgets of one person at a time."""

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def lock_usable(
        self, connection: Connection, asker: Asker, memory_ids: Collection[UUID]
    ) -> Mapping[UUID, int]:
        """Id to version of the memories among these that the session may use, locked."""
        rows = await collect(
            _SQL.lock_usable(
                connection, bot=asker.bot, sources=sorted(asker.sources), memory_ids=list(memory_ids)
            )
        )
        return {row["memory_id"]: row["version"] for row in rows}

    async def stop_use(
        self, connection: Connection, asker: Asker, *, forget_id: UUID, memory_ids: Collection[UUID]
    ) -> None:
        """Erases the words and writes forget, items, index entries and outbox rows together (I6)."""
        ids = list(memory_ids)
        tenant = {"company": asker.company, "person": asker.user}
        await _SQL.insert_forget(connection, forget_id=forget_id, **tenant)
        await _SQL.insert_items(connection, forget_id=forget_id, memory_ids=ids, **tenant)
        await _SQL.erase(connection, memory_ids=ids)
        # Outbox before index entries, as a daemon that settles its lease: no waiting in a circle.
        await _SQL.enqueue(connection, memory_ids=ids)
        await _SQL.await_deletion(connection, memory_ids=ids)

    async def item_ids(self, connection: Connection, forget_id: UUID) -> frozenset[UUID]:
        """The memories that a forget names."""
        return frozenset(
            row["memory_id"] for row in await collect(_SQL.item_ids(connection, forget_id=forget_id))
        )

    async def read(
        self, asker: Asker, forget_id: UUID, connection: Connection | None = None
    ) -> Forget | None:
        """A forget of the asker's person, None if there is none that the asker may know of."""
        if connection is None:
            async with self._database.of(asker.company, asker.user) as own:
                return await self.read(asker, forget_id, own)
        row = await _SQL.read_forget(connection, bot=asker.bot, forget_id=forget_id)
        if row is None:
            return None
        clearances = await collect(_SQL.clearances(connection, forget_id=forget_id))
        return Forget(
            forget_id=row["forget_id"],
            state=ForgetState(row["state"]),
            cause=ForgetCause(row["cause"]),
            stopped_use_at=row["stopped_use_at"],
            cleared_at=row["cleared_at"],
            memory_count=row["memory_count"],
            clearances=tuple(
                Clearance(
                    domain=each["domain"],
                    cleared_count=each["cleared_count"],
                    probed_at=each["probed_at"],
                    pending_reason=each["pending_reason"],
                )
                for each in clearances
            ),
        )
