"""Row-level security as the second line: what the roles of the services can and cannot do (I4)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from devstack.control_plane import Company
from devstack.databases import SERVICE_ROLES
from devstack.template import ClonedDatabase
from memory_api.operations.forget_memories import forget_memories
from memory_api.operations.remember import remember
from memory_api.records import Asker, ForgetTarget, Target
from memory_api.store.forgets import ForgetStore
from memory_api.store.memories import MemoryStore
from tenant_db import TenantDatabase, UnsafeRole

from tests.authority import state_facts

pytestmark = pytest.mark.postgres

TENANTS = ("acme", "lin"), ("acme", "omar"), ("globex", "lin")


@asynccontextmanager
async def connected(dsn: str, tenant: tuple[str, str] | None = None) -> AsyncIterator[asyncpg.Connection]:
    """A bare connection, in a transaction of the tenant's."""
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction():
            if tenant:
                await connection.execute(
                    "select set_config('openbot.company', $1, true), set_config('openbot.user', $2, true)",
                    *tenant,
                )
            yield connection
    finally:
        await connection.close()


def api_database(database: ClonedDatabase, connections: int = 2) -> TenantDatabase:
    return TenantDatabase(
        database.dsn("memory_api"), role="memory_api", max_connections=connections, application_name="test"
    )


@pytest.fixture
async def filled(database: ClonedDatabase) -> ClonedDatabase:
    """Every tenant has remembered two things and forgotten one."""
    await state_facts(
        database.dsn("authority_writer"),
        Company("acme", members=("lin", "omar"), bots={"assistant": True}),
        Company("globex", members=("lin",), bots={"assistant": True}),
    )
    async with api_database(database) as api:
        for company, user in TENANTS:
            asker = Asker(company, user, "assistant", frozenset())
            made = [
                await remember(
                    api,
                    MemoryStore(api),
                    asker,
                    text=f"{word} of {user}",
                    target=Target(),
                    request_id=uuid4(),
                )
                for word in ("tea", "coffee")
            ]
            await forget_memories(
                api,
                ForgetStore(api),
                asker,
                targets=[ForgetTarget(made[0].memory_id)],
                request_id=uuid4(),
            )
    return database


async def tables_of(connection: Any, *columns: str) -> list[str]:
    """The tables of the schema that have all of ``columns``."""
    rows = await connection.fetch(
        """
        select relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
        where nspname = 'openbot' and relkind = 'r' and $1::text[] <@ array(
          select attname::text from pg_attribute where attrelid = pg_class.oid and attnum > 0
        )
        """,
        list(columns),
    )
    return [row["relname"] for row in rows]


async def test_row_level_security_is_enabled_and_forced_on_every_table(database: ClonedDatabase) -> None:
    async with connected(database.admin_dsn) as admin:
        open_tables = await admin.fetch(
            """
            select relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
            where nspname = 'openbot' and relkind = 'r' and not (relrowsecurity and relforcerowsecurity)
            """
        )
        assert [row["relname"] for row in open_tables] == []
        content = await tables_of(admin, "memory_id")
        assert set(content) <= set(await tables_of(admin, "company_id", "user_id"))


@pytest.mark.parametrize("role", SERVICE_ROLES)
async def test_the_roles_own_nothing_and_bypass_nothing(database: ClonedDatabase, role: str) -> None:
    async with connected(database.dsn(role)) as connection:
        assert await connection.fetchval(
            "select not (rolsuper or rolbypassrls or rolcreaterole or rolcreatedb)"
            " from pg_roles where rolname = current_user"
        )
        assert (
            await connection.fetchval(
                "select count(*) from pg_class where pg_has_role(current_user, relowner, 'member')"
            )
            == 0
        )
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("create table openbot.mine (id int)")


async def test_a_login_that_could_bypass_row_level_security_is_refused(database: ClonedDatabase) -> None:
    with pytest.raises(UnsafeRole):
        async with TenantDatabase(database.admin_dsn, role="memory_api", application_name="test"):
            pass
    with pytest.raises(UnsafeRole):
        async with TenantDatabase(database.dsn("sync_daemon"), role="memory_api", application_name="test"):
            pass


