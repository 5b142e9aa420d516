"""PostgreSQL absent, frozen or breaking its connections: the daemon waits, says so, and goes on."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from devstack.issuer import SYNC_DAEMON_SIGNER, DevelopmentIssuer
from devstack.ports import free_port
from devstack.process import ManagedProcess, base_environment
from devstack.template import ClonedDatabase
from sync_daemon.wakeup import Wakeup

from tests.eventually import until
from tests.faults.systems import value
from tests.faults.wire import Wire

pytestmark = pytest.mark.postgres


@pytest.fixture
def wire(database: ClonedDatabase) -> Iterator[Wire]:
    """Not plugged in yet."""
    with Wire(database.dsn("sync_daemon")) as wire:
        yield wire


@pytest.fixture
def daemon(wire: Wire, tmp_path: Path) -> Iterator[ManagedProcess]:
    """A daemon at the other end of the wire; nobody listens at its index."""
    key = DevelopmentIssuer(tmp_path / "keys").bank_key_file(SYNC_DAEMON_SIGNER)
    environment = {
        "SYNC_DAEMON_DATABASE_URL": wire.dsn,
        "SYNC_DAEMON_INDEX_URL": f"http://127.0.0.1:{free_port()}",
        "SYNC_DAEMON_BANK_TOKEN_KEY_FILE": str(key),
        "SYNC_DAEMON_STATEMENT_TIMEOUT_S": "30",
        "SYNC_DAEMON_POLL_S": "0.2",
        "SYNC_DAEMON_STOP_S": "1",
    }
    process = ManagedProcess(
        "sync_daemon",
        [sys.executable, "-m", "sync_daemon"],
        {**base_environment(), **environment},
        tmp_path / "log",
    )
    process.start()
    yield process
    process.kill()


def logged(daemon: ManagedProcess, words: str) -> bool:
    return words in daemon.tail(1000)


def backends(database: ClonedDatabase) -> set[int]:
    """The server's processes that serve daemons."""
    found = value(
        database.admin_dsn,
        "select array_agg(pid) from pg_stat_activity where datname = $1 and application_name = 'sync_daemon'",
        database.name,
    )
    return set(found) if isinstance(found, list) else set()


def test_started_before_its_database_it_waits_and_says_so(wire: Wire, daemon: ManagedProcess) -> None:
    assert until(lambda: logged(daemon, "waiting for the database"))
    wire.plug_in()
    assert until(lambda: logged(daemon, "draining the outbox"))
    daemon.send(signal.SIGTERM)
    assert daemon.wait(20) == 0


def test_asked_to_stop_while_it_waits_for_its_database_it_stops(daemon: ManagedProcess) -> None:
    assert until(lambda: logged(daemon, "waiting for the database"))
    daemon.send(signal.SIGTERM)
    assert daemon.wait(20) == 0
    assert logged(daemon, '"stopped"')


def test_broken_connections_are_made_again(
    wire: Wire, daemon: ManagedProcess, database: ClonedDatabase
) -> None:
    wire.plug_in()
    assert until(lambda: logged(daemon, "draining the outbox"))
    assert until(lambda: len(backends(database)) > 1)
    before = backends(database)
    wire.cut()
    assert until(lambda: len(backends(database) - before) > 1)
    assert daemon.running
    assert not logged(daemon, "unexpected error")


def test_asked_to_stop_while_its_database_hangs_it_ends_in_time(wire: Wire, daemon: ManagedProcess) -> None:
    wire.plug_in()
    assert until(lambda: logged(daemon, "draining the outbox"))
    wire.freeze()
    time.sleep(1)  # every worker is in a statement now, for half a minute

    daemon.send(signal.SIGTERM)

    assert daemon.wait(60) == 0
    assert logged(daemon, "unfinished work was cut off")


@pytest.fixture
async def wakeup(database: ClonedDatabase, wire: Wire) -> AsyncIterator[Wakeup]:
    wire.plug_in()
    wakeup = Wakeup(wire.dsn)
    first = wakeup.ticket()
    listening = asyncio.create_task(wakeup.listen())
    async with asyncio.timeout(20):
        await first.wait()
    yield wakeup
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def woken(wakeup: Wakeup, ticket: asyncio.Event, seconds: float = 20) -> bool:
    await wakeup.wait(ticket, seconds, asyncio.Event())
    return ticket.is_set()


async def notify(database: ClonedDatabase) -> None:
    await asyncio.to_thread(value, database.admin_dsn, "select pg_notify('openbot_outbox', '')")


async def test_a_notification_wakes(wakeup: Wakeup, database: ClonedDatabase) -> None:
    ticket = wakeup.ticket()
    await notify(database)
    assert await woken(wakeup, ticket)


async def test_what_was_notified_while_looking_for_work_is_not_missed(
    wakeup: Wakeup, database: ClonedDatabase
) -> None:
    ticket = wakeup.ticket()
    heard = wakeup.ticket()
    await notify(database)
    async with asyncio.timeout(20):
        await heard.wait()
    # Only now does the worker begin to wait.
    began = time.monotonic()
    assert await woken(wakeup, ticket)
    assert time.monotonic() - began < 5


async def test_a_lost_connection_is_made_again_and_wakes_for_what_was_missed(
    wakeup: Wakeup, wire: Wire, database: ClonedDatabase
) -> None:
    ticket = wakeup.ticket()
    await asyncio.to_thread(wire.cut)
    assert await woken(wakeup, ticket), "whatever came while nobody listened"
    ticket = wakeup.ticket()
    await notify(database)
    assert await woken(wakeup, ticket)
