"""LISTEN for new rows. A lost notification costs at most one polling interval."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import structlog

_CHANNEL = "openbot_outbox"
_RECONNECT_S = 2.0
_ALIVE_S = 60.0

_log = structlog.get_logger()


class Wakeup:
    """Wakes whoever waits when PostgreSQL says that a row is due."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._changed = asyncio.Event()

    async def listen(self) -> None:
        """Keeps one connection listening. Runs until cancelled; polling covers while there is none."""
        while True:
            try:
                await self._listen_once()
                _log.warning("listening connection lost")
            except Exception as error:  # noqa: BLE001 - without notifications the daemon is only slower
                _log.warning("cannot listen", error=type(error).__name__)
            await asyncio.sleep(_RECONNECT_S)

    async def _listen_once(self) -> None:
        connection = await asyncpg.connect(
            self._dsn, timeout=_ALIVE_S, server_settings={"application_name": "sync_daemon"}
        )
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(_CHANNEL, lambda *_: self.wake())
            self.wake()  # whatever came while nobody listened
            while not await _is_set(lost, _ALIVE_S):
                # A connection whose other end vanished without a word says nothing for ever.
                await connection.execute("select", timeout=_ALIVE_S)
        finally:
            connection.terminate()

    def wake(self) -> None:
        """Wakes everyone whose ticket was taken before."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def ticket(self) -> asyncio.Event:
        """To be taken before looking for work, so that what comes while looking is not missed."""
        return self._changed

    async def wait(self, ticket: asyncio.Event, seconds: float, stop: asyncio.Event) -> None:
        """Returns on a notification since ``ticket``, on ``stop``, or after ``seconds``."""
        waiting: list[asyncio.Task[Any]] = [asyncio.create_task(each.wait()) for each in (ticket, stop)]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            return await event.wait()
    except TimeoutError:
        return False
