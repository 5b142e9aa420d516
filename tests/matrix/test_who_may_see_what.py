"""Every caller against every memory through every RPC, over sockets, as the independent rules have it."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import uuid4

import grpc
import pytest
from devstack.control_plane import ControlPlane
from devstack.issuer import BOT_RUNTIME, CHANNEL_GATEWAY, CONTROL_PLANE, OPERATOR
from devstack.stack import Stack
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from openbot.memory.v1 import (
    authority_service_pb2,
    authority_service_pb2_grpc,
    memory_service_pb2,
    memory_service_pb2_grpc,
)

from tests.matrix.rules import (
    Caller,
    Kind,
    Place,
    Planted,
    Role,
    World,
    may_keep,
    may_see,
    may_watch_forgets,
    refusal,
)
from tests.matrix.worlds import (
    BACK,
    BOTS,
    LEFT,
    MEMBERS,
    OPEN,
    SOURCES,
    SPARSE,
    TAKEN_AWAY,
    TEAM_OF,
    USERS,
    company_of,
)

pytestmark = pytest.mark.e2e

WORKLOADS = {
    Role.BOT_RUNTIME: BOT_RUNTIME,
    Role.CHANNEL_GATEWAY: CHANNEL_GATEWAY,
    Role.CONTROL_PLANE: CONTROL_PLANE,
    Role.OPERATOR: OPERATOR,
}
ENTRIES = ("web", "channel", "schedule")
CLAIMS = (frozenset[str](), *(frozenset({source}) for source in SOURCES), frozenset(SOURCES))
PLACES = (
    Place(Kind.GENERAL),
    *(Place(Kind.BOT, bot) for bot in BOTS),
    *(Place(Kind.SOURCE, source, TEAM_OF[source]) for source in SOURCES),
)
NOT_FOUND = "MEMORY_NOT_FOUND"
Outcome = str | tuple[str, ...]


@dataclass
class Town:
    """The running system, the two companies under names of this run's own, and what was planted."""

    stack: Stack
    stub: Any
    authority: Any
    run: str = field(default_factory=lambda: uuid4().hex[:8])
    memories: dict[str, Planted] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    forgets: dict[str, tuple[str, str]] = field(default_factory=dict)
    cells: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[object, ...]] = field(default_factory=list)
    refused: set[bytes] = field(default_factory=set)
    lanes: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(12))
    tokens: dict[object, str] = field(default_factory=dict)

    def name_of(self, company: str) -> str:
        return f"{company}-{self.run}"

    def visible(self, world: World, caller: Caller) -> set[str]:
        return {name for name, memory in self.memories.items() if may_see(world, caller, memory)}

    def state(self, worlds: Mapping[str, World]) -> None:
        with ControlPlane(self.stack.address, self.stack.issuer) as control_plane:
            control_plane.state(
                *(company_of(each, self.name_of(each), world) for each, world in worlds.items())
            )

    def metadata(
        self, caller: Caller, role: Role, entry: str, *, present: bool, admin: bool = False
    ) -> tuple[tuple[str, str], ...]:
        workload = WORKLOADS[role]
        key = (caller, role, entry, present, admin)
        if workload not in self.tokens:
            self.tokens[workload] = f"Bearer {self.stack.issuer.service_token(workload)}"
        if key not in self.tokens:
            self.tokens[key] = self.stack.issuer.session_token(
                user=caller.user,
                company=self.name_of(caller.company),
                bot=caller.bot,
                entry=entry,
                present=present,
                sources=sorted(caller.sources),
                role="company_admin" if admin else None,
                actor=workload,
            )
        return ("authorization", self.tokens[workload]), ("openbot-session", self.tokens[key])

    async def expect(self, rpc: str, request: Any, metadata: Any, expected: Outcome, *told: object) -> Any:
        """Calls, counts the cell, and keeps what is not as expected. Returns the answer, if any."""
        stub = self.authority if rpc in {"ApplyAuthority", "GetAuthority"} else self.stub
        async with self.lanes:
            outcome, answer, raw = await _outcome(getattr(stub, rpc)(request, metadata=metadata, timeout=30))
        self.cells[rpc] += 1
        if outcome != expected:
            self.wrong.append((rpc, *told, f"expected {expected}", f"got {outcome}"))
        if outcome == NOT_FOUND:
            self.refused.add(raw)
        return answer


