"""A tenant-bound pool: whatever the driver raises comes out as one of our errors, without its words (I13)."""

import asyncio
import traceback

import pytest
from tenant_db import DatabaseConflict, DatabaseError, DatabaseUnavailable, TenantDatabase

from tests.integration.office import Office

pytestmark = pytest.mark.postgres

CANARY = "the canary sings on Tuesdays"


@pytest.mark.parametrize(
    "statement",
    [
        f"select '{CANARY}'::int",
        f'select "{CANARY}"',
        f'select 1 / 0 as "{CANARY}"',
        f"insert into openbot.requests (company_id) values ('{CANARY}')",
        f"do $$ begin raise exception '{CANARY}'; end $$",
    ],
)
async def test_a_refused_statement_says_its_sqlstate_and_no_word_more(office: Office, statement: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        async with office.api.of(office.company, "lin") as connection:
            await connection.execute(statement)
    assert caught.value.sqlstate
    assert CANARY not in "".join(traceback.format_exception_only(caught.value))
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("do $$ begin raise exception using errcode = '40001'; end $$", DatabaseConflict),
        ("do $$ begin raise exception using errcode = '40P01'; end $$", DatabaseConflict),
        ("do $$ begin raise exception using errcode = '25006'; end $$", DatabaseUnavailable),
        ("do $$ begin raise exception using errcode = '53300'; end $$", DatabaseUnavailable),
        ("select pg_terminate_backend(pg_backend_pid())", DatabaseUnavailable),
        ("set local statement_timeout = 20; select pg_sleep(5)", DatabaseUnavailable),
    ],
)
async def test_what_may_be_repeated_is_told_apart(
    office: Office, statement: str, kind: type[DatabaseError]
) -> None:
    with pytest.raises(DatabaseError) as caught:
        async with office.api.of(office.company, "lin") as connection:
            await connection.execute(statement)
    assert type(caught.value) is kind
    assert await office.api.reachable(), "the pool replaces what broke"


async def test_a_failed_transaction_leaves_nothing_behind(office: Office) -> None:
    async def fails_halfway() -> None:
        async with office.api.of(office.company, "lin") as connection:
            await connection.execute(
                "insert into openbot.scopes (company_id, user_id, kind) values ($1, 'lin', 'general')",
                office.company,
            )
            raise LookupError

    with pytest.raises(LookupError):
        await fails_halfway()
    assert await office.count("scopes") == 0


async def test_a_cancelled_task_gives_its_connection_back(office: Office) -> None:
    async def stuck() -> None:
        async with office.api.of(office.company, "lin") as connection:
            await connection.execute("select pg_sleep(30)")

    for _ in range(12):  # more than the pool has
        task = asyncio.create_task(stuck())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(10):
        assert await office.api.reachable()


async def test_waiting_for_a_connection_has_an_end(office: Office) -> None:
    async with TenantDatabase(
        office.database.dsn("memory_api"),
        role="memory_api",
        max_connections=1,
        statement_timeout_s=0.3,
        application_name="test",
    ) as narrow:
        async with narrow.of(office.company, "lin"):
            with pytest.raises(DatabaseUnavailable):
                async with narrow.of(office.company, "omar"):
                    pass
        assert await narrow.reachable()


async def test_a_closed_database_is_unavailable_not_a_crash(office: Office) -> None:
    database = TenantDatabase(office.database.dsn("memory_api"), role="memory_api", application_name="test")
    assert not await database.reachable()
    async with database:
        assert await database.reachable()
    with pytest.raises(DatabaseUnavailable):
        async with database.of(office.company, "lin"):
            pass