@pytest.mark.parametrize(
    "grant",
    [
        "grant sync_daemon to {login}",
        "grant authority_writer to {login}",
        "alter table openbot.forgets owner to {login}",
        "alter function openbot.tenant_company() owner to {login}",
        "alter schema openbot owner to {login}",
        "grant create on schema openbot to {login}",
        "alter role {login} bypassrls",
    ],
)
async def test_one_right_too_many_keeps_the_service_from_starting(
    database: ClonedDatabase, grant: str
) -> None:
    login = f"extra_{database.name}"
    connection = await asyncpg.connect(database.admin_dsn)
    try:
        await connection.execute(f"create role {login} login password 'extra' in role memory_api")
        dsn = database.dsn("memory_api").partition("://")
        extra = f"{dsn[0]}://{login}:extra@{dsn[2].rpartition('@')[2]}"
        async with TenantDatabase(extra, role="memory_api", application_name="test"):
            pass
        await connection.execute(grant.format(login=login))
        with pytest.raises(UnsafeRole):
            async with TenantDatabase(extra, role="memory_api", application_name="test"):
                pass
    finally:
        await connection.execute(f"reassign owned by {login} to current_user")
        await connection.execute(f"drop owned by {login}")
        await connection.execute(f"drop role {login}")
        await connection.close()


async def test_a_bare_select_shows_one_person_only_and_without_a_tenant_nothing(
    filled: ClonedDatabase,
) -> None:
    async with connected(filled.admin_dsn) as admin:
        personal = await tables_of(admin, "company_id", "user_id")
    personal = [table for table in personal if table not in {"clearance_evidence", "company_members"}]
    personal = [t for t in personal if not t.startswith(("team", "source"))]
    assert {"memories", "outbox", "forgets", "requests", "scopes"} <= set(personal)
    for tenant in TENANTS:
        async with connected(filled.dsn("memory_api"), tenant) as connection:
            for table in personal:
                rows = await connection.fetch(f"select company_id, user_id from openbot.{table}")
                assert rows, table
                assert {(row["company_id"], row["user_id"]) for row in rows} == {tenant}, table
    async with connected(filled.dsn("memory_api")) as connection:
        for table in personal:
            assert await connection.fetchval(f"select count(*) from openbot.{table}") == 0, table


async def test_nobody_writes_into_another_tenant(filled: ClonedDatabase) -> None:
    async with connected(filled.admin_dsn) as admin:
        scope = await admin.fetchval("select scope_id from openbot.scopes where company_id = 'globex'")
    async with connected(filled.dsn("memory_api"), ("acme", "lin")) as connection:
        updated = await connection.execute(
            "update openbot.memories set state = 'forgotten', text = null, forgotten_at = now(),"
            " version = version + 1 where company_id = 'globex'"
        )
        assert updated == "UPDATE 0"
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(
                "insert into openbot.memories (memory_id, company_id, user_id, scope_id, text)"
                " values (gen_random_uuid(), 'globex', 'lin', $1, 'planted')",
                scope,
            )


async def columns_with(connection: Any, table: str, privilege: str) -> list[str]:
    """The columns of a table on which the connection's role has a privilege."""
    rows = await connection.fetch(
        "select attname from pg_attribute where attrelid = $1::text::regclass and attnum > 0"
        " and has_column_privilege(attrelid, attnum, $2) order by attnum",
        f"openbot.{table}",
        privilege,
    )
    return [row["attname"] for row in rows]


@pytest.mark.parametrize(
    ("role", "tenant", "others"),
    [
        ("memory_api", ("acme", "lin"), "user_id = 'omar'"),
        ("memory_api", ("acme", "lin"), "company_id = 'globex'"),
        ("authority_writer", ("acme", "lin"), "company_id = 'globex'"),
        ("memory_api", None, "company_id is not null"),
        ("authority_writer", None, "company_id is not null"),
    ],
)
async def test_no_table_takes_or_gives_up_a_row_of_another_tenant(
    filled: ClonedDatabase, role: str, tenant: tuple[str, str] | None, others: str
) -> None:
    """Whatever a table may be written by the role, column by column."""
    tried = set()
    async with connected(filled.admin_dsn) as admin, connected(filled.dsn(role), tenant) as connection:
        keys = ("company_id",) if "company" in others else ("company_id", "user_id")
        for table in await tables_of(admin, *keys):
            insertable = await columns_with(connection, table, "insert")
            updatable = await columns_with(connection, table, "update")
            foreign = await admin.fetchrow(f"select * from openbot.{table} where {others} limit 1")
            if foreign is None or not (insertable or updatable):
                continue
            tried.add(table)
            for column in updatable:
                touched = await connection.execute(
                    f"update openbot.{table} set {column} = {column} where {others}"
                )
                assert touched == "UPDATE 0", (table, column)
            if insertable:
                places = ", ".join(f"${number}" for number in range(1, len(insertable) + 1))
                attempt = connection.transaction()
                await attempt.start()
                with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
                    await connection.execute(
                        f"insert into openbot.{table} ({', '.join(insertable)}) values ({places})",
                        *(foreign[column] for column in insertable),
                    )
                await attempt.rollback()
    expected = {"scopes", "memories", "index_entries", "outbox", "forgets", "forget_items", "requests"}
    if role == "authority_writer":
        expected = {"companies", "company_members", "bots"}
    assert tried >= expected


