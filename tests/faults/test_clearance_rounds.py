"""Rounds of probing: big forgets, silent indexes, long waits, and what must never happen to evidence."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Literal, cast

import pytest
from devstack.template import ClonedDatabase
from hindsight_index import Document, HindsightIndex, HindsightUnavailable, IndexOperation
from sync_daemon.clearance import Clearance
from sync_daemon.store.forgets import ForgetStore
from tenant_db import TenantDatabase

from tests.faults.rows import Rows, rows_in

pytestmark = pytest.mark.postgres


class EmptyIndex:
    """Holds nothing, unless told otherwise."""

    def __init__(self) -> None:
        self.asked = 0
        self.silent = False
        self.held: Document | None = None

    def _ask(self) -> None:
        self.asked += 1
        if self.silent:
            raise HindsightUnavailable

    async def bank_exists(self, bank: str) -> bool:
        self._ask()
        return True

    async def document(self, bank: str, document_id: str) -> Document | None:
        self._ask()
        return self.held

    async def count_units(self, bank: str, document_id: str) -> int:
        self._ask()
        return self.held.unit_count if self.held else 0

    async def count_observations(self, bank: str) -> int:
        self._ask()
        return 0

    async def operations(self, bank: str) -> Sequence[IndexOperation]:
        self._ask()
        return []


@pytest.fixture
async def rows(database: ClonedDatabase) -> AsyncIterator[Rows]:
    rows = await rows_in(database)
    yield rows
    await rows.connection.close()


@pytest.fixture
async def store(database: ClonedDatabase) -> AsyncIterator[ForgetStore]:
    dsn = database.dsn("sync_daemon")
    async with TenantDatabase(dsn, role="sync_daemon", application_name="test") as opened:
        yield ForgetStore(opened)


def clearance(
    store: ForgetStore,
    index: EmptyIndex,
    *,
    backups: Literal["none", "registered", "undeclared"] = "none",
    poll_s: float = 0.001,
) -> Clearance:
    return Clearance(store, cast(HindsightIndex, index), backups=backups, poll_s=poll_s)


STATE = "select state from openbot.forgets"
EVIDENCE = "select count(*) from openbot.clearance_evidence"


async def test_a_forget_of_hundreds_is_cleared_in_one_round(rows: Rows, store: ForgetStore) -> None:
    await rows.forget(*await rows.remember(250))
    assert await clearance(store, EmptyIndex()).probe_once()
    assert await rows.value(STATE) == "cleared"
    assert await rows.value(EVIDENCE) == 1000


async def test_a_silent_index_is_asked_once_a_round_and_proves_nothing(
    rows: Rows, store: ForgetStore
) -> None:
    await rows.forget(*await rows.remember(250))
    index = EmptyIndex()
    index.silent = True
    assert await clearance(store, index).probe_once()
    assert index.asked == 1
    assert await rows.value(STATE) == "clearing"
    assert await rows.value(EVIDENCE + " where cleared and domain <> 'authority_active'") == 0


async def test_the_same_answer_is_kept_once(rows: Rows, store: ForgetStore) -> None:
    await rows.forget(*await rows.remember())
    waiting = clearance(store, EmptyIndex(), backups="undeclared")
    for _ in range(5):
        await due_now(rows)
        assert await waiting.probe_once()
    assert await rows.value(EVIDENCE) == 4
    assert await rows.value(STATE) == "clearing"


async def test_what_waits_long_is_asked_seldom(rows: Rows, store: ForgetStore) -> None:
    await rows.forget(*await rows.remember())
    pause = "select extract(epoch from probe_due_at - now()) from openbot.forgets"
    for age, least, most in (("0 s", 1, 2.1), ("100 s", 8, 12), ("30 days", 3500, 3601)):
        await due_now(rows)
        await rows.connection.execute(
            "update openbot.forgets set stopped_use_at = now() - $1::text::interval", age
        )
        assert await clearance(store, EmptyIndex(), backups="undeclared", poll_s=2).probe_once()
        waits = await rows.value(pause)
        assert least < float(cast(float, waits)) <= most, age
    assert not await clearance(store, EmptyIndex()).probe_once()


async def test_what_came_back_while_a_backup_was_waited_for_is_found(rows: Rows, store: ForgetStore) -> None:
    await rows.forget(*await rows.remember())
    backup = await rows.value(
        "insert into openbot.backups (store, began_at, ended_at) values ('index', now(), now())"
        " returning backup_id"
    )
    index = EmptyIndex()
    probing = clearance(store, index, backups="registered")
    assert await probing.probe_once()
    assert await rows.value(STATE) == "clearing"
    index.held = Document("tea", 1)
    later = await rows.value(
        "insert into openbot.backups (store, began_at, ended_at)"
        " values ('index', clock_timestamp(), clock_timestamp()) returning backup_id"
    )
    purge = "update openbot.backups set purged_at = clock_timestamp() where backup_id = $1"
    await rows.value(purge, backup)
    await due_now(rows)
    assert await probing.probe_once()
    assert await rows.value(EVIDENCE + " where reason = 'DOCUMENT_PRESENT'") == 1

    index.held = None
    await due_now(rows)
    assert await probing.probe_once()
    assert await rows.value(STATE) == "clearing", "the later backup may hold what came back"
    await rows.value(purge, later)
    await due_now(rows)
    assert await probing.probe_once()
    assert await rows.value(STATE) == "cleared"


async def test_a_memory_that_is_due_to_be_deleted_again_keeps_the_forget_open(
    rows: Rows, store: ForgetStore
) -> None:
    """As after a lost lease, when something may have been written too late: here during the round."""
    [memory] = await rows.remember()
    await rows.forget(memory)

    class Overtaken(EmptyIndex):
        async def operations(self, bank: str) -> Sequence[IndexOperation]:
            await rows.enqueue(memory)
            return []

    assert await clearance(store, Overtaken()).probe_once()
    assert await rows.value(STATE) == "clearing"
    await due_now(rows)
    assert await clearance(store, EmptyIndex()).probe_once()
    assert await rows.value(STATE) == "clearing"
    assert await rows.value(EVIDENCE + " where reason = 'DELETION_PENDING'") == 2

    await rows.connection.execute("delete from openbot.outbox")
    await due_now(rows)
    assert await clearance(store, EmptyIndex()).probe_once()
    assert await rows.value(STATE) == "cleared"


async def test_a_forget_that_cannot_be_probed_does_not_stop_the_others(
    rows: Rows, store: ForgetStore
) -> None:
    poisoned, sound = await rows.remember(2)
    first = await rows.forget(poisoned)
    second = await rows.forget(sound)

    class Poisonous(EmptyIndex):
        async def document(self, bank: str, document_id: str) -> Document | None:
            if document_id == str(poisoned):
                raise ZeroDivisionError
            return None

    stop = asyncio.Event()
    running = asyncio.create_task(clearance(store, Poisonous(), poll_s=0.05).run(stop))
    async with asyncio.timeout(20):
        while await rows.value(f"{STATE} where forget_id = $1", second) != "cleared":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert not running.done()
    assert await rows.value(f"{STATE} where forget_id = $1", first) == "clearing"
    stop.set()
    async with asyncio.timeout(5):
        await running


async def due_now(rows: Rows) -> None:
    await rows.connection.execute("update openbot.forgets set probe_due_at = now() - interval '1 second'")
