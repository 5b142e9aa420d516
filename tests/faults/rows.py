"""Rows made directly, for what would take a whole system long to reach."""

from uuid import UUID, uuid4

import asyncpg
from devstack.template import ClonedDatabase

COMPANY, USER = "acme", "lin"


class Rows:
    """One person's rows in a database of the test's own, past every rule but the constraints."""

    def __init__(self, connection: asyncpg.Connection, scope_id: UUID) -> None:
        self.connection = connection
        self.scope_id = scope_id

    async def remember(self, count: int = 1) -> list[UUID]:
        """Memories that wait in the outbox."""
        made = await self.connection.fetch(
            "insert into openbot.memories (company_id, user_id, scope_id, text)"
            " select $1, $2, $3, 'tea' from generate_series(1, $4) returning memory_id",
            COMPANY,
            USER,
            self.scope_id,
            count,
        )
        memory_ids = [row["memory_id"] for row in made]
        await self.connection.execute(
            "insert into openbot.index_entries (memory_id, company_id, user_id)"
            " select unnest($1::uuid[]), $2, $3",
            memory_ids,
            COMPANY,
            USER,
        )
        await self.enqueue(*memory_ids)
        return memory_ids

    async def enqueue(self, *memory_ids: UUID) -> None:
        async with self.connection.transaction():
            await self.connection.execute(
                "select set_config('openbot.company', $1, true), set_config('openbot.user', $2, true)",
                COMPANY,
                USER,
            )
            await self.connection.execute("select openbot.enqueue($1::uuid[])", list(memory_ids))

    async def forget(self, *memory_ids: UUID) -> UUID:
        """A forget whose memories are erased and deleted from the index, as far as rows go."""
        forget_id = uuid4()
        await self.connection.execute(
            "update openbot.memories set state = 'forgotten', text = null, forgotten_at = now(),"
            " version = version + 1 where memory_id = any($1)",
            list(memory_ids),
        )
        await self.connection.execute(
            "insert into openbot.forgets (forget_id, company_id, user_id) values ($1, $2, $3)",
            forget_id,
            COMPANY,
            USER,
        )
        await self.connection.execute(
            "insert into openbot.forget_items (forget_id, memory_id, company_id, user_id)"
            " select $1, unnest($2::uuid[]), $3, $4",
            forget_id,
            list(memory_ids),
            COMPANY,
            USER,
        )
        await self.connection.execute(
            "update openbot.index_entries set state = 'deleted' where memory_id = any($1)", list(memory_ids)
        )
        await self.connection.execute(
            "delete from openbot.outbox where memory_id = any($1)", list(memory_ids)
        )
        return forget_id

    async def value(self, statement: str, *arguments: object) -> object:
        return await self.connection.fetchval(statement, *arguments)


async def rows_in(database: ClonedDatabase) -> Rows:
    """With one scope whose bank was touched. The caller closes the connection."""
    connection = await asyncpg.connect(database.admin_dsn)
    scope_id = await connection.fetchval(
        "insert into openbot.scopes (company_id, user_id, kind, bank_settings_version)"
        " values ($1, $2, 'general', 'some') returning scope_id",
        COMPANY,
        USER,
    )
    return Rows(connection, scope_id)
