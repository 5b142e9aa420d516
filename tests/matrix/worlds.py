"""Two companies in which the same names mean different things, in several states one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from devstack.control_plane import Company, Source

from tests.matrix.rules import World

USERS = ("lin", "omar", "mina")
BOTS = ("assistant", "helper", "quiet")
SOURCES = ("weekly", "crm", "forum")
TEAM_OF = {"weekly": "product", "crm": "sales", "forum": "product"}
TEAMS = ("product", "sales")

#: Lin is in both companies.
MEMBERS = {"acme": ("lin", "omar"), "globex": ("lin", "mina")}


def _pairs(*pairs: str) -> frozenset[tuple[str, str]]:
    return frozenset((left, right) for left, _, right in (pair.partition("/") for pair in pairs))


def _everything(company: str) -> World:
    members = MEMBERS[company]
    return World(
        members=frozenset(members),
        team_members=frozenset((team, user) for team in TEAMS for user in members),
        bots_with_general=dict.fromkeys(BOTS, True),
        bot_teams=frozenset((bot, team) for bot in BOTS for team in TEAMS),
        sources={source: (TEAM_OF[source], True) for source in SOURCES},
        user_grants=frozenset((source, user) for source in SOURCES for user in members),
        bot_grants=frozenset((source, bot) for source in SOURCES for bot in BOTS),
    )


#: Everything is allowed: in this state the memories are made.
OPEN: Mapping[str, World] = {company: _everything(company) for company in MEMBERS}

#: Each lacks something else, and what is allowed in one company is not in the other.
SPARSE: Mapping[str, World] = {
    "acme": replace(
        OPEN["acme"],
        team_members=_pairs("product/lin", "sales/lin", "sales/omar"),
        bots_with_general={"assistant": True, "helper": True, "quiet": False},
        bot_teams=_pairs("assistant/product", "assistant/sales", "helper/product", "quiet/sales"),
        sources={"weekly": ("product", True), "crm": ("sales", True), "forum": ("product", False)},
        user_grants=_pairs("weekly/lin", "weekly/omar", "crm/lin", "crm/omar", "forum/lin"),
        bot_grants=_pairs(
            "weekly/assistant", "weekly/quiet", "crm/assistant", "crm/helper", "forum/assistant"
        ),
    ),
    "globex": replace(
        OPEN["globex"],
        team_members=_pairs("product/mina", "sales/lin"),
        bots_with_general={"assistant": False, "helper": True, "quiet": True},
        bot_teams=_pairs("helper/product", "helper/sales", "quiet/product"),
        sources={"weekly": ("product", True), "crm": ("sales", True), "forum": ("product", True)},
        user_grants=_pairs("weekly/mina", "crm/mina", "crm/lin", "forum/mina"),
        bot_grants=_pairs("weekly/helper", "weekly/assistant", "crm/helper", "forum/quiet", "forum/helper"),
    ),
}

#: People and a bot left, a source moved to the other team, another was taken away.
LEFT: Mapping[str, World] = {
    "acme": replace(
        OPEN["acme"],
        members=frozenset({"omar"}),
        team_members=_pairs("product/omar", "sales/omar"),
        bots_with_general={"assistant": True, "quiet": True},
        bot_teams=_pairs("assistant/product", "assistant/sales", "quiet/product", "quiet/sales"),
        sources={"weekly": ("sales", True), "forum": ("product", True)},
        user_grants=_pairs("weekly/omar", "forum/omar"),
        bot_grants=_pairs("weekly/assistant", "forum/assistant", "forum/quiet"),
    ),
    "globex": replace(OPEN["globex"], bots_with_general={"assistant": True, "helper": False, "quiet": True}),
}
TAKEN_AWAY = {("acme", "crm")}

#: All is given back. What came from the source that was taken away stays away.
BACK = OPEN


def company_of(company: str, name: str, world: World) -> Company:
    """The same facts as the control plane states them for the company called ``name``."""
    members = sorted(world.members)
    return Company(
        name,
        members=members,
        bots=world.bots_with_general,
        teams={team: [user for user in members if (team, user) in world.team_members] for team in TEAMS},
        sources={
            source: Source(
                team,
                users=[user for user in members if (source, user) in world.user_grants],
                bots=[bot for bot in world.bots_with_general if (source, bot) in world.bot_grants],
                enabled=enabled,
                conversation=source == "forum",
            )
            for source, (team, enabled) in world.sources.items()
        },
        bot_teams={
            bot: [team for team in TEAMS if (bot, team) in world.bot_teams] for bot in world.bots_with_general
        },
    )
