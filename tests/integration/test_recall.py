"""Recall by words alone: what PostgreSQL finds when the index is silent or has not followed yet."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hindsight_index import Hit
from memory_api.records import ServedBy
from memory_api.store.recall import RecallStore

from tests.integration.office import Office

pytestmark = pytest.mark.postgres

MEETING = "产品周会从周五改到周一上午十点"
REPORT = "Weekly reports: short bullet points, risks first"
MIXED = "用 Kubernetes 部署的 staging 环境每晚重启"
WIDE = "ＡＰＩ　Ｇａｔｅｗａｙ 负责人是老陈"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("周会什么时候开", MEETING),
        ("周一", MEETING),
        ("bullet point reporting", REPORT),
        ("RISK", REPORT),
        ("kubernetes", MIXED),
        ("ＫＵＢＥＲＮＥＴＥＳ", MIXED),
        ("部署在哪里", MIXED),
        ("staging什么时候重启", MIXED),
        ("api gateway", WIDE),
        ("谁是 API 的负责人", WIDE),
    ],
)
async def test_shared_words_find_a_memory(office: Office, query: str, found: str) -> None:
    for text in (MEETING, REPORT, MIXED, WIDE):
        await office.remember(text)
    assert (await office.recalled(query))[0] == found


@pytest.mark.parametrize("query", ["报销", "vacation", "the of and", "？！…", "🍵", "五周", "' or 1=1 --"])
async def test_without_a_shared_word_nothing_is_found(office: Office, query: str) -> None:
    for text in (MEETING, REPORT, MIXED, WIDE):
        await office.remember(text)
    assert await office.recalled(query) == []


async def test_more_shared_words_come_first_and_the_limit_holds(office: Office) -> None:
    for text in ("green tea", "green tea in the morning", "green"):
        await office.remember(text)
    assert await office.recalled("green tea in the morning") == [
        "green tea in the morning",
        "green tea",
        "green",
    ]
    assert len((await office.recall("green", limit=2)).memories) == 2


async def test_whatever_the_letters_are_they_are_only_letters(office: Office) -> None:
    """A lexeme becomes part of a query expression; no sign in it may become an operator."""
    letters = "'\"\\&|!():*<>-%_;$@/.,=+~^#?[]{}`\t\n 0aE中国éＡ'\\"
    chosen = random.Random(11)  # noqa: S311 - the same letters every time
    for _ in range(150):
        text = "".join(chosen.choices(letters, k=chosen.randint(1, 40)))
        await office.recall(text)
    for text in (
        "C:\\temp\\new",
        "/usr/lo'cal/b\\in",
        "it's 'quoted' \\' twice",
        "a' | 'b",
        "100%_done",
        "\\\\share\\team's",
        "http://x.example/a\\b'c?d=e'f",
        "x'); drop table openbot.memories; --",
        "lin'o\\mar@example.com",
    ):
        await office.remember(text)
        assert text in await office.recalled(text), text


async def test_a_silent_index_is_replaced_and_named(office: Office) -> None:
    await office.remember("green tea")
    assert (await office.recall("tea")).served_by is ServedBy.INDEX, "no bank had to be asked yet"
    await office.as_admin(
        "update openbot.index_entries set state = 'indexed', indexed_version = 1 where company_id = $1",
        office.company,
    )
    answer = await office.recall("tea")
    assert [memory.text for memory in answer.memories] == ["green tea"]
    assert answer.served_by is ServedBy.LEXICAL
    assert answer.degraded_reason == "INDEX_UNAVAILABLE"


async def test_words_reach_only_whom_the_authority_tables_name_now(office: Office) -> None:
    await office.remember("green tea", source="weekly")
    assert await office.recalled("tea") == ["green tea"]
    for asker in (
        office.omar,
        replace(office.lin, bot="narrow"),
        replace(office.lin, sources=frozenset()),
        replace(office.lin, company="elsewhere"),
    ):
        assert await office.recalled("tea", asker=asker) == []
    facts = office.facts
    weekly = facts.sources["weekly"]
    for revoked in (
        {"sources": {"weekly": replace(weekly, users=())}},
        {"sources": {"weekly": replace(weekly, bots=())}},
        {"sources": {"weekly": replace(weekly, enabled=False)}},
        {"teams": {"product": (), "sales": ("lin",)}},
        {"members": ("omar",), "teams": {"product": ()}, "sources": {"weekly": replace(weekly, users=())}},
    ):
        await office.settle(**revoked)
        assert await office.recalled("tea") == [], revoked
    await office.settle()
    assert await office.recalled("tea") == ["green tea"]


async def test_what_a_session_may_not_use_does_not_crowd_out_what_it_may(office: Office) -> None:
    await office.remember("green tea")
    for number in range(5):
        await office.remember(f"green tea and more green tea, cup {number}", source="weekly")
    narrow = await office.recall("green tea", limit=1, asker=replace(office.lin, sources=frozenset()))
    assert [memory.text for memory in narrow.memories] == ["green tea"]


@pytest.mark.parametrize("holds_another", [True, False])
async def test_what_is_indexed_while_the_index_answers_is_not_lost_between_the_two(
    office: Office, *, holds_another: bool
) -> None:
    async def mark_indexed(memory_id: UUID) -> None:
        await office.as_admin(
            "update openbot.index_entries set state = 'indexed', state_at = clock_timestamp(),"
            " indexed_version = 1 where memory_id = $1",
            memory_id,
        )

    if holds_another:
        await mark_indexed((await office.remember("coffee")).memory_id)
    memory = await office.remember("green tea")

    class Behind(RecallStore):
        """The daemon is faster than the question, the index was asked before."""

        async def lexical_matches(self, *args: Any, **kwargs: Any) -> Sequence[UUID]:
            await mark_indexed(memory.memory_id)
            return await super().lexical_matches(*args, **kwargs)

    class Empty:
        async def recall(self, bank: str, query: str, *, max_tokens: int, timeout_s: float) -> Sequence[Hit]:
            return ()

    answer = await office.recall("tea", index=Empty(), store=Behind(office.api))
    assert [each.text for each in answer.memories] == ["green tea"]
    assert answer.served_by is ServedBy.INDEX
    later = await office.recall("tea", index=Empty())
    assert later.memories == (), "from now on it is the index's to find"