async def test_a_memory_cannot_be_put_into_another_persons_scope(filled: ClonedDatabase) -> None:
    async with connected(filled.admin_dsn) as admin:
        scope = await admin.fetchval("select scope_id from openbot.scopes where company_id = 'globex'")
    async with connected(filled.dsn("memory_api"), ("acme", "lin")) as connection:
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await connection.execute(
                "insert into openbot.memories (memory_id, company_id, user_id, scope_id, text)"
                " values (gen_random_uuid(), 'acme', 'lin', $1, 'planted')",
                scope,
            )


async def test_a_pooled_connection_never_carries_one_tenant_into_anothers_transaction(
    filled: ClonedDatabase,
) -> None:
    async with api_database(filled, connections=2) as api:

        async def one(number: int) -> None:
            company, user = TENANTS[number % len(TENANTS)]
            async with api.of(company, user) as connection:
                await asyncio.sleep(0)
                rows = await connection.fetch("select company_id, user_id from openbot.memories")
                assert {(row["company_id"], row["user_id"]) for row in rows} == {(company, user)}
            async with api.crossing_tenants() as connection:
                assert await connection.fetchval("select count(*) from openbot.memories") == 0

        await asyncio.gather(*(one(number) for number in range(60)))


async def test_operators_see_counts_and_never_a_memory(filled: ClonedDatabase) -> None:
    async with connected(filled.dsn("memory_operator")) as connection:
        assert await connection.fetchval("select count(state) from openbot.outbox") == 6
        assert await connection.fetchval("select count(state) from openbot.forgets") == 3
    for statement in (
        "select text from openbot.memories",
        "select count(*) from openbot.memories",
        "select user_id from openbot.outbox",
        "select * from openbot.requests",
        "select * from openbot.scopes",
    ):
        async with connected(filled.dsn("memory_operator"), ("acme", "lin")) as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.fetch(statement)


ERASE = (
    "update openbot.memories set state = 'forgotten', text = null, forgotten_at = now(),"
    " version = version + 1 where state = 'active'"
)


async def test_the_daemon_reads_words_of_one_tenant_and_erases_only_what_is_revoked(
    filled: ClonedDatabase,
) -> None:
    async with connected(filled.dsn("sync_daemon")) as connection:
        assert await connection.fetchval("select count(*) from openbot.outbox") == 6
        assert await connection.fetchval("select count(*) from openbot.memories") == 0
    async with connected(filled.dsn("sync_daemon"), ("acme", "omar")) as connection:
        words = [row["text"] for row in await connection.fetch("select text from openbot.memories")]
        assert sorted(filter(None, words)) == ["coffee of omar"]
        assert await connection.execute(ERASE) == "UPDATE 0"
        assert await connection.execute("update openbot.memories set text = 'other'") == "UPDATE 0"
    async with connected(filled.admin_dsn) as admin:
        await admin.execute(
            "update openbot.scopes set revoked_at = now(), kind = 'team_source', team_id = 't',"
            " source_id = 's' where company_id = 'acme'"
        )
    async with connected(filled.dsn("sync_daemon"), ("acme", "omar")) as connection:
        for change in ("text = 'other', version = version + 1", "version = version + 1"):
            attempt = connection.transaction()
            await attempt.start()
            with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.CheckViolationError)):
                await connection.execute(f"update openbot.memories set {change} where state = 'active'")
            await attempt.rollback()
        assert await connection.execute(ERASE) == "UPDATE 1", "Omar's own, not Lin's"


