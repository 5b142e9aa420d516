"""Authority facts for development: what OpenBot's control plane would push.

Written under the role ``authority_writer``, one company a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import asyncpg


@dataclass(frozen=True, slots=True)
class Source:
    """A team's source and who is granted it."""

    team: str
    users: Collection[str] = ()
    bots: Collection[str] = ()
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Company:
    """One company's facts. ``bots`` maps a bot to whether it may see general preferences; ``teams``
    maps a team to its members."""

    company: str
    members: Collection[str]
    bots: Mapping[str, bool]
    teams: Mapping[str, Collection[str]] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)


async def seed_authority(dsn: str, *companies: Company) -> None:
    """Replaces the facts of each company. ``dsn`` logs in as a member of ``authority_writer``."""
    connection = await asyncpg.connect(dsn)
    try:
        for each in companies:
            async with connection.transaction():
                await connection.execute("select set_config('openbot.company', $1, true)", each.company)
                await _replace(connection, each)
    finally:
        await connection.close()


async def _replace(connection: asyncpg.Connection, facts: Company) -> None:
    company = facts.company
    await connection.execute("delete from openbot.companies where company_id = $1", company)
    await connection.execute("insert into openbot.companies values ($1)", company)
    rows: dict[str, list[tuple[object, ...]]] = {
        "company_members (company_id, user_id)": [(company, user) for user in facts.members],
        "bots (company_id, bot_id, general_preferences)": [
            (company, bot, general) for bot, general in facts.bots.items()
        ],
        "teams (company_id, team_id)": [(company, team) for team in facts.teams],
        "team_members (company_id, team_id, user_id)": [
            (company, team, user) for team, users in facts.teams.items() for user in users
        ],
        "sources (company_id, source_id, team_id, enabled)": [
            (company, source, held.team, held.enabled) for source, held in facts.sources.items()
        ],
        "source_user_grants (company_id, source_id, user_id)": [
            (company, source, user) for source, held in facts.sources.items() for user in held.users
        ],
        "source_bot_grants (company_id, source_id, bot_id)": [
            (company, source, bot) for source, held in facts.sources.items() for bot in held.bots
        ],
    }
    for table, values in rows.items():
        if values:
            places = ", ".join(f"${number}" for number in range(1, len(values[0]) + 1))
            await connection.executemany(f"insert into openbot.{table} values ({places})", values)  # noqa: S608
