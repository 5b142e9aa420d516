"""kill -9 and SIGSTOP of the daemon at the moments that matter: nothing lost, doubled or brought back."""

import asyncio
import random
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from devstack.client import Session
from devstack.issuer import SYNC_DAEMON_SIGNER
from devstack.process import ManagedProcess
from devstack.stack import Stack
from hindsight_index import BankTokenSigner, Document, HindsightIndex
from openbot.memory.v1 import forget_pb2, memory_pb2

from tests.eventually import until
from tests.faults.proxy import FaultyProxy, Held, Request

pytestmark = pytest.mark.e2e

RETAIN = r"^POST .*/memories$"
DELETE = r"^DELETE "


def daemon_of(stack: Stack) -> ManagedProcess:
    assert stack.sync_daemon is not None
    return stack.sync_daemon


def is_indexed(session: Session, name: str) -> bool:
    return session.get(name).index_status.state == memory_pb2.IndexStatus.STATE_INDEXED


def is_cleared(session: Session, name: str) -> bool:
    return session.get_forget(name).state == forget_pb2.Forget.STATE_CLEARED


async def bank_and_outbox(stack: Stack, name: str) -> tuple[str, int]:
    """The bank of a memory, and how many outbox rows its person has."""
    connection = await asyncpg.connect(stack.admin_dsn)
    try:
        row = await connection.fetchrow(
            "select bank_id,"
            " (select count(*) from openbot.outbox where outbox.company_id = scopes.company_id)"
            " from openbot.memories join openbot.scopes using (scope_id) where memory_id = $1",
            UUID(name.removeprefix("memories/")),
        )
        assert row is not None
        return row[0], row[1]
    finally:
        await connection.close()


def in_index(stack: Stack, bank: str, ask: Callable[[HindsightIndex], Awaitable[Any]]) -> Any:
    """Asks the real Hindsight, past the proxy."""
    key = stack.issuer.bank_key_file(SYNC_DAEMON_SIGNER).read_bytes()

    async def run() -> Any:
        async with HindsightIndex(stack.index_url, BankTokenSigner(key, issuer=SYNC_DAEMON_SIGNER)) as index:
            return await ask(index)

    return asyncio.run(run())


def test_killed_between_lease_and_retain(lin: Session, proxy: FaultyProxy, fragile: Stack) -> None:
    arrived = threading.Event()

    async def kill_first(request: Request) -> bytes:
        arrived.set()
        await asyncio.sleep(60)
        return await request.forward()

    proxy.on(RETAIN, kill_first, times=1)
    memory = lin.remember("Bullet points, please.")
    assert arrived.wait(20)
    daemon_of(fragile).kill()
    fragile.start_sync_daemon()

    assert until(lambda: is_indexed(lin, memory.name), 60)


def test_killed_after_hindsight_stored_and_before_it_was_noted(
    lin: Session, proxy: FaultyProxy, fragile: Stack, stack: Stack
) -> None:
    held = Held()
    proxy.on(RETAIN, held, times=1)
    memory = lin.remember("Bullet points, please.")
    assert held.stored.wait(20)
    daemon_of(fragile).kill()
    held.let_go()
    fragile.start_sync_daemon()

    assert until(lambda: is_indexed(lin, memory.name), 60)
    bank, outbox = asyncio.run(bank_and_outbox(fragile, memory.name))
    document = memory.name.removeprefix("memories/")
    assert outbox == 0
    assert in_index(stack, bank, lambda index: index.document(bank, document)) == Document(memory.text, 1)
    assert in_index(stack, bank, lambda index: index.count_units(bank, document)) == 1


def test_killed_during_the_deletion(lin: Session, proxy: FaultyProxy, fragile: Stack) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    held = Held()
    proxy.on(DELETE, held, times=1)
    forget = lin.forget(memory.name)
    assert held.stored.wait(20)
    daemon_of(fragile).kill()
    held.let_go()
    assert not is_cleared(lin, forget.name)
    fragile.start_sync_daemon()

    assert until(lambda: is_cleared(lin, forget.name), 60)


def test_killed_again_and_again_while_thirty_memories_come_in(
    lin: Session, fragile: Stack, stack: Stack
) -> None:
    dice = random.Random(20261201)  # noqa: S311 - moments, not secrets
    memories = []
    for number in range(30):
        memories.append(lin.remember(f"Note {number}: option {number * 7 % 13} was chosen."))
        if number % 5 == 4:
            threading.Event().wait(dice.uniform(0, 0.6))
            daemon_of(fragile).kill()
            fragile.start_sync_daemon()

    assert until(lambda: all(is_indexed(lin, memory.name) for memory in memories), 90)
    bank, outbox = asyncio.run(bank_and_outbox(fragile, memories[0].name))
    assert outbox == 0

    async def all_documents(index: HindsightIndex) -> list[tuple[Document | None, int]]:
        ids = [memory.name.removeprefix("memories/") for memory in memories]
        return [(await index.document(bank, each), await index.count_units(bank, each)) for each in ids]

    found = in_index(stack, bank, all_documents)
    assert found == [(Document(memory.text, 1), 1) for memory in memories]


def test_a_daemon_that_wakes_up_too_late_cannot_bring_a_document_back(
    lin: Session, proxy: FaultyProxy, fragile: Stack, stack: Stack
) -> None:
    """Its retain waits in the network until its lease has passed on and another daemon has deleted (I7)."""
    late: list[Request] = []
    arrived = threading.Event()

    async def keep(request: Request) -> bytes:
        late.append(request)
        arrived.set()
        await asyncio.sleep(120)
        return b""

    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    bank, _ = asyncio.run(bank_and_outbox(fragile, memory.name))
    other = lin.remember("Risks first, please.")
    assert until(lambda: is_indexed(lin, other.name))

    proxy.on(RETAIN, keep, times=1)
    slow = lin.remember("The meeting is on Mondays.")
    assert arrived.wait(20)
    sleeper = daemon_of(fragile)
    sleeper.send(signal.SIGSTOP)
    try:
        forget = lin.forget(slow.name)
        fragile.start_sync_daemon()
        assert until(lambda: is_cleared(lin, forget.name), 90)
    finally:
        sleeper.kill()
    document = slow.name.removeprefix("memories/")
    assert in_index(stack, bank, lambda index: index.document(bank, document)) is None

    # What the sleeper sent arrives only now.
    answer = proxy.replay(late[0])

    assert b" 401 " in answer.split(b"\r\n")[0], "the guard refuses the token that ended with the lease"
    assert in_index(stack, bank, lambda index: index.document(bank, document)) is None
