"""Ending in time, whatever hangs."""

import asyncio

import pytest
from sync_daemon.stopping import ended_after, unless_stopped


async def for_ever() -> str:
    await asyncio.Event().wait()
    return "never"


async def at_once() -> str:
    return "done"


async def test_work_goes_on_for_the_grace_and_is_then_cut_off() -> None:
    stop = asyncio.Event()
    reached = []
    async with asyncio.timeout(10):
        async with ended_after(stop, 0.2):
            stop.set()
            await asyncio.sleep(0.01)
            reached.append("inside the grace")
            await for_ever()
            reached.append("after it")
    assert reached == ["inside the grace"]


async def test_what_ends_by_itself_is_left_alone() -> None:
    stop = asyncio.Event()
    stop.set()
    async with ended_after(stop, 0.01):
        pass
    await asyncio.sleep(0.05)


async def test_a_timeout_of_the_work_itself_is_not_taken_for_the_end() -> None:
    with pytest.raises(TimeoutError):
        async with ended_after(asyncio.Event(), 1):
            raise TimeoutError


async def test_the_result_unless_stopped_first() -> None:
    stop = asyncio.Event()
    assert await unless_stopped(at_once(), stop) == "done"
    stop.set()
    async with asyncio.timeout(10):
        assert await unless_stopped(for_ever(), stop) is None
