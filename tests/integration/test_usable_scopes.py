"""Who may use what: every combination of the facts, against a model of the rules in plain Python."""

import itertools
from dataclasses import dataclass, fields
from uuid import uuid4

import asyncpg
import pytest
from devstack.authority_seed import Company, Source, seed_authority
from devstack.template import ClonedDatabase

pytestmark = pytest.mark.postgres


@dataclass(frozen=True)
class Facts:
    """One thing each that may or may not be so."""

    company_member: bool
    team_member: bool
    bot_known: bool
    bot_sees_general: bool
    user_granted: bool
    bot_granted: bool
    source_enabled: bool
    session_for_source: bool

    def general(self) -> bool:
        return self.company_member and self.bot_known and self.bot_sees_general

    def source(self) -> bool:
        return (
            self.company_member
            and self.team_member
            and self.bot_known
            and self.user_granted
            and self.bot_granted
            and self.source_enabled
            and self.session_for_source
        )

    def company(self) -> Company:
        # A grant or a team membership needs the member or bot that it is for.
        member = self.company_member
        bot = self.bot_known
        return Company(
            "acme",
            members=("lin",) if member else (),
            bots={"assistant": self.bot_sees_general} if bot else {},
            teams={"product": ("lin",) if member and self.team_member else ()},
            sources={
                "weekly": Source(
                    "product",
                    users=("lin",) if member and self.user_granted else (),
                    bots=("assistant",) if bot and self.bot_granted else (),
                    enabled=self.source_enabled,
                )
            },
        )


async def usable(database: ClonedDatabase, sources: list[str]) -> set[str]:
    connection = await asyncpg.connect(database.dsn("memory_api"))
    try:
        async with connection.transaction():
            await connection.execute(
                "select set_config('openbot.company', 'acme', true), set_config('openbot.user', 'lin', true)"
            )
            rows = await connection.fetch(
                "select kind from openbot.scopes where scope_id in"
                " (select openbot.usable_scopes('assistant', $1::text[]))",
                sources,
            )
            return {row["kind"] for row in rows}
    finally:
        await connection.close()


async def scopes(database: ClonedDatabase, team: str = "product") -> None:
    connection = await asyncpg.connect(database.admin_dsn)
    try:
        await connection.executemany(
            "insert into openbot.scopes (company_id, user_id, kind, team_id, source_id)"
            " values ($1, $2, $3, $4, $5)",
            [
                ("acme", "lin", "general", None, None),
                ("acme", "lin", "team_source", team, "weekly"),
                ("acme", "omar", "general", None, None),
                ("globex", "lin", "general", None, None),
            ],
        )
    finally:
        await connection.close()


async def test_every_combination_of_facts_gives_what_the_rules_say(database: ClonedDatabase) -> None:
    await scopes(database)
    wrong = []
    for values in itertools.product((True, False), repeat=len(fields(Facts))):
        facts = Facts(*values)
        await seed_authority(database.dsn("authority_writer"), facts.company())
        expected = {
            kind for kind, holds in (("general", facts.general()), ("team_source", facts.source())) if holds
        }
        found = await usable(database, ["weekly", "other"] if facts.session_for_source else ["other"])
        if found != expected:
            wrong.append((facts, expected, found))
    assert wrong == []


async def test_a_source_that_moved_to_another_team_takes_no_memories_along(database: ClonedDatabase) -> None:
    await scopes(database, team="former")
    everything = Facts(*[True] * len(fields(Facts)))
    await seed_authority(database.dsn("authority_writer"), everything.company())
    assert await usable(database, ["weekly"]) == {"general"}


async def test_the_writer_of_one_company_cannot_touch_another(database: ClonedDatabase) -> None:
    await seed_authority(database.dsn("authority_writer"), Company("globex", members=("lin",), bots={}))
    connection = await asyncpg.connect(database.dsn("authority_writer"))
    try:
        async with connection.transaction():
            await connection.execute("select set_config('openbot.company', 'acme', true)")
            assert (
                await connection.execute("delete from openbot.companies where company_id = 'globex'")
                == "DELETE 0"
            )
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(
                    "insert into openbot.company_members values ('globex', $1)", uuid4().hex
                )
    finally:
        await connection.close()
