"""The facts of one company at a time, written under the role ``authority_writer``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tenant_db import Connection, TenantDatabase, collect, load_statements

from memory_api.authority import Changes, Counts, FactKind, Facts, Feed

__all__ = ["AuthorityStore", "Connection"]

_SQL = load_statements(Path(__file__).with_name("authority.sql"))

#: Parameters of each kind's statements: those that make the key, and those that follow from it.
_COLUMNS: dict[FactKind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    FactKind.MEMBER: (("users",), ()),
    FactKind.TEAM: (("teams",), ()),
    FactKind.TEAM_MEMBER: (("teams", "users"), ()),
    FactKind.BOT: (("bots",), ("general",)),
    FactKind.BOT_TEAM: (("bots", "teams"), ()),
    FactKind.SOURCE: (("sources",), ("teams", "kinds", "enabled")),
    FactKind.SOURCE_USER_GRANT: (("sources", "users"), ()),
    FactKind.SOURCE_BOT_GRANT: (("sources", "bots"), ()),
}


class AuthorityStore:
    """Facts and feeds. Every statement is bound to one company."""

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def feed(self, company: str) -> Feed:
        """How far the facts have come."""
        async with self._database.of_company(company) as connection:
            return _feed(await _SQL.read_feed(connection))

    async def lock_feed(self, connection: Connection) -> Feed:
        """The same, with every writer of the company's facts or records waited for and kept out."""
        await _SQL.change_authority(connection)
        return _feed(await _SQL.read_feed(connection))

    async def facts(self, connection: Connection) -> Facts:
        """Every fact of the company."""
        return {kind: await _facts_of(connection, kind) for kind in FactKind}

    async def apply(self, connection: Connection, company: str, changes: Changes) -> Counts:
        """Adds and changes, then removes: a source that moves out of a team that goes is not lost. Sources
        that go, go with what came from them (I6)."""
        await _SQL.create_company(connection, company=company)
        upserted = removed = 0
        for kind in FactKind:
            if facts := changes.upserts[kind]:
                names, values = _COLUMNS[kind]
                rows = ((*key, *value) for key, value in facts.items())
                arrays = _arrays((*names, *values), rows)
                upserted += await _call("upsert", kind, connection, company=company, **arrays)
        before = await _SQL.count_sources(connection)
        for kind in reversed(FactKind):
            if keys := changes.removals[kind]:
                names, _ = _COLUMNS[kind]
                removed += await _call("remove", kind, connection, **_arrays(names, keys))
        revoked = before - await _SQL.count_sources(connection)
        return Counts(upserted=upserted, removed=removed, revoked_sources=revoked)

    async def advance(self, connection: Connection, company: str, *, revision: int, digest: bytes) -> Feed:
        """Notes what was applied last."""
        return _feed(await _SQL.advance_feed(connection, company=company, revision=revision, digest=digest))


async def _facts_of(connection: Connection, kind: FactKind) -> dict[tuple[str, ...], tuple[Any, ...]]:
    names, _ = _COLUMNS[kind]
    rows = await collect(getattr(_SQL, f"read_{kind.value}s")(connection))
    return {tuple(row[: len(names)]): tuple(row[len(names) :]) for row in rows}


async def _call(verb: str, kind: FactKind, connection: Connection, **parameters: Any) -> int:
    count: int = await getattr(_SQL, f"{verb}_{kind.value}s")(connection, **parameters)
    return count


def _arrays(names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> dict[str, list[Any]]:
    # In key order, so that two writers never lock the same rows in two orders.
    columns = list(zip(*sorted(rows), strict=True))
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def _feed(row: Any) -> Feed:
    return Feed() if row is None else Feed(row["revision"], row["digest"], row["applied_at"])
