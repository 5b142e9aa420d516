"""Draining the outbox: lease a row, converge its memory, settle the lease."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta

import structlog
from tenant_db import DatabaseError, TenantDatabase

from sync_daemon.converge import Converger
from sync_daemon.outcomes import Deleted, Indexed, Outcome, Permanent, Transient
from sync_daemon.store import outbox, records
from sync_daemon.store.outbox import Held, Lease, OutboxStore
from sync_daemon.wakeup import Wakeup

_log = structlog.get_logger()

_BACKOFF_BASE_S = 0.5
_BACKOFF_CAP_S = 300.0


class Drain:
    """Works on ``workers`` memories at a time, until told to stop."""

    def __init__(
        self,
        database: TenantDatabase,
        store: OutboxStore,
        converger: Converger,
        wakeup: Wakeup,
        *,
        workers: int,
        lease_s: float,
        write_margin_s: float,
        poll_s: float,
    ) -> None:
        self._database = database
        self._store = store
        self._converger = converger
        self._wakeup = wakeup
        self._workers = workers
        self._lease_s = lease_s
        self._write_margin_s = write_margin_s
        self._poll_s = poll_s

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``; what is leased then is finished first."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work(stop))

    async def _work(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                if not await self.work_once():
                    due_s = await self._store.seconds_until_due()
                    wait_s = self._poll_s if due_s is None else min(max(due_s, 0.05), self._poll_s)
                    await self._wakeup.wait(wait_s, stop)
            except DatabaseError as error:
                _log.warning("authority failed", error=type(error).__name__, sqlstate=error.sqlstate)
                await self._wakeup.wait(random.uniform(0.5, 2.0), stop)  # noqa: S311 - jitter

    async def work_once(self) -> bool:
        """Leases and settles one row. False if nothing was due.

        Raises ``DatabaseError``; the lease then runs out and the row is rescued.
        """
        # Before the lease begins, by this machine's clock: never later than the lease itself.
        writes_until = datetime.now(UTC) + timedelta(seconds=self._lease_s - self._write_margin_s)
        lease = await self._store.lease(self._lease_s)
        if lease is None:
            return False
        outcome = await self._converger.converge(lease, writes_until)
        held = await self._settle(lease, outcome)
        _log.info(
            "converged" if isinstance(outcome, Indexed | Deleted) else "not converged",
            memory_id=str(lease.memory_id),
            outcome=type(outcome).__name__.lower(),
            reason=getattr(outcome, "reason", None),
            attempts=lease.attempts,
            lease=held.name.lower(),
        )
        return True

    async def _settle(self, lease: Lease, outcome: Outcome) -> Held:
        async with self._database.of(lease.company, lease.user) as connection:
            held = await outbox.lock_held(connection, lease)
            if held is Held.LOST:
                await outbox.enqueue_again(connection, lease)
                return held
            if held is Held.CHANGED:
                await outbox.make_ready(connection, lease)
                return held
            match outcome:
                case Indexed(version):
                    await records.mark_indexed(connection, lease.memory_id, version)
                    await outbox.remove(connection, lease)
                case Deleted():
                    await records.mark_deleted(connection, lease.memory_id)
                    await outbox.remove(connection, lease)
                case Transient(reason, not_before_s):
                    await outbox.make_retry(
                        connection, lease, reason, backoff_s(lease.attempts, not_before_s)
                    )
                case Permanent(reason):
                    await records.mark_failed(connection, lease.memory_id, reason)
                    await outbox.make_dead(connection, lease, reason)
            return held


def backoff_s(attempts: int, not_before_s: float) -> float:
    """Exponential with full jitter, at most 300 s, at least what the index asked for (in seconds)."""
    ceiling = min(_BACKOFF_CAP_S, _BACKOFF_BASE_S * 2 ** min(attempts, 20))
    return max(not_before_s, random.uniform(0, ceiling))  # noqa: S311 - jitter
