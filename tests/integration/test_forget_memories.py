"""ForgetMemories as an operation: all or nothing, at once, and without waiting for anybody in a circle."""

import asyncio
import random
from dataclasses import replace
from uuid import UUID, uuid4

import asyncpg
import pytest
from memory_api.errors import EtagMismatch, ForgetNotFound, MemoryNotFound, RequestIdReused
from memory_api.operations.get_forget import get_forget
from memory_api.records import ForgetState, IndexState
from memory_api.store.forgets import ForgetStore
from sync_daemon.store import records

from tests.integration.office import Office

pytestmark = pytest.mark.postgres

ENGLISH, CHINESE = "Quarterly pangolins juggle", "林工每周三喝凤凰单丛"
#: What is left of these words in a search vector: stems, and pairs of characters.
TRACES = ("pangolin", "juggl", "quarter", "凤凰", "单丛", "周三")


async def places(office: Office) -> set[tuple[str, str]]:
    """(table, trace) wherever a row, printed with all its columns, holds a trace."""
    tables = await office.as_admin(
        "select relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace"
        " where nspname = 'openbot' and relkind in ('r', 'p', 'm')"
    )
    assert len(tables) > 10
    return {
        (table, trace)
        for (table,) in tables
        for (trace,) in await office.as_admin(
            f"select distinct trace from unnest($1::text[]) as trace, openbot.{table} as held"
            " where strpos(lower(held::text), trace) > 0",
            list(TRACES),
        )
    }


async def test_no_column_of_any_table_keeps_a_trace_of_forgotten_words(lonely_office: Office) -> None:
    office = lonely_office
    made = [await office.remember(words) for words in (ENGLISH, CHINESE)]
    kept = await office.remember("Weekly reports start with risks")
    assert await places(office) == {("memories", trace) for trace in TRACES}

    await office.forget(*(memory.memory_id for memory in made))

    assert await places(office) == set()
    assert (await office.get(kept.memory_id)).text == kept.text


async def test_once_acknowledged_no_path_returns_the_words(office: Office) -> None:
    memory = await office.remember(ENGLISH)
    forget = await office.forget(memory.memory_id)

    assert forget.state is ForgetState.STOPPED_USE
    assert await office.recalled("pangolins") == []
    assert (await office.page()).memories == ()
    found = await office.get(memory.memory_id)
    assert found.text is None
    assert found.index_state is IndexState.PENDING
    assert found.etag != memory.etag


async def test_one_unknown_name_refuses_the_whole_request(office: Office) -> None:
    mine = await office.remember("tea")
    of_omar = await office.remember("coffee", asker=office.omar)
    restricted = await office.remember("water", source="weekly")
    elsewhere = replace(office.lin, sources=frozenset())
    for asker, other in (
        (office.lin, uuid4()),
        (office.lin, of_omar.memory_id),
        (elsewhere, restricted.memory_id),
    ):
        with pytest.raises(MemoryNotFound):
            await office.forget(mine.memory_id, other, asker=asker)
    assert await office.count("forgets") == 0
    assert (await office.get(mine.memory_id)).text == "tea"
    assert (await office.get(of_omar.memory_id, office.omar)).text == "coffee"


async def test_a_refused_forget_leaves_its_request_id_free(office: Office) -> None:
    request_id = uuid4()
    memory = await office.remember("tea")
    with pytest.raises(MemoryNotFound):
        await office.forget(memory.memory_id, uuid4(), request_id=request_id)
    with pytest.raises(EtagMismatch):
        await office.forget(memory.memory_id, etag="0" * 16, request_id=request_id)
    assert (await office.forget(memory.memory_id, etag=memory.etag, request_id=request_id)).memory_count == 1


async def test_a_repetition_returns_the_same_forget_as_it_is_now(office: Office) -> None:
    request_id = uuid4()
    memories = [await office.remember(f"cup {number}") for number in range(3)]
    ids = [memory.memory_id for memory in memories]
    first = await office.forget(*ids, request_id=request_id)
    assert await office.forget(*reversed(ids), request_id=request_id) == first
    with pytest.raises(RequestIdReused):
        await office.forget(*ids[:2], request_id=request_id)
    assert await office.count("forgets") == 1


