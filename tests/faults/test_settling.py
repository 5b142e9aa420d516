"""How a lease ends: the table of docs/outbox_states.md, row by row and column by column."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Literal, cast

import pytest
from devstack.template import ClonedDatabase
from sync_daemon.converge import Converger
from sync_daemon.drain import Drain
from sync_daemon.outcomes import Deleted, Indexed, InDoubt, Outcome, Permanent, Transient
from sync_daemon.store.outbox import Lease, OutboxStore
from sync_daemon.wakeup import Wakeup
from tenant_db import TenantDatabase

from tests.faults.rows import Rows, rows_in

pytestmark = pytest.mark.postgres

Meanwhile = Literal["nothing", "changed", "lost"]


@pytest.fixture
async def rows(database: ClonedDatabase) -> AsyncIterator[Rows]:
    rows = await rows_in(database)
    yield rows
    await rows.connection.close()


@pytest.fixture
async def daemon(database: ClonedDatabase) -> AsyncIterator[TenantDatabase]:
    dsn = database.dsn("sync_daemon")
    async with TenantDatabase(dsn, role="sync_daemon", application_name="test") as opened:
        yield opened


class Scripted:
    """Ends as told, after something has happened."""

    def __init__(self, store: OutboxStore, rows: Rows, meanwhile: Meanwhile, outcome: Outcome) -> None:
        self._store = store
        self._rows = rows
        self._meanwhile = meanwhile
        self._outcome = outcome
        self.rescuer: Lease | None = None

    async def converge(self, lease: Lease, writes_until: datetime) -> Outcome:
        if self._meanwhile == "changed":
            await self._rows.enqueue(lease.memory_id)
        if self._meanwhile == "lost":
            await self._rows.connection.execute(
                "update openbot.outbox set lease_expires_at = now() - interval '1 second'"
            )
            self.rescuer = await self._store.lease(600)
        return self._outcome


async def settle(
    daemon: TenantDatabase, rows: Rows, meanwhile: Meanwhile, outcome: Outcome
) -> tuple[str | None, object]:
    """The state of the outbox row and of the index entry afterwards."""
    store = OutboxStore(daemon)
    scripted = Scripted(store, rows, meanwhile, outcome)
    drain = Drain(
        daemon,
        store,
        cast(Converger, scripted),
        Wakeup("unused"),
        workers=1,
        lease_s=600,
        write_margin_s=40,
        doubt_s=70,
        poll_s=1,
    )
    assert await drain.work_once()
    state = await rows.value("select state from openbot.outbox")
    if meanwhile == "lost":
        # Still the rescuer's, who will find that there was another need.
        row = await rows.connection.fetchrow("select * from openbot.outbox")
        assert row is not None
        assert scripted.rescuer is not None
        assert row["lease_id"] == scripted.rescuer.lease_id
        assert row["generation"] > row["lease_generation"]
    return cast(str | None, state), await rows.value("select state from openbot.index_entries")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Indexed(1), (None, "indexed")),
        (Transient("INDEX_UNAVAILABLE"), ("retry", "pending")),
        (InDoubt("INDEX_UNAVAILABLE"), ("leased", "pending")),
        (Permanent("INDEX_PROTOCOL_ERROR"), ("dead", "failed")),
    ],
    ids=["indexed", "transient", "in-doubt", "permanent"],
)
@pytest.mark.parametrize("meanwhile", ["nothing", "changed", "lost"])
async def test_how_a_lease_ends(
    daemon: TenantDatabase,
    rows: Rows,
    outcome: Outcome,
    expected: tuple[str | None, str],
    meanwhile: Meanwhile,
) -> None:
    await rows.remember()
    ended = await settle(daemon, rows, meanwhile, outcome)
    if meanwhile == "nothing":
        assert ended == expected
    elif meanwhile == "changed":
        assert ended == ("leased" if isinstance(outcome, InDoubt) else "ready", "pending")
    else:
        assert ended == ("leased", "pending")


async def test_a_deletion_is_noted_for_a_forgotten_memory_only(daemon: TenantDatabase, rows: Rows) -> None:
    [memory] = await rows.remember()
    assert await settle(daemon, rows, "nothing", Deleted()) == (None, "pending")
    await rows.forget(memory)
    await rows.connection.execute("update openbot.index_entries set state = 'pending'")
    await rows.enqueue(memory)
    assert await settle(daemon, rows, "nothing", Deleted()) == (None, "deleted")


async def test_an_older_version_is_never_noted_as_indexed(daemon: TenantDatabase, rows: Rows) -> None:
    await rows.remember()
    assert await settle(daemon, rows, "nothing", Indexed(7)) == (None, "pending")


async def test_doubt_keeps_others_away_for_its_time_and_no_longer(daemon: TenantDatabase, rows: Rows) -> None:
    await rows.remember()
    await settle(daemon, rows, "changed", InDoubt("INDEX_UNAVAILABLE"))

    assert await OutboxStore(daemon).lease(600) is None
    left_s = await OutboxStore(daemon).seconds_until_due()
    assert left_s is not None
    assert 10 < left_s <= 70


async def test_many_workers_share_many_rows_and_none_is_worked_on_twice_at_a_time(
    daemon: TenantDatabase, rows: Rows
) -> None:
    memories = await rows.remember(60)
    working: set[object] = set()
    worked: list[object] = []

    class Watching:
        async def converge(self, lease: Lease, writes_until: datetime) -> Outcome:
            assert lease.memory_id not in working
            working.add(lease.memory_id)
            await asyncio.sleep(0.01)
            working.discard(lease.memory_id)
            worked.append(lease.memory_id)
            if len(worked) == len(memories):
                stop.set()
            return Indexed(1)

    stop = asyncio.Event()
    drain = Drain(
        daemon,
        OutboxStore(daemon),
        cast(Converger, Watching()),
        Wakeup("unused"),
        workers=8,
        lease_s=600,
        write_margin_s=40,
        doubt_s=70,
        poll_s=1,
    )
    async with asyncio.timeout(60):
        await drain.run(stop)

    assert sorted(map(str, worked)) == sorted(map(str, memories))
    assert await rows.value("select count(*) from openbot.outbox") == 0
