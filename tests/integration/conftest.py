"""One database that many tests share, each in a company of its own."""

from collections.abc import AsyncIterator, Iterator

import pytest
from devstack.template import ClonedDatabase, TemplateDatabase
from tenant_db import TenantDatabase

from tests.integration.office import Office


@pytest.fixture(scope="session")
def shared_database(template_database: TemplateDatabase) -> Iterator[ClonedDatabase]:
    """For tests that leave the schema alone and keep to their own company."""
    with template_database.clone() as clone:
        yield clone


@pytest.fixture
async def office(shared_database: ClonedDatabase) -> AsyncIterator[Office]:
    """A company of this test's own."""
    async with opened(shared_database) as api:
        office = Office(shared_database, api)
        await office.settle()
        yield office


@pytest.fixture
async def lonely_office(database: ClonedDatabase) -> AsyncIterator[Office]:
    """The only company of a database that the test may ill-treat."""
    async with opened(database) as api:
        office = Office(database, api)
        await office.settle()
        yield office


def opened(database: ClonedDatabase) -> TenantDatabase:
    return TenantDatabase(
        database.dsn("memory_api"), role="memory_api", max_connections=10, application_name="test"
    )
