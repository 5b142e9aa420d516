"""An allowance is used up, comes back at an even pace, is each key's own, and leaves nothing behind."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_api.allowance import Allowance, Allowances

SECOND = 1_000_000_000


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 17 * SECOND

    def __call__(self) -> int:
        return self.now

    def pass_(self, time: timedelta) -> None:
        self.now += round(time / timedelta(microseconds=1)) * 1000


def allowances(clock: Clock, *, at_once: int = 1000, per_second: int = 1000) -> Allowances[str]:
    return Allowances(Allowance(at_once, per_second), clock)


def called(calls: Allowances[str], key: str = "bots") -> bool:
    """Whether a call, over in no time, was let in."""
    if calls.wait(key) or not calls.has_room(key):
        return False
    calls.take(key)
    calls.give_back(key)
    return True


@pytest.mark.parametrize("per_second", [1, 3, 7, 500])
def test_a_seconds_calls_may_come_at_one_moment_and_then_no_more(per_second: int) -> None:
    calls = allowances(Clock(), per_second=per_second)
    assert sum(called(calls) for _ in range(2 * per_second)) == per_second


@pytest.mark.parametrize("per_second", [1, 3, 7, 500])
def test_the_wait_that_is_told_is_enough_and_not_more(per_second: int) -> None:
    clock = Clock()
    calls = allowances(clock, per_second=per_second)
    while called(calls):
        pass
    for _ in range(3 * per_second):
        wait = calls.wait("bots")
        assert timedelta(0) < wait <= timedelta(seconds=1)
        clock.pass_(wait - timedelta(microseconds=1))
        assert not called(calls)
        clock.pass_(timedelta(microseconds=1))
        assert called(calls)


@given(
    per_second=st.integers(1, 50),
    pauses=st.lists(st.integers(0, 300_000), max_size=200),
)
def test_no_second_sees_more_than_what_was_saved_and_what_came(per_second: int, pauses: list[int]) -> None:
    clock = Clock()
    calls = allowances(clock, per_second=per_second)
    starts: list[int] = []
    for pause in pauses:
        clock.pass_(timedelta(microseconds=pause))
        if called(calls):
            starts.append(clock.now)
    for first, start in enumerate(starts):
        within = sum(start <= other < start + SECOND for other in starts[first:])
        assert within <= 2 * per_second


def test_refused_calls_do_not_move_the_next_one_away() -> None:
    clock = Clock()
    calls = allowances(clock, per_second=2)
    while called(calls):
        pass
    before = calls.wait("bots")
    for _ in range(100):
        assert not called(calls)
    assert calls.wait("bots") == before


def test_room_is_taken_and_given_back() -> None:
    calls = allowances(Clock(), at_once=2)
    calls.take("bots")
    assert calls.has_room("bots")
    calls.take("bots")
    assert not calls.has_room("bots")
    calls.give_back("bots")
    assert calls.has_room("bots")


def test_one_key_does_not_feel_another() -> None:
    clock = Clock()
    calls = allowances(clock, at_once=1, per_second=1)
    calls.take("noisy")
    assert not calls.has_room("noisy")
    assert calls.wait("noisy")
    assert calls.has_room("quiet")
    assert not calls.wait("quiet")


def test_nothing_is_kept_of_a_caller_that_rests() -> None:
    clock = Clock()
    calls = allowances(clock)
    calls.take("running")
    for second in range(50):
        for number in range(100):
            assert called(calls, f"caller {second} {number}")
        clock.pass_(timedelta(seconds=1))
    assert len(calls) <= 1 + 2 * 100
    assert called(calls)
    assert len(calls) <= 1 + 100 + 1
    calls.give_back("running")
    clock.pass_(timedelta(seconds=2))
    assert called(calls)
    assert len(calls) == 1


def test_what_was_forgotten_had_its_whole_allowance_again() -> None:
    clock = Clock()
    calls = allowances(clock, per_second=5)
    while called(calls):
        pass
    clock.pass_(timedelta(milliseconds=999))
    assert called(calls, "other"), "which looks for keys at rest"
    assert sum(called(calls) for _ in range(10)) == 4
    clock.pass_(timedelta(seconds=1))
    assert called(calls, "other")
    assert sum(called(calls) for _ in range(10)) == 5
