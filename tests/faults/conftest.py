"""A second system beside the session's: same Hindsight, but through a proxy that can fail."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from devstack.client import Session
from devstack.control_plane import Company
from devstack.postgres import EmbeddedPostgres
from devstack.stack import Stack

from tests.authority import state_facts
from tests.faults.proxy import FaultyProxy
from tests.faults.systems import daemon_of

#: Short, so that a lease left behind by a killed daemon is rescued within a test.
DAEMON = {
    "SYNC_DAEMON_LEASE_S": "14",
    "SYNC_DAEMON_INDEX_TIMEOUT_S": "2",
    "SYNC_DAEMON_CLOCK_SKEW_S": "0",
    "SYNC_DAEMON_POLL_S": "0.5",
    "SYNC_DAEMON_CLEARANCE_POLL_S": "0.3",
}


@pytest.fixture(scope="session")
def proxy(stack: Stack) -> Iterator[FaultyProxy]:
    with FaultyProxy(stack.index_url) as running:
        yield running


@pytest.fixture(scope="session")
def fragile(
    stack: Stack,
    proxy: FaultyProxy,
    postgres_server: EmbeddedPostgres,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """The system behind the proxy, shared by the session."""
    directory: Path = tmp_path_factory.mktemp("fragile")
    with Stack(
        directory,
        postgres_server,
        name="fragile",
        index_url=proxy.url,
        issuer=stack.issuer,
        daemon_environment=DAEMON,
        api_environment={"MEMORY_API_INDEX_TIMEOUT_S": "2"},
    ) as running:
        yield running


@pytest.fixture
def lin(fragile: Stack, proxy: FaultyProxy) -> Iterator[Session]:
    """Lin in a company of the test's own; the proxy is healed and the usual daemon runs before and after."""
    company = f"faults-{uuid4().hex[:12]}"
    facts = Company(company, members=("lin",), bots={"assistant": True})
    asyncio.run(state_facts(fragile.dsns["authority_writer"], facts))
    usual = fragile.sync_daemon
    with Session(fragile.address, fragile.issuer, user="lin", company=company, bot="assistant") as session:
        yield session
    proxy.heal()
    if fragile.sync_daemon is not usual or not daemon_of(fragile).running:
        daemon_of(fragile).terminate(20)
        fragile.start_sync_daemon()
