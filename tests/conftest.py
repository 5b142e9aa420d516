"""What every suite may ask for: a real PostgreSQL, and a database of its own for each test."""

from collections.abc import Iterator

import pytest
from devstack.postgres import EmbeddedPostgres
from devstack.template import ClonedDatabase, TemplateDatabase


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
