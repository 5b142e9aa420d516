"""sync_daemon: the only place where its parts are put together."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import structlog
from hindsight_index import BankTokenSigner, HindsightIndex
from service_process import run_service
from tenant_db import DatabaseError, TenantDatabase

from sync_daemon.clearance import Clearance
from sync_daemon.converge import Converger
from sync_daemon.drain import Drain
from sync_daemon.settings import Settings
from sync_daemon.store.forgets import ForgetStore
from sync_daemon.store.outbox import OutboxStore
from sync_daemon.store.records import RecordStore
from sync_daemon.wakeup import Wakeup

_log = structlog.get_logger()


def main() -> int:
    """Runs the daemon until SIGTERM or SIGINT. Returns the exit status: 2 if it cannot start."""
    return run_service("sync_daemon", Settings, run, speaking=(DatabaseError,))


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Starts every duty and lets each finish what it holds after ``stop``."""
    signer = BankTokenSigner(settings.bank_token_key_file.read_bytes(), issuer=settings.bank_token_issuer)
    dsn = settings.database_url.get_secret_value()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            TenantDatabase(
                dsn,
                role="sync_daemon",
                max_connections=settings.workers + 2,
                statement_timeout_s=settings.statement_timeout_s,
                application_name="sync_daemon",
            )
        )
        index = await stack.enter_async_context(
            HindsightIndex(
                settings.index_url,
                signer,
                ca_file=settings.index_ca_file,
                timeout_s=settings.index_timeout_s,
            )
        )
        wakeup = Wakeup(dsn)
        drain = Drain(
            database,
            OutboxStore(database),
            Converger(RecordStore(database), index),
            wakeup,
            workers=settings.workers,
            lease_s=settings.lease_s,
            write_margin_s=settings.write_margin_s,
            poll_s=settings.poll_s,
        )
        clearance = Clearance(
            ForgetStore(database), index, backups=settings.backups, poll_s=settings.clearance_poll_s
        )
        listening = asyncio.create_task(wakeup.listen())
        _log.info("draining the outbox", workers=settings.workers)
        try:
            async with asyncio.TaskGroup() as duties:
                duties.create_task(drain.run(stop))
                duties.create_task(clearance.run(stop))
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
