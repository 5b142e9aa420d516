"""What came from a revoked source is forgotten by the daemons, in steps, whoever of them dies."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from devstack.control_plane import Source
from sync_daemon.revocation import Revocation
from sync_daemon.store.revocations import RevocationStore
from sync_daemon.wakeup import Wakeup
from tenant_db import TenantDatabase

from tests.integration.office import Office

pytestmark = pytest.mark.postgres

SHARED = Source("product", users=("lin", "omar"), bots=("assistant",))
BOTH = {"teams": {"product": ("lin", "omar"), "sales": ("lin",)}, "sources": {"weekly": SHARED}}


@pytest.fixture
async def daemons(lonely_office: Office) -> AsyncIterator[TenantDatabase]:
    dsn = lonely_office.database.dsn("sync_daemon")
    async with TenantDatabase(dsn, role="sync_daemon", application_name="test") as database:
        yield database


def revocation(daemons: TenantDatabase) -> Revocation:
    return Revocation(RevocationStore(daemons), Wakeup(""), poll_s=1)


async def emptied(duty: Revocation) -> int:
    """Works until nothing is left; the number of steps."""
    steps = 0
    while await duty.erase_once():
        steps += 1
    return steps


async def test_everyones_memories_of_the_source_are_forgotten_and_no_others(
    lonely_office: Office, daemons: TenantDatabase
) -> None:
    office = lonely_office
    await office.settle(**BOTH)
    for asker in (office.lin, office.omar):
        for number in range(3):
            await office.remember(f"tea {number}", asker=asker, source="weekly")
        await office.remember("coffee", asker=asker)
    await office.settle(**BOTH | {"sources": {}})
    assert await emptied(revocation(daemons)) > 0

    rows = await office.as_admin(
        "select memories.user_id, memories.state, text, forgets.cause,"
        " forgets.stopped_use_at = scopes.revoked_at as same,"
        " outbox.memory_id is not null as queued, entries.state as index_state, scopes.source_id"
        " from openbot.memories join openbot.scopes using (scope_id)"
        " left join openbot.forget_items using (memory_id) left join openbot.forgets using (forget_id)"
        " left join openbot.outbox using (memory_id)"
        " join openbot.index_entries as entries using (memory_id)"
    )
    assert len(rows) == 8
    for row in rows:
        if row["source_id"] is None:
            assert (row["state"], row["text"], row["cause"]) == ("active", "coffee", None)
        else:
            assert (row["state"], row["text"], row["cause"]) == ("forgotten", None, "source_revoked")
            assert (row["same"], row["queued"], row["index_state"]) == (True, True, "pending")
    left = await office.as_admin(
        "select from openbot.scopes where revoked_at is not null and erased_at is null"
    )
    assert left == []


async def test_large_sources_are_erased_in_steps_by_several_daemons_once_each(
    lonely_office: Office, daemons: TenantDatabase
) -> None:
    office = lonely_office
    await office.remember("first", source="weekly")
    await office.as_admin(
        "with made as ("
        " insert into openbot.memories (company_id, user_id, scope_id, text)"
        " select company_id, user_id, scope_id, 'tea ' || n"
        " from openbot.scopes, generate_series(1, 1600) as n"
        " returning memory_id, company_id, user_id)"
        " insert into openbot.index_entries (memory_id, company_id, user_id) select * from made"
    )
    await office.settle(sources={})
    steps = await asyncio.gather(*(emptied(revocation(daemons)) for _ in range(3)))
    await emptied(revocation(daemons))
    assert sum(steps) >= 4
    counted = await office.as_admin(
        "select count(*) as items, count(distinct memory_id) as memories from openbot.forget_items"
    )
    assert (counted[0]["items"], counted[0]["memories"]) == (1601, 1601)
    assert await office.as_admin("select from openbot.memories where text is not null") == []


async def test_a_step_that_is_cut_off_leaves_nothing_half_done(
    lonely_office: Office, daemons: TenantDatabase
) -> None:
    office = lonely_office
    await office.remember("tea", source="weekly")
    await office.settle(sources={})
    await office.as_admin(
        "create function openbot.cut() returns trigger language plpgsql as"
        " $$ begin raise exception 'cut'; end $$"
    )
    await office.as_admin(
        "create trigger cut before update on openbot.index_entries"
        " for each row execute function openbot.cut()"
    )
    duty = revocation(daemons)
    stop = asyncio.Event()
    running = asyncio.create_task(duty.run(stop))
    await asyncio.sleep(0.2)
    assert await office.count("forgets") == 0
    kept = await office.as_admin("select text from openbot.memories")
    assert [row["text"] for row in kept] == ["tea"], "blocked, and not erased yet"
    assert await office.recalled("tea") == []
    await office.as_admin("drop trigger cut on openbot.index_entries")
    stop.set()
    await running
    await emptied(duty)
    assert await office.as_admin("select from openbot.memories where text is not null") == []


async def test_a_blocked_source_is_not_erased(lonely_office: Office, daemons: TenantDatabase) -> None:
    office = lonely_office
    await office.remember("tea", source="weekly")
    await office.settle(sources={"weekly": replace(office.facts.sources["weekly"], enabled=False)})
    assert await emptied(revocation(daemons)) == 0
    await office.settle()
    assert await office.recalled("tea") == ["tea"]
