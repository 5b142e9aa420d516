"""What a caller with valid tokens of its own may try: names of others, and words that are more than words."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
from devstack.client import Session
from devstack.control_plane import Company, ControlPlane, Source
from devstack.stack import Stack
from memory_api.errors import DomainError, PageTokenInvalid
from memory_api.records import Asker
from memory_api.store.memories import MemoryStore
from openbot.memory.v1 import memory_service_pb2 as contract
from tenant_db import Connection, TenantDatabase

from tests.integration.office import Office

# ---------------------------------------------------------------- names of others


class Watched(TenantDatabase):
    """A database that writes down every statement."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn, role="memory_api", max_connections=1, application_name="test")
        self.statements: list[str] = []

    @asynccontextmanager
    async def of(self, company: str, user: str) -> AsyncIterator[Connection]:
        def note(record: Any) -> None:
            self.statements.append(record.query)

        async with super().of(company, user) as connection:
            connection.add_query_logger(note)
            try:
                yield connection
            finally:
                connection.remove_query_logger(note)


@pytest.mark.postgres
async def test_names_of_others_and_of_nothing_run_the_same_statements_alike(office: Office) -> None:
    """For every field that takes an id: whose it is changes neither the work nor the answer."""
    globex = Office(office.database, office.api)
    await globex.settle()
    spare = await office.remember("spare", asker=office.omar)
    others: dict[str, UUID] = {
        "a colleague's": (await office.remember("tea", asker=office.omar)).memory_id,
        "another company's": (await globex.remember("tea")).memory_id,
        "one of a source that this session lacks": (await office.remember("tea", source="weekly")).memory_id,
        "one for another bot": (
            await office.remember("tea", asker=replace(office.lin, bot="narrow"), this_bot_only=True)
        ).memory_id,
    }
    forgets = {
        "a colleague's": (await office.forget(spare.memory_id, asker=office.omar)).forget_id,
        "another company's": (await globex.forget((await globex.remember("x")).memory_id)).forget_id,
    }
    asker = replace(office.lin, sources=frozenset({"other"}))

    async with Watched(office.database.dsn("memory_api")) as watched:
        watching = Office(office.database, watched)
        watching.company = office.company

        async def tried(work: Callable[[], Awaitable[object]]) -> tuple[list[str], str]:
            watched.statements.clear()
            with pytest.raises(DomainError) as caught:
                await work()
            return list(watched.statements), caught.value.reason

        def by_memory(memory_id: UUID) -> list[Callable[[], Awaitable[object]]]:
            return [
                lambda: watching.get(memory_id, asker),
                lambda: watching.forget(memory_id, asker=asker),
                lambda: watching.forget(memory_id, asker=asker, etag="0" * 16),
            ]

        for first in (*by_memory(uuid4()), lambda: watching.watch(uuid4(), asker)):
            await tried(first)  # the driver asks for types once
        for who, memory_id in others.items():
            for one, none in zip(by_memory(memory_id), by_memory(uuid4()), strict=True):
                assert await tried(one) == await tried(none), who
        for who, forget_id in forgets.items():
            assert await tried(lambda f=forget_id: watching.watch(f, asker)) == await tried(  # type: ignore[misc]
                lambda: watching.watch(uuid4(), asker)
            ), who
        granted_to_nobody = replace(office.lin, sources=frozenset({"weekly"}), bot="narrow")
        no_such = replace(granted_to_nobody, sources=frozenset({"no-such"}))
        assert await tried(
            lambda: watching.remember("x", source="weekly", asker=granted_to_nobody)
        ) == await tried(lambda: watching.remember("x", source="no-such", asker=no_such))


@pytest.mark.postgres
async def test_a_request_id_of_another_person_means_nothing(office: Office) -> None:
    request_id = uuid4()
    theirs = await office.remember("tea", asker=office.omar, request_id=request_id)
    mine = await office.remember("coffee", request_id=request_id)
    assert mine.memory_id != theirs.memory_id
    assert (await office.get(theirs.memory_id, office.omar)).text == "tea"


@pytest.mark.postgres
async def test_a_page_token_made_up_for_any_position_shows_ones_own_pages_only(office: Office) -> None:
    """The mark of a page token is no secret; what is behind it is not decided by it."""
    for number in range(3):
        await office.remember(f"omar {number}", asker=office.omar)
        await office.remember(f"lin {number}")
    theirs = (await office.page(size=1, asker=office.omar)).next_page_token
    assert theirs is not None
    position = base64.urlsafe_b64decode(theirs)[8:]
    mark = hashlib.sha256(f"{office.company}\0lin\0".encode() + position).digest()[:8]
    forged = base64.urlsafe_b64encode(mark + position).decode()
    with pytest.raises(PageTokenInvalid):
        await office.page(token=theirs)
    page = await office.page(token=forged)
    assert {(memory.text or "")[:3] for memory in page.memories} == {"lin"}


@pytest.mark.postgres
async def test_the_etag_of_a_memory_opens_it_to_nobody_else(office: Office) -> None:
    theirs = await office.remember("tea", asker=office.omar)
    with pytest.raises(DomainError) as caught:
        await office.forget(theirs.memory_id, etag=theirs.etag)
    assert caught.value.reason == "MEMORY_NOT_FOUND"
    assert (await office.get(theirs.memory_id, office.omar)).text == "tea"


