"""How much one caller may take: calls at once, and calls a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

_SECOND_NS = 1_000_000_000

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Allowance:
    """Calls that may run at the same time, and calls that may start a second, at least 1 each.

    As many calls as start in a second may also start at one moment, after a second of silence.
    """

    at_once: int
    per_second: int


@dataclass(slots=True)
class _Use:
    running: int = 0
    due_ns: int = 0


class Allowances(Generic[Key]):
    """The same allowance for each of any number of keys; nothing is kept of a key that rests for a second.

    The rate is the generic cell rate algorithm (GCRA, ITU-T I.371): one instant a key says when the call
    after the last one would be due at an even pace, and calls may be up to a second ahead of it. ``clock``
    gives nanoseconds and must never go back. For one thread: an answer holds until the next ``await``.
    """

    def __init__(self, allowance: Allowance, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._at_once = allowance.at_once
        # Rounded up: rather a little slower than a little faster.
        self._interval_ns = -(-_SECOND_NS // allowance.per_second)
        self._ahead_ns = self._interval_ns * (allowance.per_second - 1)
        self._clock = clock
        self._uses: dict[Key, _Use] = {}
        self._sweep_ns = 0

    def __len__(self) -> int:
        """How many keys are kept."""
        return len(self._uses)

    def has_room(self, key: Key) -> bool:
        """Whether one more call of ``key`` may run now."""
        use = self._uses.get(key)
        return use is None or use.running < self._at_once

    def wait(self, key: Key) -> timedelta:
        """How long until the next call of ``key`` may start, if no other starts before it; zero: now."""
        use = self._uses.get(key)
        early_ns = 0 if use is None else use.due_ns - self._ahead_ns - self._clock()
        return timedelta(microseconds=max(0, -(-early_ns // 1000)))

    def take(self, key: Key) -> None:
        """Starts a call of ``key``, whether it was allowed or not. :meth:`give_back` must follow."""
        now = self._clock()
        self._sweep(now)
        use = self._uses.setdefault(key, _Use())
        use.running += 1
        use.due_ns = max(use.due_ns, now) + self._interval_ns

    def give_back(self, key: Key) -> None:
        """Ends a call of ``key``."""
        self._uses[key].running -= 1

    def _sweep(self, now: int) -> None:
        if now < self._sweep_ns:
            return
        self._sweep_ns = now + _SECOND_NS
        self._uses = {key: use for key, use in self._uses.items() if use.running or use.due_ns > now}