async def _outcome(call: Any) -> tuple[Outcome, Any, bytes]:
    """What a call shows: the sorted texts of an answer, or the reason of a refusal."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        status = cast(Any, rpc_status.from_call(cast(Any, error)))
        if status is None:
            raise
        info = error_details_pb2.ErrorInfo()
        status.details[0].Unpack(info)
        return info.reason, None, status.SerializeToString()
    if isinstance(answer, memory_service_pb2.RecallResponse):
        return tuple(sorted(item.memory.text for item in answer.items)), answer, b""
    if isinstance(answer, memory_service_pb2.ListMemoriesResponse):
        return tuple(sorted(memory.text for memory in answer.memories)), answer, b""
    return "ok", answer, b""


def remember_request(place: Place, text: str) -> memory_service_pb2.RememberRequest:
    return memory_service_pb2.RememberRequest(
        text=text,
        source=f"sources/{place.name}" if place.kind is Kind.SOURCE else "",
        this_bot_only=place.kind is Kind.BOT,
        request_id=str(uuid4()),
    )


def forget_request(name: str, etag: str = "") -> memory_service_pb2.ForgetMemoriesRequest:
    target = memory_service_pb2.ForgetMemoriesRequest.Target(name=name, etag=etag)
    return memory_service_pb2.ForgetMemoriesRequest(targets=[target], request_id=str(uuid4()))


async def plant(town: Town) -> None:
    """A memory of every person at every place, and one forget each."""
    for company, users in MEMBERS.items():
        for user, place in itertools.product(users, PLACES):
            bot = place.name if place.kind is Kind.BOT else "assistant"
            caller = Caller(company, user, bot, frozenset(SOURCES))
            who = town.metadata(caller, Role.CHANNEL_GATEWAY, "web", present=True)
            text = f"tea {company} {user} {place.kind.value} {place.name} {town.run}"
            answer = await town.stub.Remember(remember_request(place, text), metadata=who, timeout=30)
            town.memories[answer.memory.name] = Planted(company, user, place)
            town.texts[answer.memory.name] = text
        for user in users:
            caller = Caller(company, user, "assistant", frozenset())
            who = town.metadata(caller, Role.CHANNEL_GATEWAY, "web", present=True)
            spare = await town.stub.Remember(remember_request(PLACES[0], "spare"), metadata=who, timeout=30)
            forget = await town.stub.ForgetMemories(
                forget_request(spare.memory.name), metadata=who, timeout=30
            )
            town.forgets[forget.name] = (company, user)


def callers(claims: Sequence[frozenset[str]]) -> Iterator[Caller]:
    for company, user, bot, sources in itertools.product(MEMBERS, USERS, BOTS, claims):
        yield Caller(company, user, bot, sources)


async def walk(
    town: Town,
    worlds: Mapping[str, World],
    *,
    entries: Sequence[str] = ENTRIES,
    claims: Sequence[frozenset[str]] = CLAIMS,
) -> None:
    """Every caller, by every entry, through every RPC of MemoryService; what changes something comes last,
    since the same people's callers look at the same memories."""
    await asyncio.gather(
        *(
            visit(town, worlds[caller.company], caller, entry)
            for caller, entry in itertools.product(callers(claims), entries)
        )
    )
    await asyncio.gather(*(decide(town, worlds[caller.company], caller) for caller in callers(claims)))


async def visit(town: Town, world: World, caller: Caller, entry: str) -> None:
    present = entry != "schedule"
    visible = town.visible(world, caller)
    shown = tuple(sorted(town.texts[name] for name in visible))
    gateway = town.metadata(caller, Role.CHANNEL_GATEWAY, entry, present=present)
    told = (caller, entry)

    question = memory_service_pb2.RecallRequest(query=f"tea {town.run}", limit=50)
    for role in (Role.CHANNEL_GATEWAY, Role.BOT_RUNTIME):
        who = town.metadata(caller, role, entry, present=present)
        await town.expect("Recall", question, who, shown, *told, role)
    for name, memory in town.memories.items():
        if entry != "web" and memory.user != caller.user:
            continue  # of strangers' memories, one entry will do
        request = memory_service_pb2.GetMemoryRequest(name=name)
        expected = "ok" if name in visible else NOT_FOUND
        answer = await town.expect("GetMemory", request, gateway, expected, *told, memory)
        if answer is not None and answer.text != town.texts[name]:
            town.wrong.append(("GetMemory", *told, memory, "another text"))
    nothing = memory_service_pb2.GetMemoryRequest(name=f"memories/{uuid4()}")
    await town.expect("GetMemory", nothing, gateway, NOT_FOUND, *told)
    for name, (company, user) in town.forgets.items():
        allowed = may_watch_forgets(world, caller, company, user)
        expected = "ok" if allowed else "FORGET_NOT_FOUND"
        await town.expect(
            "GetForget",
            memory_service_pb2.GetForgetRequest(name=name),
            gateway,
            expected if present else "ENTRY_NOT_ALLOWED",
            *told,
        )
    page = memory_service_pb2.ListMemoriesRequest(page_size=200)
    await town.expect("ListMemories", page, gateway, shown if present else "ENTRY_NOT_ALLOWED", *told)


