"""The main job, from a person's sentence to its proven end, over real sockets and processes."""

import asyncio
import json
import secrets
import signal
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import asyncpg
import grpc
import pytest
from devstack.client import Session
from devstack.control_plane import Company, Source
from devstack.stack import Stack
from hindsight_index import HindsightIndex
from openbot.memory.v1 import forget_pb2, memory_pb2

from tests.authority import state_facts
from tests.conftest import Hindsight
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
        asyncio.run(state_facts(self._stack.dsns["authority_writer"], facts))

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
        assert stranger.list().memories == [], who
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


def test_what_no_daemon_has_seen_yet_is_found_by_its_words(office: Office, stack: Stack) -> None:
    lin = office.session()
    known = lin.remember("Weekly reports come as short bullet points.")
    assert until(lambda: is_indexed(lin, known.name))
    daemon = stack.sync_daemon
    assert daemon is not None
    daemon.send(signal.SIGSTOP)
    try:
        fresh = lin.remember("汇报先讲风险，再讲进展。")

        assert lin.get(fresh.name).index_status.state == memory_pb2.IndexStatus.STATE_PENDING
        assert fresh.text in texts(lin, "汇报先讲什么")
        assert known.text in texts(lin, "bullet points")
    finally:
        daemon.send(signal.SIGCONT)
    assert until(lambda: is_indexed(lin, fresh.name))


def test_forgetting_stops_use_at_once_and_is_cleared_with_evidence(
    office: Office, stack: Stack, hindsight: Hindsight
) -> None:
    canary = words_of_nobody()
    lin = office.session()
    memory = lin.remember(f"{canary}每周二唱歌，{canary} sings on Tuesdays.")
    assert until(lambda: is_indexed(lin, memory.name))
    bank, document = asyncio.run(bank_of(stack, memory.name)), memory.name.removeprefix("memories/")
    assert asyncio.run(is_in_index(hindsight, bank, document))
    assert asyncio.run(tables_holding(hindsight.database_url, canary)) != set()

    forget = lin.forget(memory.name)

    assert forget.HasField("stop_use_time")
    for query in ("谁每周二唱歌", "Who sings on Tuesdays?", canary):
        assert texts(lin, query) == []
    assert lin.list().memories == []
    assert lin.get(memory.name).text == ""
    assert until(lambda: lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARED)
    cleared = lin.get_forget(forget.name)
    assert cleared.HasField("clear_time")
    domains = {value for name, value in forget_pb2.Clearance.Domain.items() if value}
    assert len(domains) == 4
    assert {each.domain for each in cleared.clearances} == domains
    assert [(each.cleared_count, each.pending_reason) for each in cleared.clearances] == [(1, "")] * 4
    assert asyncio.run(domains_with_evidence(stack, memory.name)) == 4
    assert lin.get(memory.name).index_status.state == memory_pb2.IndexStatus.STATE_DELETED
    assert not asyncio.run(is_in_index(hindsight, bank, document))
    for database in (stack.admin_dsn, hindsight.database_url):
        assert asyncio.run(tables_holding(database, canary)) == set()


def test_neither_logs_nor_spans_nor_the_outbox_hold_a_sentence(office: Office, stack: Stack) -> None:
    canary = words_of_nobody()
    lin = office.session()
    memory = lin.remember(f"{canary}每周二唱歌。")
    assert asyncio.run(tables_holding(stack.admin_dsn, canary)) == {"openbot.memories"}
    assert until(lambda: is_indexed(lin, memory.name))
    assert lin.recall(f"{canary}什么时候唱歌？").items
    with pytest.raises(grpc.RpcError):
        lin.remember(f"{canary}再唱一次。", request_id=f"not-a-uuid-{canary}")
    with pytest.raises(grpc.RpcError):
        lin.remember(canary, source=canary)
    with pytest.raises(grpc.RpcError):
        lin.get(f"memories/{canary}")
    forget = lin.forget(memory.name)
    assert until(lambda: lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARED)

    assert asyncio.run(tables_holding(stack.admin_dsn, canary)) == set()
    files = list(stack.logs.iterdir())
    assert {"memory_api.spans.jsonl", "sync_daemon.spans.jsonl", "hindsight.log"} <= {
        each.name for each in files
    }
    for file in files:
        content = file.read_bytes()
        for form in written_as(canary):
            assert form not in content, file.name


def words_of_nobody() -> str:
    """Eight rare Chinese characters that nobody else says."""
    return "".join(chr(0x4E00 + secrets.randbelow(0x5000)) for _ in range(8))


def written_as(words: str) -> list[bytes]:
    """The ways in which words end up in a file: raw, escaped as JSON and Python do, in base64 at any
    alignment, in hexadecimal, and as a part of a URL."""
    raw = words.encode()
    escaped = json.dumps(words)[1:-1]
    python = repr(raw)[2:-1]
    # Without the characters that depend on what stands before and after.
    shifted = [b64encode(b"." * shift + raw)[4 if shift else 0 : -4] for shift in range(3)]
    urlsafe = [each.replace(b"+", b"-").replace(b"/", b"_") for each in shifted]
    forms = [
        escaped,
        escaped.upper().replace("\\U", "\\u"),
        python,
        raw.hex(),
        raw.hex().upper(),
        quote(words),
    ]
    return [raw, *shifted, *urlsafe, *(each.encode() for each in forms)]


async def tables_holding(dsn: str, words: str) -> set[str]:
    """The tables of a database in which any column of any row, as text, holds ``words`` in any form."""
    forms = [form.decode() for form in written_as(words)]
    connection = await asyncpg.connect(dsn)
    try:
        tables = await connection.fetch(
            "select format('%I.%I', schemaname, tablename) as name from pg_tables"
            " where schemaname not in ('pg_catalog', 'information_schema')"
        )
        return {
            table["name"]
            for table in tables
            if await connection.fetchval(
                f"select exists (select from {table['name']} as t, unnest($1::text[]) as form"
                " where strpos(t::text, form) > 0)",
                forms,
            )
        }
    finally:
        await connection.close()


async def bank_of(stack: Stack, name: str) -> str:
    found = await one_value(
        stack,
        "select bank_id from openbot.memories join openbot.scopes using (scope_id) where memory_id = $1",
        name,
    )
    assert isinstance(found, str)
    return found


async def domains_with_evidence(stack: Stack, name: str) -> object:
    return await one_value(
        stack,
        "select count(distinct domain) from openbot.clearance_evidence where memory_id = $1 and cleared",
        name,
    )


async def one_value(stack: Stack, statement: str, name: str) -> object:
    connection = await asyncpg.connect(stack.admin_dsn)
    try:
        return await connection.fetchval(statement, UUID(name.removeprefix("memories/")))
    finally:
        await connection.close()


async def is_in_index(hindsight: Hindsight, bank: str, document: str) -> bool:
    """What Hindsight itself says, asked with a token as the daemon signs it."""
    async with HindsightIndex(hindsight.base_url, hindsight.sync_signer) as index:
        assert await index.bank_exists(bank)
        found = await index.document(bank, document)
        assert (found is not None) == (await index.count_units(bank, document) > 0)
        return found is not None
