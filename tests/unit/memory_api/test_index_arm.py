"""The index as recall sees it: what counts against it, and what does not."""

import asyncio
from collections.abc import Sequence
from typing import cast
from uuid import UUID, uuid4

import pytest
from hindsight_index import HindsightError, HindsightIndex, HindsightRefused, HindsightUnavailable, Hit
from memory_api.index_arm import IndexArm

BANK = "bank-0000000000000000"


class Index:
    """Answers what it is told to, after a delay, and counts how often it is asked."""

    def __init__(self) -> None:
        self.hits: dict[str, Sequence[Hit] | Exception] = {}
        self.delay_s = 0.0
        self.asked = 0

    async def recall(self, bank: str, query: str, *, max_tokens: int, timeout_s: float) -> Sequence[Hit]:
        self.asked += 1
        await asyncio.sleep(self.delay_s)
        answer = self.hits.get(bank, [])
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def index() -> Index:
    return Index()


def arm_of(index: Index, *, timeout_s: float = 0.2, open_s: float = 60) -> IndexArm:
    return IndexArm(
        cast(HindsightIndex, index), timeout_s=timeout_s, breaker_threshold=3, breaker_open_s=open_s
    )


async def test_banks_are_merged_by_semantic_score_and_ids_come_once(index: Index) -> None:
    first, second, third = uuid4(), uuid4(), uuid4()
    index.hits = {
        "small": [Hit(str(second), 0.7), Hit(str(first), 0.9)],
        "large": [
            Hit(str(third), 0.8),
            Hit(str(first), 0.6),
            Hit("not-an-id", 0.99),
            Hit(str(UUID(int=1)), None),
        ],
    }

    answer = await arm_of(index).ask(["small", "large"], "q", time_left_s=10)

    assert answer.memory_ids == (first, third, second, UUID(int=1))
    assert answer.unanswered == {}


async def test_a_bank_that_fails_is_named_and_does_not_take_the_others_along(index: Index) -> None:
    known = uuid4()
    index.hits = {"good": [Hit(str(known), 0.5)], "bad": HindsightRefused()}

    answer = await arm_of(index).ask(["good", "bad"], "q", time_left_s=10)

    assert answer.memory_ids == (known,)
    assert answer.unanswered == {"bad": "INDEX_REFUSED"}


async def test_a_failure_without_a_name_of_its_own_degrades_like_any_other(index: Index) -> None:
    class Unheard(HindsightError):
        pass

    index.hits = {BANK: Unheard()}
    assert (await arm_of(index).ask([BANK], "q", time_left_s=10)).unanswered == {BANK: "INDEX_ERROR"}


async def test_silence_opens_the_breaker_and_it_closes_by_itself(index: Index) -> None:
    arm = arm_of(index, open_s=0.1)
    index.hits = {BANK: HindsightUnavailable()}
    for _ in range(3):
        await arm.ask([BANK], "q", time_left_s=10)
    asked = index.asked

    refused = await arm.ask([BANK], "q", time_left_s=10)
    assert refused.unanswered == {BANK: "INDEX_UNAVAILABLE"}
    assert index.asked == asked, "an open breaker asks nobody"

    index.hits = {}
    await asyncio.sleep(0.15)
    assert (await arm.ask([BANK], "q", time_left_s=10)).unanswered == {}


async def test_a_slow_index_is_a_timeout_and_counts_against_it(index: Index) -> None:
    arm = arm_of(index, timeout_s=0.02)
    index.delay_s = 5
    reasons = [(await arm.ask([BANK], "q", time_left_s=10)).unanswered[BANK] for _ in range(4)]
    assert reasons == ["INDEX_TIMEOUT", "INDEX_TIMEOUT", "INDEX_TIMEOUT", "INDEX_UNAVAILABLE"]


async def test_callers_in_a_hurry_do_not_take_the_index_from_others(index: Index) -> None:
    arm = arm_of(index, timeout_s=1)
    index.delay_s = 0.05
    for _ in range(10):
        hurried = await arm.ask([BANK], "q", time_left_s=0.02)
        assert hurried.unanswered == {BANK: "INDEX_TIMEOUT"}

    assert (await arm.ask([BANK], "q", time_left_s=10)).unanswered == {}


async def test_callers_that_hang_up_do_not_take_the_index_from_others(index: Index) -> None:
    arm = arm_of(index, timeout_s=1)
    index.delay_s = 0.05
    for _ in range(10):
        call = asyncio.create_task(arm.ask([BANK], "q", time_left_s=10))
        await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    assert (await arm.ask([BANK], "q", time_left_s=10)).unanswered == {}


async def test_a_hurried_caller_is_no_success_either(index: Index) -> None:
    arm = arm_of(index, timeout_s=0.1)
    index.delay_s = 5
    reasons = []
    for _ in range(4):
        await arm.ask([BANK], "q", time_left_s=0.02)
        reasons.append((await arm.ask([BANK], "q", time_left_s=10)).unanswered[BANK])
    assert reasons == ["INDEX_TIMEOUT"] * 3 + ["INDEX_UNAVAILABLE"]


async def test_standing_in_line_does_not_count_against_the_index(index: Index) -> None:
    arm = arm_of(index, timeout_s=0.3)
    index.delay_s = 0.25
    answers = await asyncio.gather(*(arm.ask([BANK], "q", time_left_s=10) for _ in range(100)))
    assert {reason for answer in answers for reason in answer.unanswered.values()} == {"INDEX_TIMEOUT"}
    assert sum(not answer.unanswered for answer in answers) == 20

    assert (await arm.ask([BANK], "q", time_left_s=10)).unanswered == {}
