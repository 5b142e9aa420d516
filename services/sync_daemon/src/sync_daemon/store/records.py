"""The record behind an outbox row, and what is noted of the index beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from tenant_db import Connection, TenantDatabase, load_statements

from sync_daemon.store.outbox import Lease

_SQL = load_statements(Path(__file__).with_name("records.sql"))


@dataclass(frozen=True, slots=True)
class Record:
    """A memory as it is now. ``text`` is None once forgotten; ``bank_settings_version`` is None while
    the bank was never touched."""

    memory_id: UUID
    version: int
    text: str | None
    scope_id: UUID
    bank_id: str
    bank_settings_version: str | None


class RecordStore:
    """Records, one tenant at a time."""

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def read(self, lease: Lease) -> Record | None:
        """The record behind a lease at this moment."""
        async with self._database.of(lease.company, lease.user) as connection:
            row = await _SQL.read_record(connection, memory_id=lease.memory_id)
        if row is None:
            return None
        return Record(
            memory_id=lease.memory_id,
            version=row["version"],
            text=row["text"],
            scope_id=row["scope_id"],
            bank_id=row["bank_id"],
            bank_settings_version=row["bank_settings_version"],
        )

    async def note_bank_settings(self, lease: Lease, record: Record, settings_version: str) -> None:
        """Notes what is being, or has been, applied to the record's bank."""
        async with self._database.of(lease.company, lease.user) as connection:
            await _SQL.set_bank_settings(
                connection, scope_id=record.scope_id, settings_version=settings_version
            )

    async def index_everything_again(self, lease: Lease, record: Record) -> None:
        """The index lost the record's bank: every memory of its scope is pending and due once more."""
        async with self._database.of(lease.company, lease.user) as connection:
            await _SQL.forget_indexed(connection, scope_id=record.scope_id, memory_id=record.memory_id)


async def mark_indexed(connection: Connection, memory_id: UUID, version: int) -> None:
    """The index was read back and holds ``version``; void if the memory has moved on."""
    await _SQL.mark_indexed(connection, memory_id=memory_id, version=version)


async def mark_deleted(connection: Connection, memory_id: UUID) -> None:
    """The index was asked and holds nothing; void unless the memory is forgotten."""
    await _SQL.mark_deleted(connection, memory_id=memory_id)


async def mark_failed(connection: Connection, memory_id: UUID, reason: str) -> None:
    """The daemon gave up, for ``reason``."""
    await _SQL.mark_failed(connection, memory_id=memory_id, reason=reason)
