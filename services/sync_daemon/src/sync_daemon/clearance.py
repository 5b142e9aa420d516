"""Clearance: asking every place that can hold a copy, and keeping the answers (DESIGN §10, I8).

A probe that cannot be carried out leaves the domain unproven: silence is never evidence.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import structlog
from hindsight_index import HindsightError, HindsightIndex, HindsightUnavailable
from tenant_db import DatabaseError

from sync_daemon.index_probe import Answer, IndexProbe
from sync_daemon.stopping import unless_stopped
from sync_daemon.store.forgets import DueForget, Finding, ForgetStore, UnprovenItem

_log = structlog.get_logger()

#: ``none``: the operator declares that nobody takes backups of either database. ``registered``:
#: every backup is in ``openbot.backups``. ``undeclared``: unknown, so nothing is ever cleared.
BackupPolicy = Literal["none", "registered", "undeclared"]

_ITEMS_AT_ONCE = 100


class Clearance:
    """Probes due forgets one after the other, until told to stop."""

    def __init__(
        self, store: ForgetStore, index: HindsightIndex, *, backups: BackupPolicy, poll_s: float
    ) -> None:
        self._store = store
        self._index = index
        self._backups: BackupPolicy = backups
        self._poll_s = poll_s

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``, which cuts a round off: it only reads, and writes its findings in one go."""
        while not stop.is_set():
            if await unless_stopped(self._probe_safely(), stop):
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._poll_s)

    async def _probe_safely(self) -> bool:
        try:
            return await self.probe_once()
        except DatabaseError as error:
            _log.warning("authority failed", error=type(error).__name__, sqlstate=error.sqlstate)
        except Exception as error:  # noqa: BLE001 - the next forget is not to blame; this one stays unproven
            _log.error("unexpected error", exc_info=error)
        return False

    async def probe_once(self) -> bool:
        """Probes one due forget, page by page, and records what was found. False if none was due."""
        forget = await self._store.take_due(self._poll_s)
        if forget is None:
            return False
        reasons: set[str] = set()
        after: UUID | None = None
        more = True
        while more:
            items = await self._store.unproven_items(forget, after=after, limit=_ITEMS_AT_ONCE)
            # Of its own for each page, for it must not be older than what the page says of its items.
            probe = IndexProbe(self._index)
            findings = [finding for item in items for finding in await self._probe(forget, item, probe)]
            cleared = await self._store.record(forget, findings)
            reasons |= {finding.reason for finding in findings if finding.reason}
            more = len(items) == _ITEMS_AT_ONCE and not probe.silent
            after = items[-1].memory_id if items else None
        _log.info("forget probed", forget_id=str(forget.forget_id), cleared=cleared, unproven=sorted(reasons))
        return True

    async def _probe(self, forget: DueForget, item: UnprovenItem, probe: IndexProbe) -> Sequence[Finding]:
        if item.unproven == {"backups"}:
            waiting = await self._backup(forget, item)
            if waiting.reason:
                return [waiting]
        # What was proven earlier is asked again in every round that may complete the evidence.
        findings = [
            Finding(
                item.memory_id,
                "authority_active",
                None if item.erased else "ROW_NOT_ERASED",
                {"erased": item.erased},
            )
        ]
        for domain in ("index_active", "index_operations"):
            answer = await _ask(item, domain, probe)
            findings.append(Finding(item.memory_id, domain, answer.reason, answer.observed))
        # Backups are asked last: one taken while a copy was still there must count.
        if all(finding.reason is None for finding in findings):
            findings.append(await self._backup(forget, item))
        return findings

    async def _backup(self, forget: DueForget, item: UnprovenItem) -> Finding:
        if self._backups == "undeclared":
            return Finding(item.memory_id, "backups", "BACKUPS_UNDECLARED")
        count = await self._store.unpurged_backups(forget, item)
        reason = "BACKUPS_NOT_PURGED" if count else None
        observed = {"unpurged": count, "declared_none": self._backups == "none"}
        return Finding(item.memory_id, "backups", reason, observed)


async def _ask(item: UnprovenItem, domain: str, probe: IndexProbe) -> Answer:
    if item.queued or item.index_state != "deleted":
        return Answer("DELETION_PENDING", {})
    if not item.bank_touched:
        return Answer(None, {"bank_touched": False})
    if probe.silent:
        return Answer("PROBE_FAILED", {})
    try:
        if domain == "index_active":
            return await probe.active(item.bank_id, str(item.memory_id))
        return await probe.operations(item.bank_id)
    except HindsightError as error:
        # Asking a silent index about a hundred more would take a hundred timeouts.
        probe.silent = isinstance(error, HindsightUnavailable)
        return Answer("PROBE_FAILED", {})
