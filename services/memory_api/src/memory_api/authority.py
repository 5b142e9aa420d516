"""The facts of one company as the control plane states them: plain records, and how two states differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from types import MappingProxyType


class FactKind(Enum):
    """Kinds of facts, each after those it refers to. Named as the statements of the store are."""

    MEMBER = "member"
    TEAM = "team"
    TEAM_MEMBER = "team_member"
    BOT = "bot"
    BOT_TEAM = "bot_team"
    SOURCE = "source"
    SOURCE_USER_GRANT = "source_user_grant"
    SOURCE_BOT_GRANT = "source_bot_grant"


Key = tuple[str, ...]
Value = tuple[str | bool, ...]
Facts = Mapping[FactKind, Mapping[Key, Value]]
"""Kind to key to value. Keys: (user), (team), (team, user), (bot), (bot, team), (source), (source, user),
(source, bot). Values: a bot's (general_preferences), a source's (team, kind, enabled), and () otherwise."""
Keys = Mapping[FactKind, frozenset[Key]]

NO_FACTS: Facts = MappingProxyType({kind: MappingProxyType({}) for kind in FactKind})
NO_KEYS: Keys = MappingProxyType({kind: frozenset[Key]() for kind in FactKind})


@dataclass(frozen=True, slots=True)
class Changes:
    """Facts that are so from now on, and keys of facts that no longer are; no key is in both."""

    upserts: Facts
    removals: Keys


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes that start from ``base_revision``. A removal wins over what hangs on it."""

    base_revision: int
    changes: Changes

    def digest(self) -> bytes:
        """Equal for equal changes, in whatever order they were listed."""
        return _digest("batch", self.changes.upserts, self.changes.removals)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every fact of the company."""

    facts: Facts
    revoke_missing_sources: bool = False

    def digest(self) -> bytes:
        """Equal for equal facts, in whatever order they were listed."""
        return _digest("snapshot", self.facts, NO_KEYS)


@dataclass(frozen=True, slots=True)
class Feed:
    """How far a company's facts have come. Revision 0: they were never written."""

    revision: int = 0
    digest: bytes = b""
    applied_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """How many facts were added or changed, removed (without those that went with another), and how many
    sources were revoked (with those that went with their team)."""

    upserted: int = 0
    removed: int = 0
    revoked_sources: int = 0


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a batch or snapshot. ``counts`` None: it came late or again, and was not looked at."""

    feed: Feed
    counts: Counts | None


def is_complete(facts: Facts) -> bool:
    """Whether every member, team, bot and source that a fact names is among ``facts``."""
    references = {
        FactKind.TEAM_MEMBER: (FactKind.TEAM, FactKind.MEMBER),
        FactKind.BOT_TEAM: (FactKind.BOT, FactKind.TEAM),
        FactKind.SOURCE_USER_GRANT: (FactKind.SOURCE, FactKind.MEMBER),
        FactKind.SOURCE_BOT_GRANT: (FactKind.SOURCE, FactKind.BOT),
    }
    return all(
        (name,) in facts[named]
        for kind, kinds in references.items()
        for key in facts[kind]
        for name, named in zip(key, kinds, strict=True)
    ) and all((value[0],) in facts[FactKind.TEAM] for value in facts[FactKind.SOURCE].values())


def difference(current: Facts, wanted: Facts) -> Changes:
    """What turns ``current`` into ``wanted``."""
    return Changes(
        upserts={
            kind: {
                key: value
                for key, value in wanted[kind].items()
                if key not in current[kind] or current[kind][key] != value
            }
            for kind in FactKind
        },
        removals={kind: frozenset(current[kind].keys() - wanted[kind].keys()) for kind in FactKind},
    )


def _digest(what: str, facts: Facts, keys: Keys) -> bytes:
    canonical = [
        what,
        [[kind.value, sorted(facts[kind].items()), sorted(keys[kind])] for kind in FactKind],
    ]
    return hashlib.sha256(json.dumps(canonical, separators=(",", ":")).encode()).digest()
