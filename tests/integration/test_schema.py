"""The migrations and the schema that is written down."""

import pytest
from devstack.migrations import SCHEMA_FILE, dump_schema
from devstack.postgres import EmbeddedPostgres
from devstack.template import ClonedDatabase

pytestmark = pytest.mark.postgres


def test_schema_sql_is_what_the_migrations_make(
    postgres_server: EmbeddedPostgres, database: ClonedDatabase
) -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == dump_schema(postgres_server, database.name), (
        "run: make schema"
    )
