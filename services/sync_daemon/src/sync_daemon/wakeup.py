"""LISTEN for new rows. A lost notification costs at most one polling interval."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import asyncpg
import structlog

_CHANNEL = "openbot_outbox"
_RECONNECT_S = 2.0

_log = structlog.get_logger()


class Wakeup:
    """Wakes whoever waits when PostgreSQL says that a row is due."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._changed = asyncio.Event()

    async def listen(self) -> None:
        """Keeps one connection listening. Runs until cancelled."""
        while True:
            try:
                connection = await asyncpg.connect(
                    self._dsn, server_settings={"application_name": "sync_daemon"}
                )
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(_RECONNECT_S)
                continue
            lost = asyncio.Event()
            try:
                connection.add_termination_listener(lambda _, lost=lost: lost.set())
                await connection.add_listener(_CHANNEL, self._on_notification)
                self._wake()  # whatever came while nobody listened
                await lost.wait()
                _log.warning("listening connection lost")
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(_RECONNECT_S)
            finally:
                connection.terminate()

    def _on_notification(self, *_: Any) -> None:
        self._wake()

    def _wake(self) -> None:
        # Everyone who waits now wakes; who waits later waits for the next.
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait(self, seconds: float, stop: asyncio.Event) -> None:
        """Returns on a notification, on ``stop``, or after ``seconds``, whichever is first."""
        waiting = [asyncio.ensure_future(self._changed.wait()), asyncio.ensure_future(stop.wait())]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*waiting, return_exceptions=True)
