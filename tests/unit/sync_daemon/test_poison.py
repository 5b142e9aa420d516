"""A memory that the daemon handles wrongly stops nobody else."""

import asyncio
from datetime import datetime
from typing import cast
from uuid import uuid4

import pytest
from sync_daemon.converge import Converger
from sync_daemon.drain import Drain
from sync_daemon.outcomes import Outcome, Permanent, Transient
from sync_daemon.store.outbox import Held, Lease, OutboxStore
from sync_daemon.wakeup import Wakeup
from tenant_db import DatabaseUnavailable, TenantDatabase


class Poisoned:
    """Converging it fails in a way that nobody foresaw."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def converge(self, lease: Lease, writes_until: datetime) -> Outcome:
        raise self.error


class OneLease:
    def __init__(self, attempts: int) -> None:
        self.lease_ = Lease(uuid4(), "acme", "lin", uuid4(), attempts)

    async def lease(self, lease_s: float) -> Lease:
        return self.lease_


class Recording(Drain):
    """Keeps the outcome instead of writing it down."""

    outcome: Outcome | None = None

    async def _settle(self, lease: Lease, outcome: Outcome) -> Held:
        self.outcome = outcome
        return Held.CURRENT


def drain(error: Exception, attempts: int) -> Recording:
    return Recording(
        cast(TenantDatabase, None),
        cast(OutboxStore, OneLease(attempts)),
        cast(Converger, Poisoned(error)),
        cast(Wakeup, None),
        workers=1,
        lease_s=120,
        write_margin_s=40,
        doubt_s=70,
        poll_s=1,
    )


@pytest.mark.parametrize(("attempts", "kind"), [(1, Transient), (8, Permanent)])
async def test_an_unforeseen_error_is_retried_and_then_given_up(
    attempts: int, kind: type[Transient] | type[Permanent]
) -> None:
    poisoned = drain(ZeroDivisionError("the words of a memory"), attempts)
    async with asyncio.timeout(5):
        assert await poisoned.work_once()
    assert poisoned.outcome == kind("UNEXPECTED_ERROR")


async def test_a_database_that_is_gone_is_not_the_memorys_fault() -> None:
    with pytest.raises(DatabaseUnavailable):
        await drain(DatabaseUnavailable(), 8).work_once()


async def test_a_worker_survives_what_nobody_foresaw() -> None:
    stop = asyncio.Event()

    class Moody:
        calls = 0

        async def lease(self, lease_s: float) -> Lease | None:
            self.calls += 1
            if self.calls == 1:
                raise ZeroDivisionError("the words of a memory")
            stop.set()
            return None

        async def seconds_until_due(self) -> float | None:
            return None

    moody = Moody()
    working = Drain(
        cast(TenantDatabase, None),
        cast(OutboxStore, moody),
        cast(Converger, None),
        Wakeup("unused"),
        workers=1,
        lease_s=120,
        write_margin_s=40,
        doubt_s=70,
        poll_s=1,
    )
    async with asyncio.timeout(10):
        await working.run(stop)
    assert moody.calls == 2