async def test_a_request_id_of_a_memory_is_no_forgets(office: Office) -> None:
    request_id = uuid4()
    memory = await office.remember("tea", request_id=request_id)
    with pytest.raises(RequestIdReused):
        await office.forget(memory.memory_id, request_id=request_id)
    assert (await office.get(memory.memory_id)).text == "tea"


async def test_repetitions_at_once_make_one_forget(office: Office) -> None:
    request_id = uuid4()
    memory = await office.remember("tea")
    made = await asyncio.gather(*(office.forget(memory.memory_id, request_id=request_id) for _ in range(12)))
    assert len({forget.forget_id for forget in made}) == 1
    assert await office.count("forgets") == 1


async def test_a_name_given_twice_is_forgotten_once(office: Office) -> None:
    memory = await office.remember("tea")
    assert (await office.forget(memory.memory_id, memory.memory_id)).memory_count == 1


async def test_what_is_forgotten_already_takes_part_in_a_new_forget(office: Office) -> None:
    memory, other = await office.remember("tea"), await office.remember("coffee")
    first = await office.forget(memory.memory_id)
    forgotten_at = await office.as_admin(
        "select forgotten_at, version from openbot.memories where memory_id = $1", memory.memory_id
    )
    second = await office.forget(memory.memory_id, other.memory_id)
    assert first.forget_id != second.forget_id
    assert second.memory_count == 2
    assert forgotten_at == await office.as_admin(
        "select forgotten_at, version from openbot.memories where memory_id = $1", memory.memory_id
    )


async def test_overlapping_forgets_at_once_all_succeed(office: Office) -> None:
    ids = [(await office.remember(f"cup {number}")).memory_id for number in range(8)]
    shuffled = random.Random(7)  # noqa: S311 - the same order every time
    for _ in range(3):
        forgets = await asyncio.gather(*(office.forget(*shuffled.sample(ids, 6)) for _ in range(10)))
        assert {forget.memory_count for forget in forgets} == {6}
    assert await office.recalled("cup") == []


async def waits_for_a_lock(office: Office) -> bool:
    return bool(
        await office.as_admin(
            "select from pg_stat_activity where datname = current_database()"
            " and application_name = 'test' and wait_event_type = 'Lock'"
        )
    )


async def test_a_forget_and_a_daemon_that_settles_its_lease_do_not_wait_for_each_other(
    office: Office,
) -> None:
    memory_id = (await office.remember("tea")).memory_id
    daemon = await asyncpg.connect(office.database.dsn("sync_daemon"))
    try:
        async with daemon.transaction():
            await daemon.execute(
                "select set_config('openbot.company', $1, true), set_config('openbot.user', 'lin', true)",
                office.company,
            )
            await daemon.execute("select from openbot.outbox where memory_id = $1 for update", memory_id)
            forgetting = asyncio.create_task(office.forget(memory_id))
            while not await waits_for_a_lock(office):
                assert not forgetting.done()
            await records.mark_indexed(daemon, memory_id, 1)
    finally:
        await daemon.close()
    await forgetting
    memory = await office.get(memory_id)
    assert (memory.text, memory.index_state) == (None, IndexState.PENDING)


async def test_progress_names_every_domain_before_any_was_asked(office: Office) -> None:
    memories = [await office.remember(f"cup {number}") for number in range(2)]
    forget = await office.forget(*(memory.memory_id for memory in memories))
    assert forget == await get_forget(ForgetStore(office.api), office.lin, forget.forget_id)
    assert [(each.domain, each.cleared_count, each.pending_reason) for each in forget.clearances] == [
        (domain, 0, "NOT_PROBED_YET")
        for domain in ("authority_active", "index_active", "index_operations", "backups")
    ]


@pytest.mark.parametrize("other", ["omar", "stranger"])
async def test_nobody_else_finds_a_forget(office: Office, other: str) -> None:
    memory = await office.remember("tea")
    forget = await office.forget(memory.memory_id)
    forgets = ForgetStore(office.api)
    for asker, forget_id in (
        (replace(office.lin, user=other), forget.forget_id),
        (replace(office.lin, company="elsewhere"), forget.forget_id),
        (office.lin, UUID(int=0)),
    ):
        with pytest.raises(ForgetNotFound):
            await get_forget(forgets, asker, forget_id)
