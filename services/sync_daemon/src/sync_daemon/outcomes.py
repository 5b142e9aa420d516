"""The ways in which the attempt to converge one memory can end. Each is settled differently."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Indexed:
    """Read back: the index holds exactly this version."""

    version: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """Asked afterwards: the index holds nothing of the memory."""


@dataclass(frozen=True, slots=True)
class Transient:
    """Worth repeating. ``not_before_s`` is the least wait that the index asked for."""

    reason: str
    not_before_s: float = 0.0


@dataclass(frozen=True, slots=True)
class InDoubt:
    """Words were sent and nobody answered: they may still be stored, as long as their token is good."""

    reason: str


@dataclass(frozen=True, slots=True)
class Permanent:
    """Repeating will not help; an operator is needed."""

    reason: str


Outcome = Indexed | Deleted | Transient | InDoubt | Permanent
