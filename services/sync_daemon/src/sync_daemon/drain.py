"""Draining the outbox: lease a row, converge its memory, settle the lease."""

from __future__ import annotations

import asyncio
import logging
import random
from datetime import UTC, datetime, timedelta

import structlog
from tenant_db import DatabaseError, TenantDatabase

from sync_daemon.converge import Converger
from sync_daemon.outcomes import Deleted, Indexed, InDoubt, Outcome, Permanent, Transient
from sync_daemon.store import outbox, records
from sync_daemon.store.outbox import Held, Lease, OutboxStore
from sync_daemon.wakeup import Wakeup

_log = structlog.get_logger()

_BACKOFF_BASE_S = 0.5
_BACKOFF_CAP_S = 300.0
_MAX_UNEXPECTED = 8
_EVENTS: dict[type[Outcome], str] = {Indexed: "converged", Deleted: "converged", Permanent: "given up"}


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
        doubt_s: float,
        poll_s: float,
    ) -> None:
        self._database = database
        self._store = store
        self._converger = converger
        self._wakeup = wakeup
        self._workers = workers
        self._lease_s = lease_s
        self._write_margin_s = write_margin_s
        self._doubt_s = doubt_s
        self._poll_s = poll_s

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``; what is leased then is finished first."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work(stop))

    async def _work(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            ticket = self._wakeup.ticket()
            try:
                if await self.work_once():
                    continue
                due_s = await self._store.seconds_until_due()
                wait_s = self._poll_s if due_s is None else min(max(due_s, 0.05), self._poll_s)
            except DatabaseError as error:
                _log.warning("authority failed", error=type(error).__name__, sqlstate=error.sqlstate)
                wait_s = random.uniform(0.5, 2.0)  # noqa: S311 - jitter
            except Exception as error:  # noqa: BLE001 - a worker that ends would end the others
                _log.error("unexpected error", exc_info=error)
                wait_s = random.uniform(0.5, 2.0)  # noqa: S311 - jitter
            await self._wakeup.wait(ticket, wait_s, stop)

    async def work_once(self) -> bool:
        """Leases and settles one row. False if nothing was due.

        Raises ``DatabaseError``; the lease then runs out and the row is rescued.
        """
        # Before the lease begins, by this machine's clock: never later than the lease itself.
        writes_until = datetime.now(UTC) + timedelta(seconds=self._lease_s - self._write_margin_s)
        lease = await self._store.lease(self._lease_s)
        if lease is None:
            return False
        outcome = await self._converge(lease, writes_until)
        held = await self._settle(lease, outcome)
        _log.log(
            logging.ERROR if isinstance(outcome, Permanent) else logging.INFO,
            _EVENTS.get(type(outcome), "not converged"),
            memory_id=str(lease.memory_id),
            outcome=type(outcome).__name__.lower(),
            reason=getattr(outcome, "reason", None),
            attempts=lease.attempts,
            lease=held.name.lower(),
        )
        return True

    async def _converge(self, lease: Lease, writes_until: datetime) -> Outcome:
        try:
            return await self._converger.converge(lease, writes_until)
        except DatabaseError:
            raise
        except Exception as error:  # noqa: BLE001 - one memory that we handle wrongly must not stop the others
            _log.error("unexpected error", memory_id=str(lease.memory_id), exc_info=error)
            if lease.attempts >= _MAX_UNEXPECTED:
                return Permanent("UNEXPECTED_ERROR")
            return Transient("UNEXPECTED_ERROR")

    async def _settle(self, lease: Lease, outcome: Outcome) -> Held:
        async with self._database.of(lease.company, lease.user) as connection:
            held = await outbox.lock_held(connection, lease)
            if held is Held.LOST:
                await outbox.enqueue_again(connection, lease)
                return held
            if isinstance(outcome, InDoubt):
                # Whatever changed has to wait too: a deletion now could be overtaken by the words (I7).
                await outbox.hold(connection, lease, self._doubt_s)
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
