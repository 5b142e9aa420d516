"""A revocation seen from outside: what is acknowledged holds for every call that begins after it."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import asyncpg
import grpc
import pytest
from devstack.client import Session
from devstack.control_plane import Company, ControlPlane, Source
from devstack.stack import Stack
from openbot.memory.v1 import authority_service_pb2 as authority
from openbot.memory.v1 import memory_pb2, memory_service_pb2, memory_service_pb2_grpc

from tests.eventually import until

pytestmark = pytest.mark.e2e

GRANT = authority.SourceUserGrant(source_id="weekly", user_id="lin")
WORDS = "产品周会从周五改到周一上午十点。"


class Office:
    """A company of the test's own, as its control plane states it."""

    def __init__(self, stack: Stack, exits: ExitStack) -> None:
        self.stack = stack
        self.facts = Company(
            f"revoking-{uuid4().hex[:12]}",
            members=("lin",),
            bots={"assistant": True},
            teams={"product": ("lin",)},
            sources={"weekly": Source("product", users=("lin",), bots=("assistant",))},
        )
        self.control_plane = exits.enter_context(ControlPlane(stack.address, stack.issuer))
        self.control_plane.state(self.facts)
        self.lin = exits.enter_context(
            Session(
                stack.address,
                stack.issuer,
                user="lin",
                company=self.facts.company,
                bot="assistant",
                sources=("weekly",),
            )
        )

    def take_back(self) -> None:
        removals = authority.FactKeys(source_user_grants=[GRANT])
        self.control_plane.change(self.facts.company, removals=removals)

    def give_back(self) -> None:
        upserts = authority.Facts(source_user_grants=[GRANT])
        self.control_plane.change(self.facts.company, upserts=upserts)

    def texts(self) -> list[str]:
        return [item.memory.text for item in self.lin.recall("周会改到哪天了").items]


@pytest.fixture
def office(stack: Stack) -> Iterator[Office]:
    with ExitStack() as exits:
        yield Office(stack, exits)


def indexed(office: Office) -> memory_pb2.Memory:
    memory = office.lin.remember(WORDS, source="weekly")
    assert until(
        lambda: office.lin.get(memory.name).index_status.state == memory_pb2.IndexStatus.STATE_INDEXED
    )
    return memory


def test_a_grant_taken_back_stops_the_next_recall_and_given_back_restores_it(office: Office) -> None:
    indexed(office)
    assert office.texts() == [WORDS]
    for _ in range(3):
        office.take_back()
        assert office.texts() == []
        office.give_back()
        assert office.texts() == [WORDS]


@dataclass
class Storm:
    """What the calls of a storm brought, told apart by when they began."""

    acknowledged: bool = False
    first: asyncio.Event = field(default_factory=asyncio.Event)
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)

    async def recall(self, stub: Any, metadata: Any) -> None:
        began_after = self.acknowledged
        request = memory_service_pb2.RecallRequest(query="周会改到哪天了")
        answer = await stub.Recall(request, metadata=metadata, timeout=30)
        (self.after if began_after else self.before).append(len(answer.items))
        self.first.set()


async def test_a_storm_of_calls_gets_nothing_after_the_acknowledgement(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    await asyncio.to_thread(indexed, office)
    storm = Storm()
    lanes = asyncio.Semaphore(20)
    async with grpc.aio.insecure_channel(office.stack.address) as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)

        async def one() -> None:
            async with lanes:
                await storm.recall(stub, office.lin.metadata)

        calls = [asyncio.create_task(one()) for _ in range(200)]
        await storm.first.wait()
        await asyncio.to_thread(office.take_back)
        storm.acknowledged = True
        await asyncio.gather(*calls)
        # However fast the machine is, some calls begin after it.
        calls = [asyncio.create_task(one()) for _ in range(20)]
        await asyncio.gather(*calls)
    with capsys.disabled():
        sys.stdout.write(f"\nstorm: {len(storm.before)} calls began before, {len(storm.after)} after\n")
    assert any(storm.before)
    assert storm.after.count(0) == len(storm.after) >= 20


def test_a_revoked_source_is_forgotten_with_proof_and_one_of_the_same_name_starts_empty(
    office: Office,
) -> None:
    memory = indexed(office)
    kept = office.lin.remember("汇报先讲风险。")
    answer = office.control_plane.change(
        office.facts.company, removals=authority.FactKeys(source_ids=["weekly"])
    )
    assert answer.revoked_source_count == 1
    assert office.texts() == [] or WORDS not in office.texts()

    def forgets() -> list[asyncpg.Record]:
        async def read() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(office.stack.admin_dsn)
            try:
                return list(
                    await connection.fetch(
                        "select forget_id from openbot.forgets where company_id = $1", office.facts.company
                    )
                )
            finally:
                await connection.close()

        return asyncio.run(read())

    assert until(lambda: len(forgets()) == 1)
    name = f"forgets/{forgets()[0]['forget_id']}"
    assert until(lambda: office.lin.get_forget(name).HasField("clear_time"))
    forget = office.lin.get_forget(name)
    assert (forget.cause, forget.memory_count) == (forget.CAUSE_SOURCE_REVOKED, 1)

    office.control_plane.state(office.facts)
    assert WORDS not in office.texts()
    with pytest.raises(grpc.RpcError) as unknown:
        office.lin.get(memory.name)
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
    assert office.lin.get(kept.name).text == kept.text
    assert office.lin.remember("新的周会记录。", source="weekly").text == "新的周会记录。"


def test_a_company_that_leaves_is_an_empty_snapshot(office: Office) -> None:
    indexed(office)
    office.control_plane.state(replace(office.facts, members=(), bots={}, teams={}, sources={}))
    assert office.texts() == []