async def test_the_outbox_has_no_column_that_could_hold_a_sentence(database: ClonedDatabase) -> None:
    async with connected(database.admin_dsn) as admin:
        columns = await admin.fetch(
            "select column_name, domain_name, data_type from information_schema.columns"
            " where table_schema = 'openbot' and table_name = 'outbox'"
        )
    free = [
        row["column_name"]
        for row in columns
        if row["data_type"] in {"text", "jsonb", "json", "bytea", "character varying", "tsvector"}
        and row["domain_name"] is None
    ]
    assert free == ["state"], "and that one is checked against a list"


async def test_what_is_forgotten_left_no_word_in_any_column(filled: ClonedDatabase) -> None:
    async with connected(filled.admin_dsn) as admin:
        for table in await tables_of(admin):
            held = await admin.fetchval(
                f"select count(*) from openbot.{table} as t where t::text like '%tea%'"
            )
            assert held == 0, table
        kept = await admin.fetchval("select count(*) from openbot.memories where text like 'coffee%'")
        assert kept == len(TENANTS)


async def test_a_forgotten_memory_cannot_come_back_nor_words_be_edited(filled: ClonedDatabase) -> None:
    for statement in (
        (
            "update openbot.memories set state = 'active', text = 'tea', forgotten_at = null"
            " where state = 'forgotten'"
        ),
        "update openbot.memories set text = 'another' where state = 'active'",
        "update openbot.memories set state = 'forgotten', forgotten_at = now() where state = 'active'",
    ):
        async with connected(filled.admin_dsn) as admin:
            with pytest.raises(asyncpg.CheckViolationError):
                await admin.execute(statement)


async def test_cleared_needs_evidence_for_every_memory_and_domain(filled: ClonedDatabase) -> None:
    async with connected(filled.admin_dsn) as admin:
        forget: UUID = await admin.fetchval(
            "select forget_id from openbot.forgets where company_id = 'globex'"
        )
        domains = await admin.fetchval("select enum_range(null::openbot.clearance_domain)::text[]")
    assert len(domains) == 4
    for missing in [*domains, None]:
        # Each try is a transaction of its own; the refused ones leave nothing behind.
        async with connected(filled.dsn("sync_daemon"), ("globex", "lin")) as daemon:
            await daemon.execute("update openbot.forgets set state = 'clearing' where forget_id = $1", forget)
            for domain in domains:
                await daemon.execute(
                    "insert into openbot.clearance_evidence"
                    " (company_id, user_id, forget_id, memory_id, domain, cleared, reason, observed, prober)"
                    " select 'globex', 'lin', $1, memory_id, $2, $3, $4, '{}', 'test/1'"
                    " from openbot.forget_items where forget_id = $1",
                    forget,
                    domain,
                    domain != missing,
                    "DOCUMENT_PRESENT" if domain == missing else None,
                )
            clear = "update openbot.forgets set state = 'cleared', cleared_at = now() where forget_id = $1"
            if missing is None:
                assert await daemon.execute(clear, forget) == "UPDATE 1"
            else:
                with pytest.raises(asyncpg.CheckViolationError):
                    await daemon.execute(clear, forget)


async def test_evidence_is_append_only_for_the_daemon(filled: ClonedDatabase) -> None:
    for statement in (
        "update openbot.clearance_evidence set cleared = true",
        "delete from openbot.clearance_evidence",
    ):
        async with connected(filled.dsn("sync_daemon"), ("acme", "lin")) as daemon:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await daemon.execute(statement)


async def test_an_operator_may_give_a_dead_row_another_chance_and_nothing_else(
    filled: ClonedDatabase,
) -> None:
    again = "update openbot.outbox set state = 'ready', reason = null, attempts = 0, due_at = now()"
    async with connected(filled.admin_dsn) as admin:
        await admin.execute(
            "update openbot.outbox set state = 'leased', lease_id = gen_random_uuid(),"
            " lease_generation = generation, lease_expires_at = now()"
        )
        await admin.execute(
            "update openbot.outbox set state = 'dead', reason = 'RECORD_MISSING', lease_id = null,"
            " lease_generation = null, lease_expires_at = null where company_id = 'globex'"
        )
    async with connected(filled.dsn("memory_operator")) as operator:
        assert await operator.execute(again) == "UPDATE 2", "the dead ones of globex"
    async with connected(filled.dsn("memory_operator")) as operator:
        assert await operator.execute(again) == "UPDATE 0"
