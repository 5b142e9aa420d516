"""Ending in time after a signal, whatever still hangs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog

Result = TypeVar("Result")

_log = structlog.get_logger()


@asynccontextmanager
async def ended_after(stop: asyncio.Event, grace_s: float) -> AsyncIterator[None]:
    """Lets the block run, but cancels it ``grace_s`` seconds after ``stop``, which is no error."""
    try:
        async with asyncio.timeout(None) as limit:
            watching = asyncio.create_task(_limit(limit, stop, grace_s))
            try:
                yield
            finally:
                watching.cancel()
    except TimeoutError:
        if not limit.expired():
            raise
        _log.warning("unfinished work was cut off", after_s=grace_s)


async def _limit(limit: asyncio.Timeout, stop: asyncio.Event, grace_s: float) -> None:
    await stop.wait()
    limit.reschedule(asyncio.get_running_loop().time() + grace_s)


async def unless_stopped(work: Coroutine[Any, Any, Result], stop: asyncio.Event) -> Result | None:
    """The result of ``work``; cancels it and returns None as soon as ``stop`` is set."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        stopping.cancel()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
