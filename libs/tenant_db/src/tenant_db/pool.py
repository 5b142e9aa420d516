"""A PostgreSQL pool whose every transaction is bound to one tenant, or openly to none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeAlias

import asyncpg

from tenant_db.errors import DatabaseConflict, DatabaseError, DatabaseUnavailable, UnsafeRole

Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[Any]"

# Besides the obvious: an owner of a function that policies or triggers call could change what it says,
# and a member of a second role sees through that one's policies as well.
_SAFE_ROLE = """
with mine as (select oid from pg_roles where pg_has_role(current_user, oid, 'member'))
select
  pg_has_role(current_user, $1, 'member')
  and not exists (select from mine join pg_roles using (oid) where rolsuper or rolbypassrls)
  and not exists (
    select from pg_namespace where nspname = 'openbot'
    and (nspowner in (table mine) or has_schema_privilege(oid, 'create'))
  )
  and not exists (
    select from pg_class where relnamespace = 'openbot'::regnamespace and relowner in (table mine)
    union all
    select from pg_proc where pronamespace = 'openbot'::regnamespace and proowner in (table mine)
  )
  and not exists (
    select from pg_policy join pg_class on pg_class.oid = polrelid
    where relnamespace = 'openbot'::regnamespace
      and exists (
        select from unnest(polroles) as named
        where named <> $1::text::regrole and named in (table mine)
      )
  )
"""

# 40001 serialization_failure, 40P01 deadlock_detected.
_CONFLICTS = frozenset({"40001", "40P01"})
# 25006 read_only_sql_transaction: a standby that was the primary.
_UNAVAILABLE = frozenset({"25006"})
# 08 connection exception, 57 operator intervention, 53 insufficient resources.
_UNAVAILABLE_CLASSES = frozenset({"08", "57", "53"})


class TenantDatabase:
    """Opens transactions for one service role. Use as an async context manager.

    ``dsn`` must log in as a member of ``role`` and of no other service's, owning nothing in the
    schema and unable to bypass row-level security; otherwise entering raises :class:`UnsafeRole` (I4).
    """

    def __init__(
        self,
        dsn: str,
        *,
        role: str,
        max_connections: int = 10,
        statement_timeout_s: float = 5.0,
        application_name: str,
    ) -> None:
        self._dsn = dsn
        self._role = role
        self._max = max_connections
        self._timeout_s = statement_timeout_s
        self._application_name = application_name
        self._pool: asyncpg.Pool[Any] | None = None

    async def __aenter__(self) -> Self:
        with _translated():
            self._pool = await asyncpg.create_pool(
                self._dsn,
                min_size=1,
                max_size=self._max,
                command_timeout=self._timeout_s,
                server_settings={
                    "application_name": self._application_name,
                    "statement_timeout": str(int(self._timeout_s * 1000)),
                    "idle_in_transaction_session_timeout": "60000",
                },
            )
        try:
            async with self.crossing_tenants() as connection:
                if not await connection.fetchval(_SAFE_ROLE, self._role):
                    raise UnsafeRole
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            try:
                await pool.close()
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                pool.terminate()

    @asynccontextmanager
    async def of(self, company: str, user: str) -> AsyncIterator[Connection]:
        """One transaction that sees the rows of one person in one company only (I4).

        Commits on a clean exit, rolls back otherwise. The setting ends with the transaction, so a
        pooled connection never carries it into another's.

        Raises :class:`DatabaseError` and its kinds in place of everything the driver raises.
        """
        async with self._transaction() as connection:
            await _bind(connection, company, user)
            yield connection

    @asynccontextmanager
    async def of_company(self, company: str) -> AsyncIterator[Connection]:
        """One transaction for the facts of one company: it is bound to nobody's records."""
        async with self._transaction() as connection:
            await _bind(connection, company, "")
            yield connection

    @asynccontextmanager
    async def crossing_tenants(self) -> AsyncIterator[Connection]:
        """One transaction bound to no tenant: it sees only rows that hold no content."""
        async with self._transaction() as connection:
            yield connection

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        if self._pool is None:
            raise DatabaseUnavailable
        with _translated():
            async with self._pool.acquire(timeout=self._timeout_s) as connection:
                transaction = connection.transaction()
                await transaction.start()
                try:
                    yield connection
                except asyncio.CancelledError:
                    # Whoever cancels will not wait: not for a ROLLBACK either, which a server that
                    # hangs would not answer. PostgreSQL rolls back what has lost its connection.
                    connection.terminate()
                    raise
                except BaseException:
                    await transaction.rollback()
                    raise
                else:
                    await transaction.commit()

    async def reachable(self) -> bool:
        """Whether a statement gets through now."""
        try:
            async with self.crossing_tenants() as connection:
                return bool(await connection.fetchval("select true"))
        except DatabaseError:
            return False


async def _bind(connection: Connection, company: str, user: str) -> None:
    await connection.execute(
        "select set_config('openbot.company', $1, true), set_config('openbot.user', $2, true)", company, user
    )


class _translated:  # noqa: N801 - reads as a clause: `with _translated():`
    """Replaces what the driver raises by our errors, keeping nothing but the SQLSTATE."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, asyncpg.PostgresError):
            state = error.sqlstate or ""
            if state in _CONFLICTS:
                raise DatabaseConflict(state) from None
            if state in _UNAVAILABLE or state[:2] in _UNAVAILABLE_CLASSES:
                raise DatabaseUnavailable(state) from None
            raise DatabaseError(state) from None
        if isinstance(error, asyncpg.InterfaceError) and isinstance(error, ValueError):
            # The driver's own DataError: an argument of ours that it cannot send. Repeating will not help.
            raise DatabaseError from None
        if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError | OSError | TimeoutError):
            raise DatabaseUnavailable from None
