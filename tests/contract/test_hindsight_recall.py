"""Recall in Hindsight 1.1.0, as far as memory_api relies on it."""

import math

import pytest
from hindsight_index import BankMissing, HindsightIndex, HindsightRefused

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


async def fill(index: HindsightIndex, bank: str, language: str) -> None:
    await index.ensure_bank(bank)
    for document_id, text in MEMORIES[language].items():
        await index.retain(bank, document_id, text)


@pytest.fixture
async def filled_bank(index: HindsightIndex, bank: str) -> str:
    """A bank with our settings and a few memories."""
    await fill(index, bank, "zh")
    return bank


@pytest.mark.parametrize("language", MEMORIES)
async def test_a_question_in_either_language_finds_its_memory_first(
    index: HindsightIndex, recall_index: HindsightIndex, bank: str, language: str
) -> None:
    await fill(index, bank, language)
    for question, expected in QUESTIONS.items():
        hits = await recall_index.recall(bank, question, max_tokens=4096, timeout_s=20)
        best = max(hits, key=lambda hit: hit.semantic if hit.semantic is not None else -1.0)
        assert (question, best.document_id) == (question, expected)


async def test_every_hit_is_a_document_of_the_bank_with_a_cosine(
    recall_index: HindsightIndex, filled_bank: str
) -> None:
    hits = await recall_index.recall(filled_bank, "绿茶 tea", max_tokens=4096, timeout_s=20)
    assert {hit.document_id for hit in hits} <= MEMORIES["zh"].keys()
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
    index: HindsightIndex, recall_index: HindsightIndex, filled_bank: str
) -> None:
    await index.delete_document(filled_bank, "tea")
    hits = await recall_index.recall(filled_bank, "艾达早上喝什么？", max_tokens=4096, timeout_s=20)
    assert "tea" not in {hit.document_id for hit in hits}


async def test_each_service_does_its_own_part_only(
    index: HindsightIndex, recall_index: HindsightIndex, filled_bank: str
) -> None:
    with pytest.raises(HindsightRefused):
        await index.recall(filled_bank, "tea", max_tokens=100, timeout_s=20)
    with pytest.raises(HindsightRefused):
        await recall_index.delete_document(filled_bank, "tea")
    with pytest.raises(HindsightRefused):
        await recall_index.document(filled_bank, "tea")
    assert await index.document(filled_bank, "tea") is not None
