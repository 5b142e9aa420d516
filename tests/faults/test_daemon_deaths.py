"""kill -9, SIGSTOP and SIGTERM of the daemon at the moments that matter: nothing lost, doubled or revived."""

import random
import signal
import threading
import time
from uuid import UUID

import pytest
from devstack.client import Session
from devstack.stack import Stack
from hindsight_index import Document, HindsightIndex

from tests.conftest import Hindsight
from tests.eventually import until
from tests.faults.proxy import FaultyProxy, Held, Kept
from tests.faults.systems import (
    DELETE,
    RETAIN,
    bank_of,
    daemon_of,
    document_id,
    document_of,
    in_index,
    is_cleared,
    is_indexed,
    outbox_rows,
    value,
)

pytestmark = pytest.mark.e2e


def test_killed_before_storing_after_storing_and_while_deleting(
    lin: Session, proxy: FaultyProxy, fragile: Stack, stack: Stack
) -> None:
    """Three memories at once, each at another moment, so that one wait for their leases is enough."""
    doomed = lin.remember("The meeting is on Mondays.")
    assert until(lambda: is_indexed(lin, doomed.name))
    sent, stored, deleted = Kept(), Held(), Held()
    proxy.on(RETAIN, sent, times=1, words="Bullet points")
    proxy.on(RETAIN, stored, times=1, words="Risks first")
    proxy.on(DELETE, deleted, times=1)

    unsent = lin.remember("Bullet points, please.")
    unnoted = lin.remember("Risks first, please.")
    forget = lin.forget(doomed.name)
    assert all(each.arrived.wait(20) for each in (sent, stored, deleted))
    daemon_of(fragile).kill()
    stored.let_go()
    deleted.let_go()
    assert not is_cleared(lin, forget.name)
    fragile.start_sync_daemon()

    assert until(lambda: is_indexed(lin, unsent.name) and is_indexed(lin, unnoted.name), 60)
    assert until(lambda: is_cleared(lin, forget.name), 60)
    bank = bank_of(fragile, unsent.name)
    assert document_of(stack, bank, unsent.name) == Document(unsent.text, 1)
    assert document_of(stack, bank, unnoted.name) == Document(unnoted.text, 1)
    assert document_of(stack, bank, doomed.name) is None
    assert until(lambda: outbox_rows(fragile, unsent.name) == 0)


def test_killed_ten_times_while_thirty_memories_come_in(
    lin: Session, proxy: FaultyProxy, fragile: Stack, stack: Stack, hindsight: Hindsight
) -> None:
    dice = random.Random(20261201)  # noqa: S311 - moments, not secrets
    memories = []
    for number in range(30):
        memories.append(lin.remember(f"Note {number}: option {number * 7 % 13} was chosen."))
        if number % 3 == 2:
            # The new daemon is at work, not only starting.
            busy = proxy.count(RETAIN)
            assert until(lambda busy=busy: proxy.count(RETAIN) > busy)  # type: ignore[misc]
            time.sleep(dice.uniform(0, 0.15))
            daemon_of(fragile).kill()
            fragile.start_sync_daemon()

    assert until(lambda: all(is_indexed(lin, memory.name) for memory in memories), 90)
    assert until(lambda: outbox_rows(fragile, memories[0].name) == 0)
    bank = bank_of(fragile, memories[0].name)

    async def all_documents(index: HindsightIndex) -> list[tuple[Document | None, int]]:
        ids = [document_id(memory.name) for memory in memories]
        return [(await index.document(bank, each), await index.count_units(bank, each)) for each in ids]

    assert in_index(stack, all_documents) == [(Document(memory.text, 1), 1) for memory in memories]
    assert value(hindsight.database_url, "select count(*) from documents where bank_id = $1", bank) == 30


def test_a_daemon_that_wakes_up_too_late_cannot_bring_a_document_back(
    lin: Session, proxy: FaultyProxy, fragile: Stack, stack: Stack
) -> None:
    """Its words wait in the network until its lease has passed on and another daemon has deleted (I7)."""
    kept = Kept()
    proxy.on(RETAIN, kept, times=1)
    memory = lin.remember("The meeting is on Mondays.")
    assert kept.arrived.wait(20)
    sleeper = daemon_of(fragile)
    sleeper.send(signal.SIGSTOP)
    try:
        forget = lin.forget(memory.name)
        fragile.start_sync_daemon()
        assert until(lambda: is_cleared(lin, forget.name), 90)
        bank = bank_of(fragile, memory.name)
        assert document_of(stack, bank, memory.name) is None

        answer = proxy.replay(kept.requests[0])

        assert b" 401 " in answer.split(b"\r\n")[0], "the token has to end with the lease"
        sleeper.send(signal.SIGCONT)
        assert until(lambda: '"lease": "lost"' in sleeper.log_file.read_text(encoding="utf-8"))
    finally:
        sleeper.kill()
    assert until(lambda: outbox_rows(fragile, memory.name) == 0), (
        "a lost lease has the memory looked at again"
    )
    assert document_of(stack, bank, memory.name) is None


def test_words_that_nobody_answered_for_cannot_overtake_their_deletion(
    lin: Session, proxy: FaultyProxy, fragile: Stack, stack: Stack
) -> None:
    """The daemon is well, but what it sent still is somewhere in the network when the memory is forgotten."""
    kept = Kept()
    proxy.on(RETAIN, kept, times=1)
    memory = lin.remember("The meeting is on Mondays.")
    assert kept.arrived.wait(20)

    forget = lin.forget(memory.name)
    assert until(lambda: is_cleared(lin, forget.name), 60)
    proxy.replay(kept.requests[0])

    assert document_of(stack, bank_of(fragile, memory.name), memory.name) is None


def test_asked_to_stop_it_ends_in_time_although_a_call_hangs_and_loses_nothing(
    lin: Session, proxy: FaultyProxy, fragile: Stack
) -> None:
    daemon_of(fragile).terminate(20)
    fragile.start_sync_daemon(SYNC_DAEMON_STOP_S="0.5")
    kept = Kept()
    proxy.on(RETAIN, kept, times=1)
    memory = lin.remember("The meeting is on Mondays.")
    assert kept.arrived.wait(20)

    stopped = daemon_of(fragile)
    began = time.monotonic()
    stopped.send(signal.SIGTERM)

    assert stopped.wait(20) == 0
    assert time.monotonic() - began < 6
    assert "unfinished work was cut off" in stopped.tail()
    # Not given back early: what was sent may still arrive.
    states = "select state from openbot.outbox where memory_id = $1"
    assert value(fragile.admin_dsn, states, UUID(document_id(memory.name))) == "leased"


def test_asked_to_stop_it_finishes_what_it_holds(lin: Session, proxy: FaultyProxy, fragile: Stack) -> None:
    held = Held()
    proxy.on(RETAIN, held, times=1)
    memory = lin.remember("The meeting is on Mondays.")
    assert held.arrived.wait(20)

    stopping = daemon_of(fragile)
    stopping.send(signal.SIGTERM)
    threading.Timer(0.5, held.let_go).start()

    assert stopping.wait(20) == 0
    assert is_indexed(lin, memory.name)
    assert outbox_rows(fragile, memory.name) == 0
