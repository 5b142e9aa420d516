"""Forgets that wait for evidence, and the evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from uuid import UUID

from tenant_db import TenantDatabase, collect, load_statements

_SQL = load_statements(Path(__file__).with_name("forgets.sql"))
_PROBER = f"sync_daemon/{version('openbot-sync-daemon')}"
_LONGEST_PAUSE_S = 3600.0


@dataclass(frozen=True, slots=True)
class DueForget:
    """A forget to be probed."""

    forget_id: UUID
    company: str
    user: str


@dataclass(frozen=True, slots=True)
class UnprovenItem:
    """One forgotten memory with the domains that are not proven yet."""

    memory_id: UUID
    erased: bool
    recorded_at: datetime
    bank_id: str
    bank_touched: bool
    index_state: str
    queued: bool
    unproven: frozenset[str]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a domain answered about one memory. ``reason`` None means: proven gone. ``observed`` holds
    counts and flags only (I13)."""

    memory_id: UUID
    domain: str
    reason: str | None
    observed: Mapping[str, int | bool] = field(default_factory=dict)


class ForgetStore:
    """Forgets of all tenants; items and evidence one tenant at a time."""

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def take_due(self, pause_s: float) -> DueForget | None:
        """One forget whose probes are due, put off for everyone by a tenth of its age, at least by
        ``pause_s`` seconds and at most by an hour."""
        async with self._database.crossing_tenants() as connection:
            row = await _SQL.take_due(connection, pause_s=pause_s, longest_pause_s=_LONGEST_PAUSE_S)
        if row is None:
            return None
        return DueForget(row["forget_id"], row["company_id"], row["user_id"])

    async def unproven_items(
        self, forget: DueForget, *, after: UUID | None, limit: int
    ) -> Sequence[UnprovenItem]:
        """At most ``limit`` of its memories that lack evidence or wait for another deletion, by id, from
        the first one ``after`` on."""
        async with self._database.of(forget.company, forget.user) as connection:
            rows = await collect(
                _SQL.unproven_items(connection, forget_id=forget.forget_id, after=after, row_limit=limit)
            )
        return [
            UnprovenItem(
                memory_id=row["memory_id"],
                erased=row["erased"],
                recorded_at=row["recorded_at"],
                bank_id=row["bank_id"],
                bank_touched=row["bank_touched"],
                index_state=row["index_state"],
                queued=row["queued"],
                unproven=frozenset(row["unproven"]),
            )
            for row in rows
        ]

    async def unpurged_backups(self, forget: DueForget, item: UnprovenItem) -> int:
        """How many registered backups could hold the memory: made while it, or a copy, was still there."""
        async with self._database.of(forget.company, forget.user) as connection:
            count: int = await _SQL.unpurged_backups(
                connection, forget_id=forget.forget_id, memory_id=item.memory_id, since=item.recorded_at
            )
            return count

    async def record(self, forget: DueForget, findings: Sequence[Finding]) -> bool:
        """Appends the findings as evidence and clears the forget if that completes it. True if cleared."""
        async with self._database.of(forget.company, forget.user) as connection:
            for finding in findings:
                await _SQL.add_evidence(
                    connection,
                    company=forget.company,
                    person=forget.user,
                    forget_id=forget.forget_id,
                    memory_id=finding.memory_id,
                    domain=finding.domain,
                    cleared=finding.reason is None,
                    reason=finding.reason,
                    observed=json.dumps(dict(finding.observed)),
                    prober=_PROBER,
                )
            return bool(await _SQL.clear_if_proven(connection, forget_id=forget.forget_id))
