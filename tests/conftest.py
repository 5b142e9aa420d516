"""What every suite may ask for: a real PostgreSQL, and a database of its own for each test."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from devstack.issuer import MEMORY_API_SIGNER, SYNC_DAEMON_SIGNER
from devstack.postgres import EmbeddedPostgres
from devstack.stack import Stack
from devstack.template import ClonedDatabase, TemplateDatabase
from hindsight_index import BankTokenSigner

#: All tests are one caller. What bounds callers has tests and processes of its own.
UNHURRIED = {
    "MEMORY_API_CALLER_CALLS_PER_SECOND": "100000",
    "MEMORY_API_COMPANY_CALLS_PER_SECOND": "100000",
}


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedPostgres]:
    """One server for the session, destroyed after it."""
    server = EmbeddedPostgres.throwaway()
    try:
        server.start()
        yield server
    finally:
        server.destroy()


@pytest.fixture(scope="session")
def template_database(postgres_server: EmbeddedPostgres) -> TemplateDatabase:
    """All migrations, applied once."""
    return TemplateDatabase(postgres_server)


@pytest.fixture
def database(template_database: TemplateDatabase) -> Iterator[ClonedDatabase]:
    """A migrated, empty database for this test alone."""
    with template_database.clone() as clone:
        yield clone


@dataclass(frozen=True)
class Hindsight:
    """The session's real Hindsight behind the guard, as either service would reach it."""

    base_url: str
    database_url: str
    recall_signer: BankTokenSigner
    sync_signer: BankTokenSigner


@pytest.fixture(scope="session")
def stack(postgres_server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The whole system as real processes, shared by the session: use companies of your own."""
    directory = tmp_path_factory.mktemp("stack")
    with Stack(directory, postgres_server, name="session", api_environment=UNHURRIED) as running:
        yield running


@pytest.fixture(scope="session")
def hindsight(stack: Stack) -> Hindsight:
    """The Hindsight of the session's stack: use banks of your own."""

    def signer(issuer: str) -> BankTokenSigner:
        return BankTokenSigner(stack.issuer.bank_key_file(issuer).read_bytes(), issuer=issuer)

    return Hindsight(
        stack.index_url,
        stack.postgres.admin_dsn("session_index"),
        signer(MEMORY_API_SIGNER),
        signer(SYNC_DAEMON_SIGNER),
    )
