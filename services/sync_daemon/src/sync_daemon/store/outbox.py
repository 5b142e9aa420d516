"""The outbox: leasing a row, and the ways a lease ends (docs/outbox_states.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from uuid import UUID

from tenant_db import Connection, TenantDatabase, load_statements

_SQL = load_statements(Path(__file__).with_name("outbox.sql"))


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to converge one memory, until it expires. ``attempts`` counts this one."""

    memory_id: UUID
    company: str
    user: str
    lease_id: UUID
    attempts: int


class Held(Enum):
    """What became of a lease by the time its work is done."""

    CURRENT = "nothing changed meanwhile"
    CHANGED = "the memory changed meanwhile"
    LOST = "the lease ran out and the row is another's, or gone"


class OutboxStore:
    """Rows of all tenants; they hold no content (I9)."""

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def lease(self, lease_s: float) -> Lease | None:
        """The longest due row, leased for ``lease_s`` seconds; None if nothing is due."""
        async with self._database.crossing_tenants() as connection:
            row = await _SQL.lease(connection, lease_s=lease_s)
        if row is None:
            return None
        return Lease(
            memory_id=row["memory_id"],
            company=row["company_id"],
            user=row["user_id"],
            lease_id=row["lease_id"],
            attempts=row["attempts"],
        )

    async def seconds_until_due(self) -> float | None:
        """Seconds until a row can be leased (negative: already), None if none waits."""
        async with self._database.crossing_tenants() as connection:
            seconds: float | None = await _SQL.seconds_until_due(connection)
            return seconds


async def lock_held(connection: Connection, lease: Lease) -> Held:
    """Locks the leased row and says whether it is still the holder's."""
    current = await _SQL.lock_held(connection, memory_id=lease.memory_id, lease_id=lease.lease_id)
    if current is None:
        return Held.LOST
    return Held.CURRENT if current else Held.CHANGED


async def remove(connection: Connection, lease: Lease) -> None:
    """The index agrees with the record: nothing is left to do."""
    await _SQL.remove(connection, memory_id=lease.memory_id)


async def make_ready(connection: Connection, lease: Lease) -> None:
    """The memory changed under the lease: due again at once, with a clean count."""
    await _SQL.release(connection, memory_id=lease.memory_id, state="ready", reason=None, delay_s=0.0)


async def make_retry(connection: Connection, lease: Lease, reason: str, delay_s: float) -> None:
    """Due again in ``delay_s`` seconds."""
    await _SQL.release(connection, memory_id=lease.memory_id, state="retry", reason=reason, delay_s=delay_s)


async def hold(connection: Connection, lease: Lease, seconds: float) -> None:
    """Nobody may work on the memory for ``seconds``, or until the lease would have ended anyway."""
    await _SQL.hold(connection, memory_id=lease.memory_id, seconds=seconds)


async def make_dead(connection: Connection, lease: Lease, reason: str) -> None:
    """Given up until an operator requeues it or the memory changes."""
    await _SQL.release(connection, memory_id=lease.memory_id, state="dead", reason=reason, delay_s=0.0)


async def enqueue_again(connection: Connection, lease: Lease) -> None:
    """After a lost lease: what was written may have come too late, so the memory is due once more."""
    await _SQL.enqueue(connection, memory_ids=[lease.memory_id])
