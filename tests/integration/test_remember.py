"""Remember as an operation on a real database: once per request id, all of it or nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from memory_api.errors import MemoryNotFound, RequestIdReused, ScopeNotUsable, SourceNotFound
from memory_api.store.memories import MemoryStore
from tenant_db import DatabaseError

from tests.integration.office import Office

pytestmark = pytest.mark.postgres

TABLES = ("requests", "scopes", "memories", "index_entries", "outbox", "forgets", "forget_items")


async def counts(office: Office) -> dict[str, int]:
    return {table: await office.count(table) for table in TABLES}


@pytest.mark.parametrize(
    "words",
    [
        "  周会从周五改到周一。\n\n— 林 ",
        "ｆｕｌｌ　ｗｉｄｔｈ and half",
        "e\u0301 is not \u00e9",
        "🍵👩‍💻",
        "tab\there\r\nthere\x01\x7f",
        "字" * 4000,
        "\U00020000\U0010fffd",
        "a" * 4000,
    ],
)
async def test_words_are_kept_exactly_as_given(office: Office, words: str) -> None:
    memory = await office.remember(words)
    assert memory.text == words
    assert (await office.get(memory.memory_id)).text == words


async def test_a_repetition_answers_with_the_same_memory(office: Office) -> None:
    request_id = uuid4()
    first = await office.remember("tea", request_id=request_id)
    before = await counts(office)
    assert await office.remember("tea", request_id=request_id) == first
    assert await counts(office) == before


async def test_twenty_repetitions_at_once_record_one_memory_and_one_outbox_row(office: Office) -> None:
    request_id = uuid4()
    made = await asyncio.gather(*(office.remember("tea", request_id=request_id) for _ in range(20)))
    assert len({memory.memory_id for memory in made}) == 1
    assert await counts(office) == {table: int(table not in {"forgets", "forget_items"}) for table in TABLES}
    rows = await office.as_admin(
        "select generation from openbot.outbox where company_id = $1", office.company
    )
    assert [row["generation"] for row in rows] == [1]


async def test_many_first_memories_at_once_share_one_scope(office: Office) -> None:
    await asyncio.gather(*(office.remember(f"cup {number}") for number in range(12)))
    assert await office.count("scopes") == 1
    assert await office.count("memories") == 12


async def test_a_request_id_stands_for_its_words_and_source(office: Office) -> None:
    request_id = uuid4()
    await office.remember("tea", request_id=request_id)
    with pytest.raises(RequestIdReused):
        await office.remember("coffee", request_id=request_id)
    with pytest.raises(RequestIdReused):
        await office.remember("tea", source="weekly", request_id=request_id)
    assert await office.count("memories") == 1


async def test_a_request_id_of_a_forget_is_no_memorys(office: Office) -> None:
    request_id = uuid4()
    memory = await office.remember("tea")
    await office.forget(memory.memory_id, request_id=request_id)
    with pytest.raises(RequestIdReused):
        await office.remember("tea", request_id=request_id)


async def test_two_people_may_choose_the_same_request_id(office: Office) -> None:
    request_id = uuid4()
    of_lin = await office.remember("tea", request_id=request_id)
    of_omar = await office.remember("coffee", asker=office.omar, request_id=request_id)
    assert of_lin.memory_id != of_omar.memory_id
    assert of_omar.text == "coffee"


async def test_a_late_repetition_does_not_bring_back_what_was_forgotten(office: Office) -> None:
    request_id = uuid4()
    memory = await office.remember("oolong", request_id=request_id)
    await office.forget(memory.memory_id)
    before = await counts(office)

    late = await office.remember("oolong", request_id=request_id)

    assert (late.memory_id, late.text) == (memory.memory_id, None)
    assert await counts(office) == before
    assert await office.recalled("oolong") == []


async def test_a_refused_request_leaves_its_id_free_and_no_row(office: Office) -> None:
    request_id = uuid4()
    await office.settle(sources={})
    with pytest.raises(SourceNotFound):
        await office.remember("tea", source="weekly", request_id=request_id)
    assert set((await counts(office)).values()) == {0}

    await office.settle()
    assert (await office.remember("coffee", source="weekly", request_id=request_id)).text == "coffee"


async def test_a_session_writes_only_where_it_could_read(office: Office) -> None:
    narrow = replace(office.lin, bot="narrow")
    with pytest.raises(ScopeNotUsable):
        await office.remember("tea", asker=narrow)
    for asker in (
        office.omar,  # not in the team and not granted
        narrow,  # a bot that is not granted
        replace(office.lin, sources=frozenset()),  # a session that was not opened for the source
        replace(office.lin, company="elsewhere"),
        replace(office.lin, user="stranger"),
    ):
        with pytest.raises(SourceNotFound):
            await office.remember("tea", asker=asker, source="weekly")
    with pytest.raises(SourceNotFound):
        await office.remember("tea", source="never-heard-of")
    assert set((await counts(office)).values()) == {0}


async def test_a_repetition_from_a_session_that_may_not_see_the_memory_learns_nothing(office: Office) -> None:
    request_id = uuid4()
    await office.remember("tea", source="weekly", request_id=request_id)
    with pytest.raises(MemoryNotFound):
        await office.remember(
            "tea", source="weekly", asker=replace(office.lin, bot="narrow"), request_id=request_id
        )


async def test_a_revocation_waits_for_what_is_being_recorded_and_takes_it_along(office: Office) -> None:
    revoking: list[asyncio.Task[None]] = []

    class Overtaken(MemoryStore):
        async def record(self, *args: Any, **kwargs: Any) -> None:
            revoking.append(asyncio.create_task(office.settle(sources={})))
            await waiting_for_lock(office)
            await super().record(*args, **kwargs)

    await office.remember("tea", source="weekly", memories=Overtaken(office.api))
    await asyncio.gather(*revoking)
    scopes = await office.as_admin(
        "select revoked_at is not null as revoked from openbot.scopes where company_id = $1", office.company
    )
    assert [row["revoked"] for row in scopes] == [True]
    await office.settle()
    assert await office.recalled("tea") == [], "a source of the same name starts empty"


async def waiting_for_lock(office: Office) -> None:
    """Returns once some transaction of the office's database waits for an advisory lock."""
    waiting = (
        "select from pg_locks where locktype = 'advisory' and not granted"
        " and database = (select oid from pg_database where datname = current_database())"
    )
    async with asyncio.timeout(30):
        while not await office.as_admin(waiting):  # noqa: ASYNC110 - another connection's doing
            await asyncio.sleep(0.01)


