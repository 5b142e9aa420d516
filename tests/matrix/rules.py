"""Who may see what, in plain Python, from the words of the design (§2, §5), not from the code.

A person is who they are in one company. A memory is usable by a bot for that person if the person is a
member of the company now, the bot is one of the company's now, and

* a general preference: the bot may see general preferences;
* one for a single bot: it is that bot;
* one of a team's source: the session was opened for the source, the source is there (and was never taken away
  since), still belongs to the same team and is enabled, the person is in the team, the bot is allowed in the
  team, and both are granted the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class World:
    """The facts of one company."""

    members: frozenset[str]
    team_members: frozenset[tuple[str, str]]
    bots_with_general: Mapping[str, bool]
    bot_teams: frozenset[tuple[str, str]]
    sources: Mapping[str, tuple[str, bool]]
    user_grants: frozenset[tuple[str, str]]
    bot_grants: frozenset[tuple[str, str]]


class Kind(Enum):
    """What a memory is bound to."""

    GENERAL = "general"
    BOT = "bot"
    SOURCE = "source"


@dataclass(frozen=True)
class Place:
    """Where a memory is kept: the bot or source is named, and the team that the source belonged to."""

    kind: Kind
    name: str = ""
    team: str = ""


@dataclass(frozen=True)
class Caller:
    """What a session token says."""

    company: str
    user: str
    bot: str
    sources: frozenset[str]


@dataclass(frozen=True)
class Planted:
    """A memory that exists. ``revoked``: its source was taken away at some time."""

    company: str
    user: str
    place: Place
    revoked: bool = False


def may_keep(world: World, caller: Caller, place: Place) -> bool:
    """Whether words of the caller's person may be kept, or used, at a place of theirs."""
    if caller.user not in world.members or caller.bot not in world.bots_with_general:
        return False
    if place.kind is Kind.GENERAL:
        return world.bots_with_general[caller.bot]
    if place.kind is Kind.BOT:
        return place.name == caller.bot
    if place.name not in caller.sources or place.name not in world.sources:
        return False
    team, enabled = world.sources[place.name]
    return (
        enabled
        and (team, caller.user) in world.team_members
        and (caller.bot, team) in world.bot_teams
        and (place.name, caller.user) in world.user_grants
        and (place.name, caller.bot) in world.bot_grants
    )


def may_see(world: World, caller: Caller, memory: Planted) -> bool:
    """Whether the caller may know of the memory at all."""
    if (memory.company, memory.user) != (caller.company, caller.user) or memory.revoked:
        return False
    if memory.place.kind is Kind.SOURCE:
        team, _ = world.sources.get(memory.place.name, ("", False))
        if team != memory.place.team:
            return False
    return may_keep(world, caller, memory.place)


def may_watch_forgets(world: World, caller: Caller, company: str, user: str) -> bool:
    """Whether the caller may follow what that person forgot in that company."""
    own = (company, user) == (caller.company, caller.user)
    return own and caller.user in world.members and caller.bot in world.bots_with_general


class Role(Enum):
    """What kind of workload calls."""

    BOT_RUNTIME = "bot-runtime"
    CHANNEL_GATEWAY = "channel-gateway"
    CONTROL_PLANE = "control-plane"
    OPERATOR = "operator"


READING = frozenset({"Recall", "GetMemory"})
DECIDING = frozenset({"Remember"})
TAKING_BACK = frozenset({"ListMemories", "ForgetMemories", "GetForget"})
STATING = frozenset({"ApplyAuthority", "GetAuthority"})


def refusal(rpc: str, role: Role, entry: str, *, present: bool, admin: bool) -> str | None:
    """The reason why nobody like this may call the RPC, None if they may knock."""
    if rpc in STATING:
        return None if role is Role.CONTROL_PLANE else "ROLE_NOT_ALLOWED"
    allowed = {Role.CHANNEL_GATEWAY} if rpc in TAKING_BACK else {Role.CHANNEL_GATEWAY, Role.BOT_RUNTIME}
    if role not in allowed:
        return "ROLE_NOT_ALLOWED"
    if admin:
        return "COMPANY_ADMIN_SEES_NO_MEMORY"
    if rpc in READING:
        return None
    if entry == "schedule":
        return "ENTRY_NOT_ALLOWED"
    return None if present else "PRESENCE_REQUIRED"
