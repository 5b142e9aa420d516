"""Permissions that change between the index's answer and the reading of the text (I2, I3, I6)."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest
from devstack.client import Session
from devstack.control_plane import Company, ControlPlane, Source
from devstack.stack import Stack
from openbot.memory.v1 import authority_service_pb2 as authority
from openbot.memory.v1 import memory_service_pb2

from tests.eventually import until
from tests.faults.proxy import FaultyProxy, Held
from tests.faults.systems import RECALL, is_indexed

pytestmark = pytest.mark.e2e

Answer = memory_service_pb2.RecallResponse
FACTS = Company(
    "",
    members=("lin", "omar"),
    bots={"assistant": True},
    teams={"product": ("lin",)},
    sources={"weekly": Source("product", users=("lin",), bots=("assistant",))},
)


@dataclass
class Office:
    """A company whose Lin has one indexed memory of the source."""

    company: str
    lin: Session
    control_plane: ControlPlane

    def revoke(self, removals: authority.FactKeys) -> authority.ApplyAuthorityResponse:
        return self.control_plane.change(self.company, removals=removals)

    def disable(self) -> authority.ApplyAuthorityResponse:
        off = authority.Source(
            source_id="weekly", team_id="product", kind=authority.Source.KIND_CONNECTOR, enabled=False
        )
        return self.control_plane.change(self.company, upserts=authority.Facts(sources=[off]))

    def narrow(self) -> authority.ApplyAuthorityResponse:
        gone = authority.SourceBotGrant(source_id="weekly", bot_id="assistant")
        return self.revoke(authority.FactKeys(source_bot_grants=[gone]))


@pytest.fixture
def office(fragile: Stack, proxy: FaultyProxy) -> Iterator[Office]:
    company = f"meanwhile-{uuid4().hex[:12]}"
    with (
        ControlPlane(fragile.address, fragile.issuer) as control_plane,
        Session(
            fragile.address, fragile.issuer, user="lin", company=company, bot="assistant", sources=("weekly",)
        ) as lin,
    ):
        control_plane.state(replace(FACTS, company=company))
        memory = lin.remember("The product meeting moves to Monday.", source="weekly")
        assert until(lambda: is_indexed(lin, memory.name))
        yield Office(company, lin, control_plane)
        proxy.heal()


REVOCATIONS: dict[str, Callable[[Office], authority.ApplyAuthorityResponse]] = {
    "the member": lambda o: o.revoke(authority.FactKeys(user_ids=["lin"])),
    "the team membership": lambda o: o.revoke(
        authority.FactKeys(team_members=[authority.TeamMember(team_id="product", user_id="lin")])
    ),
    "the team": lambda o: o.revoke(authority.FactKeys(team_ids=["product"])),
    "the bot": lambda o: o.revoke(authority.FactKeys(bot_ids=["assistant"])),
    "the bot's team": lambda o: o.revoke(
        authority.FactKeys(bot_teams=[authority.BotTeam(bot_id="assistant", team_id="product")])
    ),
    "the source": lambda o: o.revoke(authority.FactKeys(source_ids=["weekly"])),
    "the source, disabled": lambda o: o.disable(),
    "the person's grant": lambda o: o.revoke(
        authority.FactKeys(source_user_grants=[authority.SourceUserGrant(source_id="weekly", user_id="lin")])
    ),
    "the bot's grant": lambda o: o.narrow(),
}


@pytest.mark.parametrize("what", REVOCATIONS)
def test_a_permission_that_goes_while_the_index_answers_keeps_the_words(
    office: Office, proxy: FaultyProxy, what: str
) -> None:
    held = Held()
    rule = proxy.on(RECALL, held, times=1)
    with ThreadPoolExecutor(1) as threads:
        recalling = threads.submit(office.lin.recall, "When is the product meeting?")
        assert held.arrived.wait(10), "the index has answered, and nobody has heard it yet"
        done = REVOCATIONS[what](office)
        assert done.outcome == authority.ApplyAuthorityResponse.OUTCOME_APPLIED
        held.let_go()
        answer = recalling.result(20)
    assert rule.times == 0
    assert list(answer.items) == []
    assert answer.served_by == Answer.SERVED_BY_INDEX, "the index's answer arrived, and was not enough"


def test_the_pause_alone_keeps_nothing_back(office: Office, proxy: FaultyProxy) -> None:
    held = Held()
    proxy.on(RECALL, held, times=1)
    with ThreadPoolExecutor(1) as threads:
        recalling = threads.submit(office.lin.recall, "When is the product meeting?")
        assert held.arrived.wait(10)
        held.let_go()
        assert [item.memory.text for item in recalling.result(20).items] == [
            "The product meeting moves to Monday."
        ]