async def test_words_for_one_bot_are_seen_by_no_other(office: Office) -> None:
    memory = await office.remember("tea", asker=replace(office.lin, bot="narrow"), this_bot_only=True)
    assert (memory.source, memory.only_bot) == (None, "narrow")
    assert await office.recalled("tea", asker=replace(office.lin, bot="narrow")) == ["tea"]
    assert await office.recalled("tea") == []
    assert await office.recalled("tea", asker=replace(office.omar, bot="narrow")) == []
    with pytest.raises(ScopeNotUsable):
        await office.remember("tea", asker=replace(office.lin, bot="stranger"), this_bot_only=True)

    await office.settle(bots={"assistant": True})
    assert await office.recalled("tea", asker=replace(office.lin, bot="narrow")) == []
    await office.settle()
    assert await office.recalled("tea", asker=replace(office.lin, bot="narrow")) == ["tea"]


async def test_a_repetition_for_another_scope_is_another_request(office: Office) -> None:
    request_id = uuid4()
    await office.remember("tea", request_id=request_id)
    with pytest.raises(RequestIdReused):
        await office.remember("tea", request_id=request_id, this_bot_only=True)


async def test_words_said_in_a_source_follow_it_and_stay_when_it_moves_to_another_team(
    office: Office,
) -> None:
    memory = await office.remember("tea", source="weekly")
    assert (memory.team, memory.source) == ("product", "weekly")
    await office.settle(sources={"weekly": replace(office.facts.sources["weekly"], team="sales")})

    with pytest.raises(MemoryNotFound):
        await office.get(memory.memory_id)
    assert await office.recalled("tea") == []
    assert (await office.page()).memories == ()

    await office.settle()
    assert (await office.get(memory.memory_id)).text == "tea"


@asynccontextmanager
async def failing(office: Office, event: str, table: str) -> AsyncIterator[None]:
    """While it lasts, the statement that would do ``event`` to ``table`` fails."""
    await office.as_admin(
        f"create trigger breaks before {event} on openbot.{table} execute function broken()"
    )
    try:
        yield
    finally:
        await office.as_admin(f"drop trigger breaks on openbot.{table}")


async def test_a_failure_at_any_step_leaves_no_trace_of_either_operation(lonely_office: Office) -> None:
    office = lonely_office
    await office.as_admin(
        "create function broken() returns trigger language plpgsql as"
        " $$ begin raise exception 'disk full of %', 'tea'; end $$"
    )
    request_id = uuid4()
    for table in ("requests", "scopes", "memories", "index_entries", "outbox"):
        async with failing(office, "insert", table):
            with pytest.raises(DatabaseError) as caught:
                await office.remember("tea", request_id=request_id)
        assert "tea" not in repr(caught.value), table
        assert set((await counts(office)).values()) == {0}, table
    memory = await office.remember("tea", request_id=request_id)

    before = await counts(office)
    request_id = uuid4()
    for event, table in (
        ("insert", "requests"),
        ("insert", "forgets"),
        ("insert", "forget_items"),
        ("update", "memories"),
        ("update", "index_entries"),
        ("insert", "outbox"),
    ):
        async with failing(office, event, table):
            with pytest.raises(DatabaseError):
                await office.forget(memory.memory_id, request_id=request_id)
        assert await counts(office) == before, table
        assert (await office.get(memory.memory_id)).text == "tea", table
    await office.forget(memory.memory_id, request_id=request_id)
    assert (await office.get(memory.memory_id)).text is None
