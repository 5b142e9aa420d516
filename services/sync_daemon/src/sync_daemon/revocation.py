"""Revocation: what came from a revoked source is forgotten (DESIGN §10, I6, I7).

Use of it stopped in the transaction that revoked the source. What is left to do here may take its time, and
is done in steps, so that a large source holds no locks that others wait for.
"""

from __future__ import annotations

import asyncio

import structlog
from tenant_db import DatabaseError

from sync_daemon.stopping import unless_stopped
from sync_daemon.store.revocations import RevocationStore
from sync_daemon.wakeup import Wakeup

_log = structlog.get_logger()

_MEMORIES_AT_ONCE = 500


class Revocation:
    """Erases revoked scopes step by step, until told to stop."""

    def __init__(self, store: RevocationStore, wakeup: Wakeup, *, poll_s: float) -> None:
        self._store = store
        self._wakeup = wakeup
        self._poll_s = poll_s

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``, which cuts a step off: it is one transaction."""
        while not stop.is_set():
            ticket = self._wakeup.ticket()
            if not await unless_stopped(self._erase_safely(), stop):
                await self._wakeup.wait(ticket, self._poll_s, stop)

    async def _erase_safely(self) -> bool:
        try:
            return await self.erase_once()
        except DatabaseError as error:
            _log.warning("authority failed", error=type(error).__name__, sqlstate=error.sqlstate)
        except Exception as error:  # noqa: BLE001 - a step that failed is repeated
            _log.error("unexpected error", exc_info=error)
        return False

    async def erase_once(self) -> bool:
        """One step. False if there is nothing to do, or another daemon is doing it."""
        scope = await self._store.any()
        if scope is None:
            return False
        erased = await self._store.erase_some(scope, limit=_MEMORIES_AT_ONCE)
        if erased:
            _log.info("memories of a revoked source forgotten", scope_id=str(scope.scope_id), count=erased)
        return erased is not None
