"""Remember, list, recall by words and forget, straight on a real database."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID, uuid4

import asyncpg
import pytest
from devstack.authority_seed import Company, Source, seed_authority
from devstack.template import ClonedDatabase
from memory_api.errors import (
    EtagMismatch,
    MemoryNotFound,
    PageTokenInvalid,
    RequestIdReused,
    ScopeNotUsable,
    SourceNotFound,
)
from memory_api.operations.forget_memories import forget_memories
from memory_api.operations.list_memories import list_memories
from memory_api.operations.remember import remember
from memory_api.records import Asker, Forget, ForgetTarget, Memory
from memory_api.store.forgets import ForgetStore
from memory_api.store.memories import MemoryStore
from memory_api.store.recall import RecallStore
from tenant_db import TenantDatabase

pytestmark = pytest.mark.postgres

LIN = Asker("acme", "lin", "assistant", frozenset({"weekly"}))
OMAR = Asker("acme", "omar", "assistant", frozenset({"weekly"}))


class Service:
    """The operations over one database."""

    def __init__(self, database: TenantDatabase, admin_dsn: str) -> None:
        self.database = database
        self.memories = MemoryStore(database)
        self.forgets = ForgetStore(database)
        self.recalls = RecallStore(database)
        self._admin_dsn = admin_dsn

    async def remember(
        self, text: str, *, source: str | None = None, asker: Asker = LIN, request_id: UUID | None = None
    ) -> Memory:
        return await remember(
            self.database, self.memories, asker, text=text, source=source, request_id=request_id or uuid4()
        )

    async def forget(
        self, *memories: Memory, asker: Asker = LIN, etag: str | None = None, request_id: UUID | None = None
    ) -> Forget:
        return await forget_memories(
            self.database,
            self.forgets,
            asker,
            targets=[ForgetTarget(memory.memory_id, etag) for memory in memories],
            request_id=request_id or uuid4(),
        )

    async def by_words(self, query: str, asker: Asker = LIN) -> list[str | None]:
        ids = await self.recalls.lexical_matches(asker, query, unanswered_banks=(), limit=10)
        found = await self.memories.read(asker, ids)
        return [found[each].text for each in ids]

    async def count(self, table: str) -> int:
        connection = await asyncpg.connect(self._admin_dsn)
        try:
            return int(await connection.fetchval(f"select count(*) from openbot.{table}"))
        finally:
            await connection.close()


@pytest.fixture
async def service(database: ClonedDatabase) -> AsyncIterator[Service]:
    await seed_authority(
        database.dsn("authority_writer"),
        Company(
            "acme",
            members=("lin", "omar"),
            bots={"assistant": True, "narrow": False},
            teams={"product": ("lin",)},
            sources={"weekly": Source("product", users=("lin",), bots=("assistant",))},
        ),
    )
    async with TenantDatabase(
        database.dsn("memory_api"), role="memory_api", max_connections=8, application_name="test"
    ) as opened:
        yield Service(opened, database.admin_dsn)


@pytest.mark.parametrize(
    "words",
    [
        "x",
        " two  spaces kept ",
        "产品周会从周五改到周一。",
        "'; drop table openbot.memories; --",
        "a\u202eb\u200bc",
        "🙂" * 4000,
    ],
)
async def test_the_words_are_kept_exactly_as_given(service: Service, words: str) -> None:
    memory = await service.remember(words)
    read = await service.memories.read(LIN, [memory.memory_id])
    assert read[memory.memory_id].text == words


async def test_twenty_concurrent_retries_make_one_memory_and_one_outbox_row(service: Service) -> None:
    request_id = uuid4()
    made = await asyncio.gather(*(service.remember("tea", request_id=request_id) for _ in range(20)))
    assert len({memory.memory_id for memory in made}) == 1
    assert [await service.count(table) for table in ("memories", "outbox", "index_entries")] == [1, 1, 1]


async def test_a_request_id_stands_for_one_request(service: Service) -> None:
    request_id = uuid4()
    memory = await service.remember("tea", request_id=request_id)
    with pytest.raises(RequestIdReused):
        await service.remember("coffee", request_id=request_id)
    with pytest.raises(RequestIdReused):
        await service.remember("tea", source="weekly", request_id=request_id)
    with pytest.raises(RequestIdReused):
        await service.forget(memory, request_id=request_id)
    other = await service.remember("tea", asker=OMAR, request_id=request_id)
    assert other.memory_id != memory.memory_id, "another person's ids are another's"
    assert await service.count("forgets") == 0


async def test_a_refused_request_leaves_its_id_free_and_nothing_behind(service: Service) -> None:
    request_id = uuid4()
    with pytest.raises(SourceNotFound):
        await service.remember("tea", source="unknown", request_id=request_id)
    with pytest.raises(SourceNotFound):
        await service.remember("tea", source="weekly", asker=OMAR, request_id=request_id)
    with pytest.raises(ScopeNotUsable):
        await service.remember(
            "tea", asker=Asker("acme", "lin", "narrow", frozenset()), request_id=request_id
        )
    assert [await service.count(table) for table in ("memories", "requests", "outbox", "scopes")] == [0] * 4
    assert (await service.remember("tea", request_id=request_id)).text == "tea"


async def test_a_late_duplicate_does_not_bring_back_what_was_forgotten(service: Service) -> None:
    request_id = uuid4()
    memory = await service.remember("tea", request_id=request_id)
    await service.forget(memory)
    late = await service.remember("tea", request_id=request_id)
    assert (late.memory_id, late.text) == (memory.memory_id, None)
    assert await service.count("memories") == 1


async def test_forgetting_is_all_or_nothing(service: Service) -> None:
    mine = await service.remember("tea")
    others = await service.remember("coffee", asker=OMAR)
    with pytest.raises(MemoryNotFound):
        await service.forget(mine, others)
    with pytest.raises(EtagMismatch):
        await service.forget(mine, etag="0" * 16)
    assert (await service.memories.read(LIN, [mine.memory_id]))[mine.memory_id].text == "tea"
    assert await service.count("forgets") == 0

    forget = await service.forget(mine, etag=mine.etag)
    assert forget.memory_count == 1
    assert [(each.domain, each.pending_reason) for each in forget.clearances] == [
        (domain, "NOT_PROBED_YET")
        for domain in ("authority_active", "index_active", "index_operations", "backups")
    ]


async def test_forgetting_again_makes_another_forget_of_the_same_memory(service: Service) -> None:
    memory = await service.remember("tea")
    first, second = await service.forget(memory), await service.forget(memory)
    assert first.forget_id != second.forget_id
    request_id = uuid4()
    third = await service.forget(memory, request_id=request_id)
    assert (await service.forget(memory, request_id=request_id)).forget_id == third.forget_id


async def test_overlapping_forgets_do_not_deadlock(service: Service) -> None:
    made = [await service.remember(f"tea {number}") for number in range(6)]
    forgets = await asyncio.gather(
        *(service.forget(*(made[turn:] + made[:turn])) for turn in range(6)),
        *(service.forget(*reversed(made)) for _ in range(4)),
    )
    assert {forget.memory_count for forget in forgets} == {6}


async def test_pages_are_complete_disjoint_and_newest_first(service: Service) -> None:
    made = [(await service.remember(f"tea {number}")).text for number in range(7)]
    pages: list[Sequence[Memory]] = []
    token = ""
    while True:
        page = await list_memories(service.memories, LIN, page_size=3, page_token=token)
        pages.append(page.memories)
        if page.next_page_token is None:
            break
        token = page.next_page_token
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [memory.text for page in pages for memory in page] == made[::-1]


async def test_a_page_token_is_good_for_its_own_list_only(service: Service) -> None:
    for number in range(3):
        await service.remember(f"tea {number}")
    token = (await list_memories(service.memories, LIN, page_size=1, page_token="")).next_page_token
    assert token is not None
    flipped = ("A" if token[0] != "A" else "B") + token[1:]
    for asker, wrong in (
        (OMAR, token),
        (LIN, flipped),
        (LIN, token[:-4]),
        (LIN, "é"),
        (LIN, "////"),
        (LIN, "A" * 44),
    ):
        with pytest.raises(PageTokenInvalid):
            await list_memories(service.memories, asker, page_size=1, page_token=wrong)


@pytest.mark.parametrize(
    ("words", "query", "found"),
    [
        ("产品周会从周五改到周一。", "周会改到哪天", True),
        ("产品周会从周五改到周一。", "午饭吃什么", False),
        ("Weekly meetings moved to Monday.", "when is the meeting?", True),
        ("Weekly meetings moved to Monday.", "the of and", False),
        ("ｗｅｅｋｌｙ　ｍｅｅｔｉｎｇ", "weekly meeting", True),
        ("用 Markdown 写周报", "markdown", True),
        ("用 Markdown 写周报", "周报格式", True),
        ("risk first", "' | risk & ! (", True),
        ("risk first", "🙂", False),
    ],
)
async def test_words_are_found_in_chinese_english_and_both(
    service: Service, words: str, query: str, found: bool
) -> None:
    await service.remember(words)
    await service.remember("纯属无关", asker=OMAR)
    assert await service.by_words(query) == ([words] if found else [])
