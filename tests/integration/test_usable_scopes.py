"""Who may use what: every combination of the facts, against a model of the rules in plain Python."""

import itertools
from dataclasses import dataclass, fields
from uuid import uuid4

import asyncpg
import pytest
from devstack.control_plane import Company, Source
from devstack.template import ClonedDatabase

from tests.authority import state_facts

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

    def company(self, name: str) -> Company:
        # A grant or a team membership needs the member or bot that it is for. Omar and the other
        # bot have every right, which must help neither Lin nor the assistant.
        member = self.company_member
        bot = self.bot_known
        return Company(
            name,
            members=("omar", "lin") if member else ("omar",),
            bots={"other": True} | ({"assistant": self.bot_sees_general} if bot else {}),
            teams={"product": ("omar", "lin") if member and self.team_member else ("omar",)},
            sources={
                "weekly": Source(
                    "product",
                    users=("omar", "lin") if member and self.user_granted else ("omar",),
                    bots=("other", "assistant") if bot and self.bot_granted else ("other",),
                    enabled=self.source_enabled,
                )
            },
        )


EVERYTHING = Facts(*[True] * len(fields(Facts)))


async def settle(database: ClonedDatabase, companies: dict[str, Facts], team: str = "product") -> None:
    """Pushes each company's facts and makes a scope of every kind, Lin's and others'."""
    await state_facts(
        database.dsn("authority_writer"), *(facts.company(name) for name, facts in companies.items())
    )
    connection = await asyncpg.connect(database.admin_dsn)
    try:
        await connection.execute(
            "insert into openbot.scopes (company_id, user_id, kind, team_id, source_id)"
            " select company_id, user_id, kind, team_id, source_id from unnest($1::text[]) as company_id,"
            " (values ('lin', 'general', null, null), ('lin', 'team_source', $2, 'weekly'),"
            "  ('omar', 'general', null, null), ('omar', 'team_source', $2, 'weekly'))"
            " as made (user_id, kind, team_id, source_id)",
            list(companies),
            team,
        )
    finally:
        await connection.close()


async def usable(
    database: ClonedDatabase, companies: dict[str, Facts], bot: str = "assistant"
) -> dict[str, set[tuple[str, str, str]]]:
    """(company, user, kind) of the scopes that Lin and the bot may use, for each company."""
    connection = await asyncpg.connect(database.dsn("memory_api"))
    found = {}
    try:
        for name, facts in companies.items():
            async with connection.transaction():
                await connection.execute(
                    "select set_config('openbot.company', $1, true), set_config('openbot.user', 'lin', true)",
                    name,
                )
                rows = await connection.fetch(
                    "select company_id, user_id, kind from openbot.scopes where scope_id in"
                    " (select openbot.usable_scopes($1, $2::text[]))",
                    bot,
                    ["weekly", "other"] if facts.session_for_source else ["other"],
                )
                found[name] = {(row["company_id"], row["user_id"], row["kind"]) for row in rows}
    finally:
        await connection.close()
    return found


async def test_every_combination_of_facts_gives_what_the_rules_say(database: ClonedDatabase) -> None:
    combinations = itertools.product((True, False), repeat=len(fields(Facts)))
    companies = {f"company-{number}": Facts(*values) for number, values in enumerate(combinations)}
    expected = {
        name: {
            (name, "lin", kind)
            for kind, holds in (("general", facts.general()), ("team_source", facts.source()))
            if holds
        }
        for name, facts in companies.items()
    }
    await settle(database, companies)
    found = await usable(database, companies)
    wrong = [
        (companies[name], expected[name], found[name]) for name in companies if found[name] != expected[name]
    ]
    assert wrong == []
    assert await usable(database, {"company-0": EVERYTHING}, bot="stranger") == {"company-0": set()}


async def test_a_source_that_moved_to_another_team_takes_no_memories_along(database: ClonedDatabase) -> None:
    companies = {"acme": EVERYTHING}
    await settle(database, companies, team="former")
    assert await usable(database, companies) == {"acme": {("acme", "lin", "general")}}


async def test_the_writer_of_one_company_cannot_touch_another(database: ClonedDatabase) -> None:
    await state_facts(database.dsn("authority_writer"), Company("globex", members=("lin",), bots={}))
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