# ---------------------------------------------------------------- the predicate removed


class Unguarded(MemoryStore):
    """A store whose statements have lost every word about company, person and scope."""

    STATEMENT = (
        "select memories.memory_id, version, text, recorded_at, team_id, source_id, bot_id, entries.state as"
        " index_state, entries.state_at as index_state_at, entries.failure_reason from openbot.memories"
        " join openbot.scopes using (scope_id) join openbot.index_entries as entries using (memory_id)"
    )

    async def everything(self, asker: Asker) -> list[tuple[str, str, str | None]]:
        async with self._database.of(asker.company, asker.user) as connection:
            rows = await connection.fetch(
                self.STATEMENT.replace("select ", "select memories.company_id, memories.user_id, ", 1)
            )
            return [(row["company_id"], row["user_id"], row["text"]) for row in rows]


@pytest.mark.postgres
async def test_without_any_predicate_another_tenants_rows_do_not_come_back(office: Office) -> None:
    globex = Office(office.database, office.api)
    await globex.settle()
    people = {
        (office.company, "lin"): (office, office.lin),
        (office.company, "omar"): (office, office.omar),
        (globex.company, "lin"): (globex, globex.lin),
    }
    for (company, user), (place, asker) in people.items():
        await place.remember(f"tea of {company} {user}", asker=asker)
    store = Unguarded(office.api)

    async def read(company: str, user: str) -> None:
        rows = await store.everything(people[company, user][1])
        assert rows == [(company, user, f"tea of {company} {user}")]

    # Over few connections, many times at once: no transaction sees what another one was bound to.
    await asyncio.gather(*(read(*person) for _ in range(40) for person in people))


# ---------------------------------------------------------------- words that are more than words

HOSTILE = (
    "'; drop table openbot.memories; --",
    "\\'; select pg_sleep(10); --",
    "$1 :bot :sources %s %(name)s {0} {{}}",
    "a' | 'b & !c <-> d:*A",
    "a:* & (b | !c",
    "周会' | '周五",
    "\u202eevil\u202c \u2066isolated\u2069 \u200fright",
    "zero\u200bwidth\u200d\u2060\ufeffjoined",
    "e\u0301\u0327" + "\u0300" * 200,
    "\U000e0041\U000e0042 tag characters",
    "<script>alert(1)</script> ${jndi:ldap://x} {{7*7}}",
    "../../etc/passwd\r\nauthorization: Bearer x",
    "'" * 2000,
    "\\" * 2000,
    "(" * 2000,
)


@pytest.fixture(scope="module")
def lin(stack: Stack) -> Iterator[Session]:
    company = f"attacked-{uuid4().hex[:12]}"
    with ExitStack() as exits:
        control_plane = exits.enter_context(ControlPlane(stack.address, stack.issuer))
        control_plane.state(
            Company(
                company,
                members=("lin",),
                bots={"assistant": True},
                teams={"product": ("lin",)},
                sources={"weekly": Source("product", users=("lin",), bots=("assistant",))},
            )
        )
        yield exits.enter_context(
            Session(stack.address, stack.issuer, user="lin", company=company, bot="assistant")
        )


@pytest.mark.e2e
@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_are_kept_and_found_as_words(lin: Session, words: str) -> None:
    memory = lin.remember(words)
    assert memory.text == words
    assert lin.get(memory.name).text == words
    lin.recall(words[:2000])  # an answer, whatever is in it
    assert lin.list().memories[0].text == words


@pytest.mark.e2e
@pytest.mark.parametrize("size", [300_000, 1_000_000, 5_000_000])
def test_megabytes_are_refused_and_the_next_call_is_served(lin: Session, stack: Stack, size: int) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        lin.remember("字" * (size // 3))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert lin.remember("still here").text == "still here"


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["user", "company", "bot", "sources"])
@pytest.mark.parametrize(
    "value", ["a' or '1'='1", "a\0b", "lin\u200b", "\u202enil", "ＬＩＮ", "a" * 129, "../lin", ""]
)
def test_a_token_with_a_hostile_name_is_no_token(stack: Stack, name: str, value: str) -> None:
    claims: dict[str, Any] = {"user": "lin", "company": "acme", "bot": "assistant", "sources": ("weekly",)}
    claims[name] = (value,) if name == "sources" else value
    with (
        Session(stack.address, stack.issuer, **claims) as session,
        pytest.raises(grpc.RpcError) as caught,
    ):
        session.recall("x")
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.e2e
def test_fields_of_a_later_version_are_ignored_and_deep_nesting_is_refused(
    lin: Session, stack: Stack
) -> None:
    with grpc.insecure_channel(stack.address) as channel:
        raw: Any = channel.unary_unary("/openbot.memory.v1.MemoryService/Recall")
        known = contract.RecallRequest(query="x").SerializeToString()
        unknown = b"\xfa\x3e\x05later" * 100  # field 1007, length-delimited
        answer = raw(known + unknown, metadata=lin.metadata, timeout=10)
        contract.RecallResponse.FromString(answer)
        nested = known + b"\x2b" * 50_000 + b"\x2c" * 50_000  # groups of field 5, one inside the other
        with pytest.raises(grpc.RpcError) as caught:
            raw(nested, metadata=lin.metadata, timeout=10)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
