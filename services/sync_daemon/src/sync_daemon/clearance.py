"""Clearance: asking every place that can hold a copy, and keeping the answers (DESIGN §10, I8).

A probe that cannot be carried out leaves the domain unproven: silence is never evidence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Literal

import structlog
from hindsight_index import HindsightError, HindsightIndex
from tenant_db import DatabaseError

from sync_daemon.store.forgets import DueForget, Finding, ForgetStore, UnprovenItem

_log = structlog.get_logger()

#: ``none``: the operator declares that nobody takes backups of either database. ``registered``:
#: every backup is in ``openbot.backups``. ``undeclared``: unknown, so nothing is ever cleared.
BackupPolicy = Literal["none", "registered", "undeclared"]

_ITEMS_AT_ONCE = 100
_RUNNING = frozenset({"pending", "processing", "claimed", "running", "retrying"})

# Task payloads of these operations hold identifiers only (shown by the contract tests).
_CONTENT_FREE_OPERATIONS = frozenset({"graph_maintenance", "vector_index_maintenance"})
_IDENTIFIER_KEYS = frozenset({"type", "bank_id", "operation_id"})


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
        """Until ``stop``."""
        while not stop.is_set():
            try:
                worked = await self.probe_once()
            except DatabaseError as error:
                _log.warning("authority failed", error=type(error).__name__, sqlstate=error.sqlstate)
                worked = False
            if not worked:
                try:
                    await asyncio.wait_for(stop.wait(), self._poll_s)
                except TimeoutError:
                    continue

    async def probe_once(self) -> bool:
        """Probes one due forget and records what was found. False if none was due."""
        forget = await self._store.take_due(self._poll_s)
        if forget is None:
            return False
        items = await self._store.unproven_items(forget, limit=_ITEMS_AT_ONCE)
        findings: list[Finding] = []
        for item in items:
            findings += await self._probe(forget, item)
        cleared = await self._store.record(forget, findings)
        _log.info(
            "forget probed",
            forget_id=str(forget.forget_id),
            cleared=cleared,
            unproven=sorted({finding.reason for finding in findings if finding.reason}),
        )
        return True

    async def _probe(self, forget: DueForget, item: UnprovenItem) -> Iterable[Finding]:
        findings = [
            self._authority(item),
            await self._guarded(item, "index_active"),
            await self._guarded(item, "index_operations"),
        ]
        # Backups are asked last: one taken while a copy was still there must count.
        if all(finding.reason is None for finding in findings if finding.domain in item.unproven):
            findings.append(await self._backup(forget, item))
        return [finding for finding in findings if finding.domain in item.unproven]

    def _authority(self, item: UnprovenItem) -> Finding:
        reason = None if item.erased else "ROW_NOT_ERASED"
        return Finding(item.memory_id, "authority_active", reason, {"erased": item.erased})

    async def _guarded(
        self, item: UnprovenItem, domain: Literal["index_active", "index_operations"]
    ) -> Finding:
        if domain not in item.unproven:
            return Finding(item.memory_id, domain, None)
        if item.queued or item.index_state != "deleted":
            return Finding(item.memory_id, domain, "DELETION_PENDING")
        if not item.bank_touched:
            return Finding(item.memory_id, domain, None, {"bank_touched": False})
        try:
            if not await self._index.bank_exists(item.bank_id):
                # An index that lost the bank, or is another one, proves nothing about the first.
                return Finding(item.memory_id, domain, "BANK_MISSING", {"bank_exists": False})
            if domain == "index_active":
                return await self._index_active(item)
            return await self._index_operations(item)
        except HindsightError:
            return Finding(item.memory_id, domain, "PROBE_FAILED")

    async def _index_active(self, item: UnprovenItem) -> Finding:
        document = await self._index.document(item.bank_id, str(item.memory_id))
        units = await self._index.count_units(item.bank_id, str(item.memory_id))
        reason = "DOCUMENT_PRESENT" if document is not None else "UNITS_PRESENT" if units else None
        observed = {"bank_exists": True, "document_present": document is not None, "units": units}
        return Finding(item.memory_id, "index_active", reason, observed)

    async def _index_operations(self, item: UnprovenItem) -> Finding:
        operations = await self._index.operations(item.bank_id)
        running = sum(operation.status in _RUNNING for operation in operations)
        holding = 0
        for operation in operations:
            if operation.type not in _CONTENT_FREE_OPERATIONS:
                keys = await self._index.operation_payload_keys(item.bank_id, operation.id)
                holding += keys is not None and not keys <= _IDENTIFIER_KEYS
        reason = "OPERATION_RUNNING" if running else "OPERATION_PAYLOAD_RETAINED" if holding else None
        observed = {"operations": len(operations), "running": running, "holding_payload": holding}
        return Finding(item.memory_id, "index_operations", reason, observed)

    async def _backup(self, forget: DueForget, item: UnprovenItem) -> Finding:
        if self._backups == "undeclared":
            return Finding(item.memory_id, "backups", "BACKUPS_UNDECLARED")
        count = await self._store.unpurged_backups(forget, item.recorded_at)
        reason = "BACKUPS_NOT_PURGED" if count else None
        observed = {"unpurged": count, "declared_none": self._backups == "none"}
        return Finding(item.memory_id, "backups", reason, observed)
