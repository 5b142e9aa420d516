"""Merging ranked answers. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

Key = TypeVar("Key")

# Cormack, Clarke and Büttcher (SIGIR 2009): 1 / (60 + rank) summed over the arms.
_RANK_CONSTANT = 60


def reciprocal_rank_fusion(arms: Sequence[Sequence[Key]]) -> list[Key]:
    """Every key of ``arms`` once, best first. Each arm is ordered best first.

    Equal sums keep the order of first appearance, earlier arms first, so that equal input gives
    equal output.
    """
    scores: defaultdict[Key, float] = defaultdict(float)
    for arm in arms:
        for rank, key in enumerate(dict.fromkeys(arm), start=1):
            scores[key] += 1 / (_RANK_CONSTANT + rank)
    return sorted(scores, key=lambda key: -scores[key])
