"""What the schema lets nobody do to a forget or a memory, whichever role or mistake is behind it (I7, I8)."""

from uuid import UUID

import asyncpg
import pytest

from tests.integration.office import Office

pytestmark = pytest.mark.postgres

DOMAINS = ("authority_active", "index_active", "index_operations", "backups")


async def as_daemon(office: Office, statement: str, *values: object) -> str:
    connection = await asyncpg.connect(office.database.dsn("sync_daemon"))
    try:
        async with connection.transaction():
            await connection.execute(
                "select set_config('openbot.company', $1, true), set_config('openbot.user', 'lin', true)",
                office.company,
            )
            return str(await connection.execute(statement, *values))
    finally:
        await connection.close()


async def prove(office: Office, forget_id: UUID, observed: str = '{"units": 0, "bank_exists": true}') -> None:
    await as_daemon(
        office,
        "insert into openbot.clearance_evidence"
        " (company_id, user_id, forget_id, memory_id, domain, cleared, observed, prober)"
        " select company_id, user_id, forget_id, memory_id, unnest($2::text[])::openbot.clearance_domain,"
        " true, $3::text::jsonb, 'test/1' from openbot.forget_items where forget_id = $1",
        forget_id,
        list(DOMAINS),
        observed,
    )


async def move(office: Office, forget_id: UUID, state: str) -> None:
    moved = await as_daemon(
        office,
        "update openbot.forgets set state = $2, cleared_at = case when $2 = 'cleared' then now() end"
        " where forget_id = $1",
        forget_id,
        state,
    )
    assert moved == "UPDATE 1"


async def test_a_forget_goes_one_way_only(office: Office) -> None:
    forget_id = (await office.forget((await office.remember("tea")).memory_id)).forget_id
    await prove(office, forget_id)
    with pytest.raises(asyncpg.CheckViolationError):
        await move(office, forget_id, "cleared")  # past clearing
    await move(office, forget_id, "clearing")
    with pytest.raises(asyncpg.CheckViolationError):
        await move(office, forget_id, "stopped_use")
    await move(office, forget_id, "cleared")
    for state in ("stopped_use", "clearing", "cleared"):
        with pytest.raises(asyncpg.CheckViolationError):
            await move(office, forget_id, state)


async def test_the_last_answer_counts_not_the_best(office: Office) -> None:
    forget_id = (await office.forget((await office.remember("tea")).memory_id)).forget_id
    await move(office, forget_id, "clearing")
    await prove(office, forget_id)
    await as_daemon(
        office,
        "insert into openbot.clearance_evidence"
        " (company_id, user_id, forget_id, memory_id, domain, cleared, reason, observed, prober)"
        " select company_id, user_id, forget_id, memory_id, 'backups', false, 'BACKUPS_NOT_PURGED', '{}',"
        " 'test/1' from openbot.forget_items where forget_id = $1",
        forget_id,
    )
    with pytest.raises(asyncpg.CheckViolationError):
        await move(office, forget_id, "cleared")


async def test_evidence_about_one_memory_does_not_clear_a_forget_of_two(office: Office) -> None:
    memories = [(await office.remember(word)).memory_id for word in ("tea", "coffee")]
    first = (await office.forget(memories[0])).forget_id
    both = (await office.forget(*memories)).forget_id
    await prove(office, first)
    await move(office, both, "clearing")
    with pytest.raises(asyncpg.CheckViolationError):
        await move(office, both, "cleared")


async def test_a_forget_that_is_being_cleared_takes_no_more_memories(office: Office) -> None:
    memory, other = [(await office.remember(word)).memory_id for word in ("tea", "coffee")]
    forget_id = (await office.forget(memory)).forget_id
    await move(office, forget_id, "clearing")
    async with office.api.of(office.company, "lin") as connection:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(
                "insert into openbot.forget_items values ($1, $2, $3, 'lin')",
                forget_id,
                other,
                office.company,
            )


@pytest.mark.parametrize(
    "observed",
    ['{"document": "green tea"}', '{"units": ["green tea"]}', '{"units": {"green": 1}}', '{"green tea": 1}',
     '"green tea"', '["green tea"]', '{"units": null}'],
)  # fmt: skip
async def test_evidence_is_counts_and_flags_and_never_words(office: Office, observed: str) -> None:
    forget_id = (await office.forget((await office.remember("tea")).memory_id)).forget_id
    with pytest.raises(asyncpg.CheckViolationError):
        await prove(office, forget_id, observed)


@pytest.mark.parametrize(
    "change",
    [
        "state = 'forgotten', text = null, forgotten_at = now()",
        "state = 'forgotten', text = null, forgotten_at = now(), version = 1",
        "state = 'forgotten', forgotten_at = now(), version = 2",
        "text = null, version = 2",
        "text = 'coffee', version = 2",
        "text = '', version = 2",
        "forgotten_at = now(), version = 2",
    ],
)
async def test_no_half_change_of_a_memory_is_accepted(office: Office, change: str) -> None:
    memory_id = (await office.remember("tea")).memory_id
    with pytest.raises(asyncpg.CheckViolationError):
        await office.as_admin(f"update openbot.memories set {change} where memory_id = $1", memory_id)


async def test_nothing_of_a_forgotten_memory_can_be_changed(office: Office) -> None:
    memory_id = (await office.remember("tea")).memory_id
    await office.forget(memory_id)
    for change in (
        "state = 'active', text = 'tea', forgotten_at = null, version = version + 1",
        "version = version + 1",
        "forgotten_at = now()",
    ):
        with pytest.raises(asyncpg.CheckViolationError):
            await office.as_admin(f"update openbot.memories set {change} where memory_id = $1", memory_id)