async def decide(town: Town, world: World, caller: Caller) -> None:
    """What changes something: each memory is reached for with an etag that it does not have, and a new one
    is kept at every place and taken back by the same session."""
    visible = town.visible(world, caller)
    who = town.metadata(caller, Role.CHANNEL_GATEWAY, "web", present=True)
    for name, memory in town.memories.items():
        if len(caller.sources) == 1 and memory.user != caller.user:
            continue  # of strangers' memories, none and all of the sources will do
        expected = "ETAG_MISMATCH" if name in visible else NOT_FOUND
        await town.expect(
            "ForgetMemories", forget_request(name, "no-such-etag"), who, expected, caller, memory
        )
    for place in PLACES:
        if place.kind is Kind.BOT and place.name != caller.bot:
            continue  # a session cannot name another bot than its own
        if place.kind is not Kind.SOURCE and len(caller.sources) == 1:
            continue  # as with none and with all
        allowed = may_keep(world, caller, place)
        refused = "SOURCE_NOT_FOUND" if place.kind is Kind.SOURCE else "SCOPE_NOT_USABLE"
        request = remember_request(place, "passing by")
        answer = await town.expect("Remember", request, who, "ok" if allowed else refused, caller, place)
        if answer is not None:
            await town.expect("ForgetMemories", forget_request(answer.memory.name), who, "ok", caller, place)


async def knock(town: Town) -> None:
    """RPC x role x presence x entry x administrator, by a person who may see everything."""
    caller = Caller("acme", "lin", "assistant", frozenset(SOURCES))
    mine = next(name for name, m in town.memories.items() if may_see(OPEN["acme"], caller, m))
    forget = next(name for name, owner in town.forgets.items() if owner == ("acme", "lin"))
    company = town.name_of("acme")
    requests: dict[str, tuple[Any, str | None]] = {
        "Remember": (remember_request(Place(Kind.SOURCE, "no-such"), "x"), "SOURCE_NOT_FOUND"),
        "Recall": (memory_service_pb2.RecallRequest(query="nothing like it", limit=1), None),
        "GetMemory": (memory_service_pb2.GetMemoryRequest(name=mine), "ok"),
        "ListMemories": (memory_service_pb2.ListMemoriesRequest(page_size=1), None),
        "ForgetMemories": (forget_request(mine, "no-such-etag"), "ETAG_MISMATCH"),
        "GetForget": (memory_service_pb2.GetForgetRequest(name=forget), "ok"),
        "ApplyAuthority": (
            authority_service_pb2.ApplyAuthorityRequest(
                company_id=company,
                revision=2,
                batch=authority_service_pb2.Batch(base_revision=1),
                validate_only=True,
            ),
            "ok",
        ),
        "GetAuthority": (authority_service_pb2.GetAuthorityRequest(company_id=company), "ok"),
    }
    for (rpc, (request, passing)), role, entry, present, admin in itertools.product(
        requests.items(), Role, ENTRIES, (True, False), (True, False)
    ):
        if present and entry == "schedule":
            continue  # no such token is valid
        who = town.metadata(caller, role, entry, present=present, admin=admin)
        expected = refusal(rpc, role, entry, present=present, admin=admin)
        told = (role, entry, present, admin)
        if expected is None and passing is None:
            outcome, _, _ = await _outcome(getattr(town.stub, rpc)(request, metadata=who, timeout=30))
            town.cells[rpc] += 1
            if isinstance(outcome, str):
                town.wrong.append((rpc, *told, outcome))
        else:
            await town.expect(rpc, request, who, expected or passing or "", *told)


async def test_every_caller_sees_what_the_rules_allow_and_nothing_else(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    async with grpc.aio.insecure_channel(stack.address) as channel:
        town = Town(
            stack,
            memory_service_pb2_grpc.MemoryServiceStub(channel),
            authority_service_pb2_grpc.AuthorityServiceStub(channel),
        )
        town.state(OPEN)
        await plant(town)
        await knock(town)

        town.state(SPARSE)
        await walk(town, SPARSE)

        town.state(LEFT)
        for name, memory in town.memories.items():
            if (memory.company, memory.place.name) in TAKEN_AWAY:
                town.memories[name] = replace(memory, revoked=True)
        few: Any = {"entries": ("web",), "claims": (frozenset(SOURCES),)}
        await walk(town, LEFT, **few)

        town.state(BACK)
        await walk(town, BACK, **few)
    with capsys.disabled():
        sys.stdout.write(f"\nauthorisation matrix: {town.cells.total()} cells, {dict(town.cells)}\n")
    assert town.wrong[:5] == []
    assert len(town.refused) == 1, "a memory of another and none at all get the same answer"
    assert town.cells.total() > 9_000
