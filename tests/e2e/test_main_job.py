"""The main job, from a person's sentence to its proven end, over real sockets and processes."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import asyncpg
import grpc
import pytest
from devstack.authority_seed import Company, Source, seed_authority
from devstack.client import Session
from devstack.stack import Stack
from openbot.memory.v1 import forget_pb2, memory_pb2

from tests.eventually import until

pytestmark = pytest.mark.e2e


class Office:
    """A company of the test's own, and sessions into it."""

    def __init__(self, stack: Stack, exits: ExitStack) -> None:
        self.company = f"office-{uuid4().hex[:12]}"
        self._stack = stack
        self._exits = exits
        self.settle(granted=True)

    def settle(self, *, granted: bool) -> None:
        """Pushes the authority facts, with or without Lin's grant on the source."""
        facts = Company(
            self.company,
            members=("lin", "omar"),
            bots={"assistant": True, "narrow": False},
            teams={"product": ("lin",)},
            sources={"weekly": Source("product", users=("lin",) if granted else (), bots=("assistant",))},
        )
        asyncio.run(seed_authority(self._stack.dsns["authority_writer"], facts))

    def session(self, user: str = "lin", bot: str = "assistant", **claims: Any) -> Session:
        claims = {"company": self.company, "sources": ("weekly",), **claims}
        return self._exits.enter_context(
            Session(self._stack.address, self._stack.issuer, user=user, bot=bot, **claims)
        )


@pytest.fixture
def office(stack: Stack) -> Iterator[Office]:
    with ExitStack() as exits:
        yield Office(stack, exits)


def is_indexed(session: Session, name: str) -> bool:
    return session.get(name).index_status.state == memory_pb2.IndexStatus.STATE_INDEXED


def texts(session: Session, query: str) -> list[str]:
    return [item.memory.text for item in session.recall(query).items]


def test_words_are_found_at_once_and_meaning_across_languages_once_indexed(office: Office) -> None:
    lin = office.session()
    risks = lin.remember("汇报先讲风险，再讲进展。")
    meeting = lin.remember("产品周会从周五改到周一上午十点。", source="weekly")

    assert texts(lin, "周会改到哪天了")[:1] == [meeting.text]
    assert until(lambda: is_indexed(lin, risks.name) and is_indexed(lin, meeting.name))

    assert texts(lin, "When does the product team get together now?")[:1] == [meeting.text]
    assert texts(lin, "Do I present risks or progress first?")[:1] == [risks.text]


def test_nobody_else_gets_anything_and_nobody_learns_that_it_exists(office: Office, stack: Stack) -> None:
    lin = office.session()
    memory = lin.remember("产品周会从周五改到周一上午十点。", source="weekly")
    assert until(lambda: is_indexed(lin, memory.name))

    strangers = {
        "a colleague": office.session(user="omar"),
        "a bot without grants": office.session(bot="narrow"),
        "an unknown bot": office.session(bot="nobody"),
        "a session that was not opened for the source": office.session(sources=()),
        "the same person in another company": office.session(company="elsewhere"),
    }
    for who, stranger in strangers.items():
        assert texts(stranger, "周会改到哪天了") == [], who
        with pytest.raises(grpc.RpcError) as unseen:
            stranger.get(memory.name)
        with pytest.raises(grpc.RpcError) as unknown:
            stranger.get(f"memories/{uuid4()}")
        assert unseen.value.code() is unknown.value.code() is grpc.StatusCode.NOT_FOUND, who
        assert unseen.value.details() == unknown.value.details(), who


def test_a_withdrawn_grant_stops_the_next_recall_and_a_restored_one_gives_it_back(office: Office) -> None:
    lin = office.session()
    memory = lin.remember("产品周会从周五改到周一上午十点。", source="weekly")
    assert until(lambda: is_indexed(lin, memory.name))

    office.settle(granted=False)
    assert texts(lin, "周会改到哪天了") == []
    assert lin.list().memories == []

    office.settle(granted=True)
    assert texts(lin, "周会改到哪天了") == [memory.text]


def test_a_repeated_request_changes_nothing_even_after_forgetting(office: Office) -> None:
    lin = office.session()
    request_id, forget_id = str(uuid4()), str(uuid4())
    memory = lin.remember("Bullet points, please.", request_id=request_id)
    assert lin.remember("Bullet points, please.", request_id=request_id).name == memory.name

    forget = lin.forget(memory.name, request_id=forget_id)
    assert lin.forget(memory.name, request_id=forget_id).name == forget.name

    late = lin.remember("Bullet points, please.", request_id=request_id)
    assert (late.name, late.state, late.text) == (memory.name, memory_pb2.Memory.STATE_FORGOTTEN, "")
    assert texts(lin, "bullet points") == []


def test_forgetting_stops_use_at_once_and_is_cleared_with_evidence(office: Office, stack: Stack) -> None:
    canary = f"The canary {uuid4().hex} sings on Tuesdays."
    lin = office.session()
    memory = lin.remember(canary)
    assert until(lambda: is_indexed(lin, memory.name))

    forget = lin.forget(memory.name)

    assert forget.HasField("stop_use_time")
    assert canary not in texts(lin, "When does the canary sing?")
    assert lin.list().memories == []
    assert lin.get(memory.name).text == ""
    assert until(lambda: lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARED)
    cleared = lin.get_forget(forget.name)
    assert cleared.HasField("clear_time")
    assert [(each.cleared_count, each.pending_reason) for each in cleared.clearances] == [(1, "")] * 4
    assert lin.get(memory.name).index_status.state == memory_pb2.IndexStatus.STATE_DELETED
    for database in (stack.database, f"{stack.name}_index"):
        assert asyncio.run(tables_holding(stack.postgres.admin_dsn(database), canary)) == []


def test_neither_logs_nor_spans_nor_the_outbox_hold_a_sentence(office: Office, stack: Stack) -> None:
    canary = f"canary-{uuid4().hex}"
    lin = office.session()
    memory = lin.remember(f"Remember the {canary}.")
    assert until(lambda: is_indexed(lin, memory.name))
    lin.recall(f"What about the {canary}?")
    with pytest.raises(grpc.RpcError):
        lin.remember(f"Another {canary}", request_id=f"not-a-uuid-{canary}")
    lin.forget(memory.name)

    assert asyncio.run(tables_holding(stack.admin_dsn, canary)) == []
    for file in stack.logs.iterdir():
        assert canary not in file.read_text(encoding="utf-8", errors="replace"), file.name


async def tables_holding(dsn: str, words: str) -> list[str]:
    """The tables of a database in which any column of any row, as text, holds ``words``."""
    connection = await asyncpg.connect(dsn)
    try:
        tables = await connection.fetch(
            "select format('%I.%I', schemaname, tablename) as name from pg_tables"
            " where schemaname not in ('pg_catalog', 'information_schema')"
        )
        return [
            table["name"]
            for table in tables
            if await connection.fetchval(
                f"select exists (select from {table['name']} as t where t::text like '%' || $1 || '%')", words
            )
        ]
    finally:
        await connection.close()
