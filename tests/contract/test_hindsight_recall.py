"""Recall in Hindsight 1.1.0, as far as memory_api relies on it."""

import asyncio
import math
from uuid import uuid4

import pytest
from hindsight_index import BankMissing, HindsightIndex, HindsightRefused

from tests.conftest import Hindsight

pytestmark = pytest.mark.hindsight

#: In each language, the same things. Which language a memory has must not decide whether it is found.
MEMORIES: dict[str, dict[str, str]] = {
    "zh": {
        "tea": "艾达每天早上喝绿茶，从不加糖。",
        "office": "艾达的办公室在三楼，靠近电梯。",
        "music": "李雷的小提琴课在每周四晚上。",
        "deploy": "发布流程要求两个人批准之后才能上线。",
        "parking": "红色面包车的停车证十月到期。",
    },
    "en": {
        "tea": "Ada drinks green tea every morning, never with sugar.",
        "office": "Ada's office is on the third floor, next to the lift.",
        "music": "Li Lei's violin lesson is on Thursday evenings.",
        "deploy": "The release process needs two approvals before a rollout.",
        "parking": "The parking permit of the red van expires in October.",
    },
}

QUESTIONS = {
    "艾达早上喝什么？": "tea",
    "What does Ada drink in the morning?": "tea",
    "上线之前需要几个人批准？": "deploy",
    "How many approvals does a release need?": "deploy",
    "小提琴课是什么时候？": "music",
    "When is the violin lesson?": "music",
}


@pytest.fixture(scope="module")
def filled_bank(hindsight: Hindsight) -> str:
    """A bank with our settings and every memory in both languages. Nobody changes it."""
    bank = f"bank-{uuid4().hex}"

    async def fill() -> None:
        async with HindsightIndex(hindsight.base_url, hindsight.sync_signer) as index:
            await index.ensure_bank(bank)
            for language, memories in MEMORIES.items():
                for name, text in memories.items():
                    await index.retain(bank, f"{language}-{name}", text)

    asyncio.run(fill())
    return bank


@pytest.mark.parametrize(("question", "expected"), QUESTIONS.items())
async def test_a_question_finds_its_memory_first_in_its_own_language(
    recall_index: HindsightIndex, filled_bank: str, question: str, expected: str
) -> None:
    hits = await recall_index.recall(filled_bank, question, max_tokens=4096, timeout_s=20)
    best = max(hits, key=lambda hit: hit.semantic if hit.semantic is not None else -1.0)
    assert best.document_id == f"{'en' if question.isascii() else 'zh'}-{expected}"


async def test_every_hit_is_a_document_of_the_bank_with_a_cosine(
    recall_index: HindsightIndex, filled_bank: str
) -> None:
    hits = await recall_index.recall(filled_bank, "绿茶 tea", max_tokens=4096, timeout_s=20)
    assert {hit.document_id for hit in hits} <= {
        f"{language}-{name}" for language, memories in MEMORIES.items() for name in memories
    }
    assert hits
    for hit in hits:
        assert hit.semantic is not None
        assert math.isfinite(hit.semantic)
        assert -1 <= hit.semantic <= 1


async def test_an_empty_bank_answers_with_nothing(
    index: HindsightIndex, recall_index: HindsightIndex, bank: str
) -> None:
    await index.ensure_bank(bank)
    assert await recall_index.recall(bank, "tea", max_tokens=100, timeout_s=20) == []


async def test_a_bank_that_is_not_there_is_missing(recall_index: HindsightIndex, bank: str) -> None:
    with pytest.raises(BankMissing):
        await recall_index.recall(bank, "tea", max_tokens=100, timeout_s=20)


async def test_a_deleted_memory_is_not_recalled(
    index: HindsightIndex, recall_index: HindsightIndex, bank: str
) -> None:
    await index.ensure_bank(bank)
    await index.retain(bank, "tea", "艾达每天早上喝绿茶，从不加糖。")
    assert [hit.document_id for hit in await recall_index.recall(bank, "艾达", max_tokens=99, timeout_s=20)]
    await index.delete_document(bank, "tea")
    assert await recall_index.recall(bank, "艾达", max_tokens=99, timeout_s=20) == []


async def test_each_service_does_its_own_part_only(
    index: HindsightIndex, recall_index: HindsightIndex, filled_bank: str
) -> None:
    with pytest.raises(HindsightRefused):
        await index.recall(filled_bank, "tea", max_tokens=100, timeout_s=20)
    with pytest.raises(HindsightRefused):
        await recall_index.delete_document(filled_bank, "zh-tea")
    with pytest.raises(HindsightRefused):
        await recall_index.document(filled_bank, "zh-tea")
    assert await index.document(filled_bank, "zh-tea") is not None
