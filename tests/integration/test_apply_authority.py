"""ApplyAuthority: revisions in order, all or nothing, and what removing a fact blocks or revokes."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from devstack.control_plane import Company, Source
from devstack.template import ClonedDatabase
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_api.authority import (
    NO_FACTS,
    NO_KEYS,
    Applied,
    Batch,
    Changes,
    FactKind,
    Facts,
    Key,
    Snapshot,
    Value,
    difference,
)
from memory_api.authority_presentation import content_of
from memory_api.errors import (
    DanglingReference,
    ForgetNotFound,
    InvalidRequest,
    MemoryNotFound,
    RevisionGap,
    RevisionReused,
    SnapshotRevokesSources,
)
from memory_api.operations.apply_authority import apply_authority
from memory_api.store.authority import AuthorityStore
from openbot.memory.v1 import authority_service_pb2 as contract
from tenant_db import TenantDatabase

from tests.integration.office import Office

pytestmark = pytest.mark.postgres


class Desk:
    """The control plane's desk for the office's company."""

    def __init__(self, office: Office, database: TenantDatabase) -> None:
        self.company = office.company
        self.database = database
        self.store = AuthorityStore(database)

    async def apply(
        self, revision: int, content: Batch | Snapshot, *, validate_only: bool = False
    ) -> Applied:
        return await apply_authority(
            self.database,
            self.store,
            self.company,
            revision=revision,
            content=content,
            validate_only=validate_only,
        )

    async def revision(self) -> int:
        return (await self.store.feed(self.company)).revision

    async def facts(self) -> Facts:
        async with self.database.of_company(self.company) as connection:
            return await self.store.facts(connection)


@pytest.fixture
async def desk(office: Office) -> AsyncIterator[Desk]:
    """The office is at revision 1 when it opens."""
    dsn = office.database.dsn("authority_writer")
    async with TenantDatabase(dsn, role="authority_writer", application_name="test") as database:
        yield Desk(office, database)


def facts(**stated: Mapping[Key, Value]) -> Facts:
    return {**NO_FACTS, **{FactKind(kind): rows for kind, rows in stated.items()}}


def batch(base: int, upserts: Facts = NO_FACTS, **removed: set[Key]) -> Batch:
    removals = {FactKind(kind): frozenset(keys) for kind, keys in removed.items()}
    return Batch(base, Changes(upserts, {**NO_KEYS, **removals}))


MINA_ALONE: Facts = {FactKind.MEMBER: {("mina",): ()}}
MINA = facts(member={("mina",): ()})


async def test_a_batch_from_the_current_revision_is_applied_once(desk: Desk) -> None:
    first = await desk.apply(2, batch(1, MINA))
    assert (first.feed.revision, first.counts and first.counts.upserted) == (2, 1)
    assert ("mina",) in (await desk.facts())[FactKind.MEMBER]
    repeated = await desk.apply(2, batch(1, MINA))
    assert (repeated.feed, repeated.counts) == (first.feed, None)


async def test_a_late_batch_changes_nothing(desk: Desk) -> None:
    await desk.apply(2, batch(1, MINA))
    await desk.apply(7, batch(2, member={("mina",)}))
    for late in (2, 3, 6):
        assert (await desk.apply(late, batch(late - 1, MINA))).counts is None
        assert (await desk.apply(late, Snapshot(MINA, revoke_missing_sources=True))).counts is None
    assert ("mina",) not in (await desk.facts())[FactKind.MEMBER]
    assert await desk.revision() == 7


@pytest.mark.parametrize("base", [0, 2, 5])
async def test_a_gap_is_reported_with_the_revision_to_start_from(desk: Desk, base: int) -> None:
    with pytest.raises(RevisionGap) as caught:
        await desk.apply(9, batch(base, MINA))
    assert caught.value.metadata == {"current_revision": "1"}
    assert await desk.revision() == 1
    assert ("mina",) not in (await desk.facts())[FactKind.MEMBER]


async def test_the_same_revision_with_other_content_is_no_repetition(desk: Desk) -> None:
    await desk.apply(2, batch(1, MINA))
    with pytest.raises(RevisionReused):
        await desk.apply(2, batch(1, member={("omar",)}))
    assert ("omar",) in (await desk.facts())[FactKind.MEMBER]


async def test_a_snapshot_replaces_everything_at_any_later_revision(desk: Desk) -> None:
    wanted = facts(
        member={("mina",): (), ("lin",): ()},
        team={("sales",): ()},
        bot={("assistant",): (False,)},
        team_member={("sales", "mina"): ()},
        bot_team={("assistant", "sales"): ()},
        source={("weekly",): ("sales", "conversation", False)},
        source_user_grant={("weekly", "mina"): ()},
        source_bot_grant={("weekly", "assistant"): ()},
    )
    await desk.apply(40, Snapshot(wanted))
    assert await desk.facts() == wanted
    again = await desk.apply(40, Snapshot(wanted))
    assert again.counts is not None
    assert (again.counts.upserted, again.counts.removed) == (0, 0)


async def test_a_snapshot_revokes_sources_only_if_it_says_so(desk: Desk) -> None:
    with pytest.raises(SnapshotRevokesSources) as caught:
        await desk.apply(2, Snapshot(MINA))
    assert caught.value.metadata == {"source_count": "1"}
    assert ("weekly",) in (await desk.facts())[FactKind.SOURCE]
    done = await desk.apply(2, Snapshot(MINA, revoke_missing_sources=True))
    assert done.counts is not None
    assert done.counts.revoked_sources == 1


async def test_to_validate_only_counts_and_changes_nothing(desk: Desk) -> None:
    before = await desk.facts()
    tried = await desk.apply(2, Snapshot(MINA, revoke_missing_sources=True), validate_only=True)
    assert tried.counts is not None
    assert tried.counts.revoked_sources == 1
    assert tried.feed.revision == 1
    assert await desk.facts() == before
    assert await desk.revision() == 1


@pytest.mark.parametrize(
    "upserts",
    [
        facts(team_member={("product", "nobody"): ()}),
        facts(team_member={("nowhere", "lin"): ()}),
        facts(source={("new",): ("nowhere", "connector", True)}),
        facts(source_user_grant={("nothing", "lin"): ()}),
        facts(source_bot_grant={("weekly", "nobody"): ()}),
        facts(bot_team={("assistant", "nowhere"): ()}),
    ],
    ids=str,
)
async def test_a_fact_that_hangs_in_the_air_refuses_the_whole_batch(desk: Desk, upserts: Facts) -> None:
    before = await desk.facts()
    with pytest.raises(DanglingReference):
        await desk.apply(2, Batch(1, Changes({**upserts, **MINA_ALONE}, NO_KEYS)))
    with pytest.raises(DanglingReference):
        await desk.apply(2, Snapshot(upserts, revoke_missing_sources=True))
    assert await desk.facts() == before
    assert await desk.revision() == 1


async def test_a_source_that_moves_while_its_team_goes_is_not_revoked(desk: Desk) -> None:
    moved = facts(source={("weekly",): ("sales", "connector", True)})
    done = await desk.apply(2, batch(1, moved, team={("product",)}))
    assert done.counts is not None
    assert done.counts.revoked_sources == 0
    current = await desk.facts()
    assert current[FactKind.SOURCE] == {("weekly",): ("sales", "connector", True)}
    kept: Facts = {
        **current,
        FactKind.TEAM: {("sales",): (), ("new",): ()},
        FactKind.SOURCE: {("weekly",): ("new", "connector", True)},
    }
    await desk.apply(3, Snapshot(kept))
    assert (await desk.facts())[FactKind.SOURCE] == kept[FactKind.SOURCE]


async def test_what_hangs_on_a_removed_fact_goes_with_it_even_if_it_is_added(desk: Desk) -> None:
    await desk.apply(2, batch(1, facts(source_user_grant={("weekly", "omar"): ()}), member={("omar",)}))
    current = await desk.facts()
    assert ("omar",) not in current[FactKind.MEMBER]
    assert ("weekly", "omar") not in current[FactKind.SOURCE_USER_GRANT]


async def test_two_writers_of_one_company_go_one_after_the_other(desk: Desk) -> None:
    outcomes = await asyncio.gather(
        *(desk.apply(2, batch(1, facts(member={(f"user-{n}",): ()}))) for n in range(8)),
        return_exceptions=True,
    )
    assert sum(isinstance(each, Applied) for each in outcomes) == 1
    assert sum(isinstance(each, RevisionReused) for each in outcomes) == 7


def request(**fields: Any) -> contract.ApplyAuthorityRequest:
    return contract.ApplyAuthorityRequest(company_id="acme", revision=1, **fields)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (
            request(snapshot=contract.Snapshot(facts=contract.Facts(user_ids=["lin", "lin"]))),
            "snapshot.facts.user_ids",
        ),
        (
            request(
                batch=contract.Batch(
                    upserts=contract.Facts(
                        bots=[contract.Bot(bot_id="b", general_preferences=yes) for yes in (True, False)]
                    )
                )
            ),
            "batch.upserts.bots",
        ),
        (
            request(batch=contract.Batch(removals=contract.FactKeys(source_ids=["s", "s"]))),
            "batch.removals.source_ids",
        ),
        (
            request(
                batch=contract.Batch(
                    upserts=contract.Facts(user_ids=["lin"]), removals=contract.FactKeys(user_ids=["lin"])
                )
            ),
            "batch.removals",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fact_is_stated_once(wrong: contract.ApplyAuthorityRequest, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        content_of(wrong)
    assert [path for path, _ in caught.value.violations] == [field]


def test_the_digest_does_not_depend_on_the_order_of_facts() -> None:
    users = [(f"u{n}",) for n in range(5)]
    digests = {
        batch(1, facts(member=dict.fromkeys(order, ()))).digest() for order in itertools.permutations(users)
    }
    assert len(digests) == 1
    assert batch(1, member={("u1",)}).digest() not in digests


names = st.sampled_from(["a", "b", "c"])


@given(
    st.fixed_dictionaries(
        {
            kind: st.dictionaries(
                st.tuples(names), st.just(()) if kind is not FactKind.BOT else st.just((True,))
            )
            for kind in (FactKind.MEMBER, FactKind.TEAM, FactKind.BOT)
        }
    ),
    st.fixed_dictionaries(
        {
            kind: st.dictionaries(st.tuples(names), st.tuples(st.booleans()))
            for kind in (FactKind.MEMBER, FactKind.TEAM, FactKind.BOT)
        }
    ),
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_a_difference_leads_from_one_state_to_the_other(current: Facts, wanted: Facts) -> None:
    current, wanted = {**NO_FACTS, **current}, {**NO_FACTS, **wanted}
    changes = difference(current, wanted)
    for kind in FactKind:
        kept = {key: value for key, value in current[kind].items() if key not in changes.removals[kind]}
        assert kept | dict(changes.upserts[kind]) == wanted[kind]
        assert changes.removals[kind].isdisjoint(changes.upserts[kind])
        assert all(current[kind].get(key) != value for key, value in changes.upserts[kind].items())


# ---------------------------------------------------------------- what blocks, and what comes back


WEEKLY = Source("product", users=("lin",), bots=("assistant",))
BLOCKING: dict[str, dict[str, Any]] = {
    "the person's grant": {"sources": {"weekly": replace(WEEKLY, users=())}},
    "the bot's grant": {
        "sources": {"weekly": replace(WEEKLY, bots=())},
        "bot_teams": {"assistant": ["product"]},
    },
    "the bot's team": {"bot_teams": {"assistant": []}},
    "the source switched off": {"sources": {"weekly": replace(WEEKLY, enabled=False)}},
    "the team membership": {"teams": {"product": (), "sales": ("lin",)}},
    "the bot": {"bots": {"narrow": False}, "sources": {"weekly": replace(WEEKLY, bots=())}},
    "the membership": {
        "members": ("omar",),
        "teams": {"product": (), "sales": ()},
        "sources": {"weekly": replace(WEEKLY, users=())},
    },
}


@pytest.mark.parametrize("what", BLOCKING)
async def test_what_is_taken_away_blocks_at_once_and_given_back_unblocks(office: Office, what: str) -> None:
    memory = await office.remember("green tea", source="weekly")
    await office.settle(**BLOCKING[what])
    assert await office.recalled("tea") == []
    assert (await office.page()).memories == ()
    with pytest.raises(MemoryNotFound):
        await office.get(memory.memory_id)
    with pytest.raises(MemoryNotFound):
        await office.forget(memory.memory_id)
    await office.settle()
    assert (await office.get(memory.memory_id)).text == "green tea"
    assert await office.recalled("tea") == ["green tea"]


@pytest.mark.parametrize("what", ["the bot", "the membership"])
async def test_who_is_no_longer_of_the_company_does_not_watch_forgets(office: Office, what: str) -> None:
    forget = await office.forget((await office.remember("tea")).memory_id)
    await office.settle(**BLOCKING[what])
    with pytest.raises(ForgetNotFound):
        await office.watch(forget.forget_id)
    await office.settle()
    assert (await office.watch(forget.forget_id)).forget_id == forget.forget_id


@pytest.mark.parametrize("what", ["the source", "its team"])
async def test_a_revoked_source_never_comes_back(office: Office, what: str) -> None:
    memory = await office.remember("green tea", source="weekly")
    await office.settle(sources={}, **({"teams": {"sales": ("lin",)}} if what == "its team" else {}))
    assert await office.recalled("tea") == []
    await office.settle()
    assert await office.recalled("tea") == []
    with pytest.raises(MemoryNotFound):
        await office.get(memory.memory_id)
    newer = await office.remember("black tea", source="weekly")
    assert await office.recalled("tea") == ["black tea"]
    scopes = await office.as_admin(
        "select count(distinct bank_id) as banks from openbot.scopes where company_id = $1", office.company
    )
    assert scopes[0]["banks"] == 2, newer


async def test_other_peoples_and_other_companies_sources_are_left_alone(
    office: Office, shared_database: ClonedDatabase
) -> None:
    other = Office(shared_database, office.api)
    await other.settle()
    await other.remember("black tea", source="weekly")
    await office.remember("green tea", source="weekly")
    await office.settle(sources={})
    assert await other.recalled("tea") == ["black tea"]


async def test_the_writer_cannot_take_a_revocation_back(office: Office, desk: Desk) -> None:
    await office.remember("green tea", source="weekly")
    await office.settle(sources={})
    async with desk.database.of_company(office.company) as connection:
        assert await connection.execute("update openbot.scopes set revoked_at = null") == "UPDATE 0"
    async with desk.database.of_company(office.company) as connection:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute("update openbot.authority_feeds set revision = 1")


def test_a_company_of_the_development_stack_states_its_bots_teams() -> None:
    company = Company("acme", ("lin",), {"a": True, "b": True}, {"t": ()}, {"s": Source("t", bots=("a",))})
    stated = company.facts()
    assert [(each.bot_id, each.team_id) for each in stated.bot_teams] == [("a", "t")]
