"""The diagram of docs/outbox_states.md, transition by transition."""

import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest
from devstack.control_plane import Company
from devstack.template import ClonedDatabase
from memory_api.operations.remember import remember
from memory_api.records import Asker, Target
from memory_api.store.memories import MemoryStore
from sync_daemon.store import outbox
from sync_daemon.store.outbox import Held, Lease, OutboxStore
from tenant_db import TenantDatabase

from tests.authority import state_facts

pytestmark = pytest.mark.postgres

STATES = ("ready", "leased", "retry", "waiting_budget", "dead")

#: An independent copy of the arrows in the document.
ARROWS = {
    ("ready", "ready"), ("ready", "leased"),
    ("retry", "ready"), ("retry", "leased"),
    ("leased", "leased"), ("leased", "ready"), ("leased", "retry"), ("leased", "waiting_budget"),
    ("leased", "dead"),
    ("waiting_budget", "ready"), ("dead", "ready"),
}  # fmt: skip

_LEASED = "lease_id = gen_random_uuid(), lease_generation = generation, lease_expires_at = now()"
_UNLEASED = "lease_id = null, lease_generation = null, lease_expires_at = null"


def into(state: str) -> str:
    """The UPDATE that gives a row the shape of ``state``."""
    reason = "null" if state in {"ready", "leased"} else "'INDEX_UNAVAILABLE'"
    lease = _LEASED if state == "leased" else _UNLEASED
    return f"update openbot.outbox set state = '{state}', reason = {reason}, {lease}"


class Daemon:
    """The daemon's role over one database with one memory waiting."""

    def __init__(self, dsn: str, database: TenantDatabase, memory_id: UUID) -> None:
        self.dsn = dsn
        self.database = database
        self.store = OutboxStore(database)
        self.memory_id = memory_id

    async def lease(self, seconds: float = 60) -> Lease:
        lease = await self.store.lease(seconds)
        assert lease is not None
        return lease

    async def row(self) -> asyncpg.Record | None:
        connection = await asyncpg.connect(self.dsn)
        try:
            return await connection.fetchrow("select * from openbot.outbox")
        finally:
            await connection.close()

    async def enqueue(self) -> None:
        async with self.database.of("acme", "lin") as connection:
            await connection.execute("select openbot.enqueue(array[$1::uuid])", self.memory_id)


@pytest.fixture
async def daemon(database: ClonedDatabase) -> AsyncIterator[Daemon]:
    await state_facts(
        database.dsn("authority_writer"), Company("acme", members=("lin",), bots={"assistant": True})
    )
    async with TenantDatabase(database.dsn("memory_api"), role="memory_api", application_name="test") as api:
        memory = await remember(
            api,
            MemoryStore(api),
            Asker("acme", "lin", "assistant", frozenset()),
            text="tea",
            target=Target(),
            request_id=uuid4(),
        )
    dsn = database.dsn("sync_daemon")
    async with TenantDatabase(dsn, role="sync_daemon", application_name="test") as opened:
        yield Daemon(dsn, opened, memory.memory_id)


async def through(connection: asyncpg.Connection, state: str) -> None:
    """Brings a fresh row into ``state`` by allowed transitions."""
    if state != "ready":
        await connection.execute(into("leased"))
    if state not in {"ready", "leased"}:
        await connection.execute(into(state))


async def test_only_the_arrows_of_the_diagram_can_be_walked(daemon: Daemon) -> None:
    connection = await asyncpg.connect(daemon.dsn)
    walked = set()
    try:
        for before, after in itertools.product(STATES, STATES):
            attempt = connection.transaction()
            await attempt.start()
            await through(connection, before)
            try:
                assert await connection.execute(into(after)) == "UPDATE 1"
                walked.add((before, after))
            except asyncpg.CheckViolationError:
                pass
            await attempt.rollback()
    finally:
        await connection.close()
    assert walked == ARROWS


@pytest.mark.parametrize(
    "shape",
    [
        "update openbot.outbox set state = 'leased'",
        "update openbot.outbox set lease_id = gen_random_uuid()",
        "update openbot.outbox set state = 'retry'",
        "update openbot.outbox set reason = 'INDEX_UNAVAILABLE'",
        "update openbot.outbox set generation = 0",
        "update openbot.outbox set state = 'elsewhere'",
        "update openbot.outbox set reason = 'a sentence'",
    ],
)
async def test_a_row_cannot_have_the_shape_of_two_states(daemon: Daemon, shape: str) -> None:
    connection = await asyncpg.connect(daemon.dsn)
    try:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(shape)
    finally:
        await connection.close()


async def test_a_leased_row_is_nobody_elses_until_its_lease_runs_out(daemon: Daemon) -> None:
    first = await daemon.lease(seconds=0.3)
    assert await daemon.store.lease(60) is None
    expires_s = await daemon.store.seconds_until_due()
    assert expires_s is not None
    assert expires_s <= 0.3

    rescued = None
    deadline = datetime.now(UTC) + timedelta(seconds=20)
    while rescued is None:
        assert datetime.now(UTC) < deadline
        rescued = await daemon.store.lease(60)

    assert rescued.memory_id == first.memory_id
    assert rescued.lease_id != first.lease_id
    assert rescued.attempts == 2
    async with daemon.database.of("acme", "lin") as connection:
        assert await outbox.lock_held(connection, first) is Held.LOST
        assert await outbox.lock_held(connection, rescued) is Held.CURRENT


async def test_a_change_during_a_lease_is_noticed_at_its_end(daemon: Daemon) -> None:
    lease = await daemon.lease()
    await daemon.enqueue()
    row = await daemon.row()
    assert row is not None
    assert (row["state"], row["generation"], row["lease_generation"]) == ("leased", 2, 1)

    async with daemon.database.of("acme", "lin") as connection:
        assert await outbox.lock_held(connection, lease) is Held.CHANGED
        await outbox.make_ready(connection, lease)

    assert (await daemon.lease()).attempts == 1


async def test_enqueueing_twice_keeps_one_row(daemon: Daemon) -> None:
    await daemon.enqueue()
    row = await daemon.row()
    assert row is not None
    assert (row["state"], row["generation"]) == ("ready", 2)


@pytest.mark.parametrize("stopped", ["retry", "dead", "waiting_budget"])
async def test_a_change_makes_a_stopped_row_due_with_a_clean_count(daemon: Daemon, stopped: str) -> None:
    connection = await asyncpg.connect(daemon.dsn)
    try:
        await through(connection, stopped)
    finally:
        await connection.close()
    await daemon.enqueue()
    row = await daemon.row()
    assert row is not None
    assert (row["state"], row["attempts"], row["reason"]) == ("ready", 0, None)


async def test_a_retry_waits_and_a_dead_row_is_never_leased(daemon: Daemon) -> None:
    lease = await daemon.lease()
    async with daemon.database.of("acme", "lin") as connection:
        await outbox.make_retry(connection, lease, "INDEX_UNAVAILABLE", 3600)
    assert await daemon.store.lease(60) is None

    await daemon.enqueue()
    lease = await daemon.lease()
    async with daemon.database.of("acme", "lin") as connection:
        await outbox.make_dead(connection, lease, "RECORD_MISSING")
    assert await daemon.store.lease(60) is None
    assert await daemon.store.seconds_until_due() is None
