"""sync_daemon: the only place where its parts are put together."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import structlog
from hindsight_index import BankTokenSigner, HindsightIndex
from service_process import run_service
from tenant_db import DatabaseError, DatabaseUnavailable, TenantDatabase

from sync_daemon.clearance import Clearance
from sync_daemon.converge import Converger
from sync_daemon.drain import Drain
from sync_daemon.revocation import Revocation
from sync_daemon.settings import Settings
from sync_daemon.stopping import ended_after, unless_stopped
from sync_daemon.store.forgets import ForgetStore
from sync_daemon.store.outbox import OutboxStore
from sync_daemon.store.records import RecordStore
from sync_daemon.store.revocations import RevocationStore
from sync_daemon.wakeup import Wakeup

_log = structlog.get_logger()

_RECONNECT_S = 2.0
_CANCELLING_S = 2.0
_CLOSING_S = 5.0


def main() -> int:
    """Runs the daemon until SIGTERM or SIGINT. Returns the exit status: 2 if it cannot start."""
    return run_service("sync_daemon", Settings, run, speaking=(DatabaseError,))


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Starts every duty, and lets each finish what it holds after ``stop``, within ``stop_s``.

    Waits for a database that does not answer. Hindsight is not waited for: rows are retried.
    """
    signer = BankTokenSigner(settings.bank_token_key_file.read_bytes(), issuer=settings.bank_token_issuer)
    async with ended_after(stop, settings.stop_s + _CLOSING_S), AsyncExitStack() as stack:
        index = await stack.enter_async_context(
            HindsightIndex(
                settings.index_url,
                signer,
                ca_file=settings.index_ca_file,
                timeout_s=settings.index_timeout_s,
                max_connections=settings.workers + 2,
            )
        )
        if database := await unless_stopped(_open(settings, stack), stop):
            await _drain(settings, database, index, stop)


async def _open(settings: Settings, stack: AsyncExitStack) -> TenantDatabase:
    while True:
        database = TenantDatabase(
            settings.database_url.get_secret_value(),
            role="sync_daemon",
            max_connections=settings.workers + 3,
            statement_timeout_s=settings.statement_timeout_s,
            application_name="sync_daemon",
        )
        try:
            return await stack.enter_async_context(database)
        except DatabaseUnavailable as error:
            _log.warning("waiting for the database", sqlstate=error.sqlstate)
            await asyncio.sleep(_RECONNECT_S)


async def _drain(
    settings: Settings, database: TenantDatabase, index: HindsightIndex, stop: asyncio.Event
) -> None:
    wakeup = Wakeup(settings.database_url.get_secret_value())
    drain = Drain(
        database,
        OutboxStore(database),
        Converger(RecordStore(database), index, call_s=settings.index_timeout_s),
        wakeup,
        workers=settings.workers,
        lease_s=settings.lease_s,
        write_margin_s=settings.write_margin_s,
        doubt_s=settings.doubt_s,
        poll_s=settings.poll_s,
    )
    clearance = Clearance(
        ForgetStore(database), index, backups=settings.backups, poll_s=settings.clearance_poll_s
    )
    revocation = Revocation(RevocationStore(database), wakeup, poll_s=settings.poll_s)
    duties = [asyncio.create_task(duty.run(stop)) for duty in (drain, clearance, revocation)]
    listening = asyncio.create_task(wakeup.listen())
    _log.info("draining the outbox", workers=settings.workers)
    try:
        async with ended_after(stop, settings.stop_s):
            ended, _ = await asyncio.wait(duties, return_when=asyncio.FIRST_EXCEPTION)
            for duty in ended:
                duty.result()
    finally:
        # Not awaited for ever: a cancelled transaction says ROLLBACK, to a database that may not hear.
        for each in (*duties, listening):
            each.cancel()
        await asyncio.wait((*duties, listening), timeout=_CANCELLING_S)
