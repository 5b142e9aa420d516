"""A company of a test's own, and what its people do through the operations themselves, without transport."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast
from uuid import UUID, uuid4

import asyncpg
from devstack.control_plane import Company, Source
from devstack.template import ClonedDatabase
from hindsight_index import HindsightIndex, HindsightUnavailable, Hit
from memory_api.index_arm import IndexArm
from memory_api.operations.forget_memories import forget_memories
from memory_api.operations.get_forget import get_forget
from memory_api.operations.get_memory import get_memory
from memory_api.operations.list_memories import list_memories
from memory_api.operations.recall import recall
from memory_api.operations.remember import remember
from memory_api.records import Asker, Forget, ForgetTarget, Memory, Page, Recalled, Target
from memory_api.store.forgets import ForgetStore
from memory_api.store.memories import MemoryStore
from memory_api.store.recall import RecallStore
from tenant_db import TenantDatabase

from tests.authority import state_facts


class SilentIndex:
    """An index that never answers."""

    async def recall(self, bank: str, query: str, *, max_tokens: int, timeout_s: float) -> Sequence[Hit]:
        raise HindsightUnavailable


class Office:
    """Lin and Omar are members; Lin's product team has the source ``weekly``, granted to the assistant."""

    def __init__(self, database: ClonedDatabase, api: TenantDatabase) -> None:
        self.company = f"office-{uuid4().hex[:12]}"
        self.database = database
        self.api = api
        self.memories = MemoryStore(api)
        self.lin = Asker(self.company, "lin", "assistant", frozenset({"weekly"}))
        self.omar = replace(self.lin, user="omar")
        self.facts = Company(
            self.company,
            members=("lin", "omar"),
            bots={"assistant": True, "narrow": False},
            teams={"product": ("lin",), "sales": ("lin",)},
            sources={"weekly": Source("product", users=("lin",), bots=("assistant",))},
        )

    async def settle(self, **changes: Any) -> None:
        """Makes these facts, in place of the usual ones, what the authority tables say."""
        await state_facts(self.database.dsn("authority_writer"), replace(self.facts, **changes))

    async def remember(
        self,
        text: str,
        *,
        asker: Asker | None = None,
        source: str | None = None,
        this_bot_only: bool = False,
        request_id: UUID | None = None,
        memories: MemoryStore | None = None,
    ) -> Memory:
        return await remember(
            self.api,
            memories or self.memories,
            asker or self.lin,
            text=text,
            target=Target(source, this_bot_only=this_bot_only),
            request_id=request_id or uuid4(),
        )

    async def forget(
        self,
        *memory_ids: UUID,
        asker: Asker | None = None,
        etag: str | None = None,
        request_id: UUID | None = None,
    ) -> Forget:
        return await forget_memories(
            self.api,
            ForgetStore(self.api),
            asker or self.lin,
            targets=[ForgetTarget(each, etag) for each in memory_ids],
            request_id=request_id or uuid4(),
        )

    async def watch(self, forget_id: UUID, asker: Asker | None = None) -> Forget:
        return await get_forget(ForgetStore(self.api), asker or self.lin, forget_id)

    async def get(self, memory_id: UUID, asker: Asker | None = None) -> Memory:
        return await get_memory(self.memories, asker or self.lin, memory_id)

    async def page(self, *, size: int = 0, token: str = "", asker: Asker | None = None) -> Page:
        return await list_memories(self.memories, asker or self.lin, page_size=size, page_token=token)

    async def recall(
        self,
        query: str,
        *,
        limit: int = 0,
        asker: Asker | None = None,
        index: object = None,
        store: RecallStore | None = None,
    ) -> Recalled:
        return await recall(
            store or RecallStore(self.api),
            self.memories,
            IndexArm(cast(HindsightIndex, index or SilentIndex()), timeout_s=1),
            asker or self.lin,
            query=query,
            limit=limit,
            time_left_s=10,
        )

    async def recalled(self, query: str, *, asker: Asker | None = None) -> list[str | None]:
        return [memory.text for memory in (await self.recall(query, asker=asker)).memories]

    async def as_admin(self, statement: str, *values: object) -> list[asyncpg.Record]:
        """Runs one statement past every policy, to see or arrange what no service could."""
        connection = await asyncpg.connect(self.database.admin_dsn)
        try:
            return list(await connection.fetch(statement, *values))
        finally:
            await connection.close()

    async def count(self, table: str) -> int:
        """How many rows of this company the table has."""
        rows = await self.as_admin(
            f"select count(*) as n from openbot.{table} where company_id = $1", self.company
        )
        return int(rows[0]["n"])
