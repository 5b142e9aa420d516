"""Recall in Hindsight 1.1.0, as far as memory_api relies on it."""

import math

import pytest
from hindsight_index import BankMissing, HindsightIndex, HindsightRefused

pytestmark = pytest.mark.hindsight

MEMORIES = {
    "tea-zh": "艾达每天早上喝绿茶，从不加糖。",
    "tea-en": "Ada drinks green tea every morning, never with sugar.",
    "office-zh": "艾达的办公室在三楼，靠近电梯。",
    "office-en": "The parking permit of the red van expires in October.",
    "music-zh": "李雷的小提琴课在每周四晚上。",
    "music-en": "Grace's violin lesson is on Thursday evenings.",
    "deploy-zh": "发布流程要求两个人批准之后才能上线。",
    "deploy-en": "The release process needs two approvals before a rollout.",
}


@pytest.fixture
async def filled_bank(index: HindsightIndex, bank: str) -> str:
    """A bank with our settings and a few memories in two languages."""
    await index.ensure_bank(bank)
    for document_id, text in MEMORIES.items():
        await index.retain(bank, document_id, text)
    return bank


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("艾达早上喝什么？", {"tea-zh", "tea-en"}),
        ("What does Ada drink in the morning?", {"tea-zh", "tea-en"}),
        ("上线之前需要谁批准？", {"deploy-zh", "deploy-en"}),
        ("Who has to approve a release?", {"deploy-zh", "deploy-en"}),
    ],
)
async def test_a_question_finds_the_memory_first_in_either_language(
    recall_index: HindsightIndex, filled_bank: str, question: str, expected: set[str]
) -> None:
    hits = await recall_index.recall(filled_bank, question, max_tokens=4096, timeout_s=20)
    scored = [hit for hit in hits if hit.semantic is not None]
    best = sorted(scored, key=lambda hit: -(hit.semantic or 0.0))
    assert {hit.document_id for hit in best[:2]} == expected


async def test_every_hit_is_a_document_of_the_bank_with_a_cosine(
    recall_index: HindsightIndex, filled_bank: str
) -> None:
    hits = await recall_index.recall(filled_bank, "绿茶 tea", max_tokens=4096, timeout_s=20)
    assert {hit.document_id for hit in hits} <= MEMORIES.keys()
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
    await index.delete_document(filled_bank, "tea-zh")
    hits = await recall_index.recall(filled_bank, "艾达早上喝什么？", max_tokens=4096, timeout_s=20)
    assert "tea-zh" not in {hit.document_id for hit in hits}


async def test_each_service_does_its_own_part_only(
    index: HindsightIndex, recall_index: HindsightIndex, filled_bank: str
) -> None:
    with pytest.raises(HindsightRefused):
        await index.recall(filled_bank, "tea", max_tokens=100, timeout_s=20)
    with pytest.raises(HindsightRefused):
        await recall_index.delete_document(filled_bank, "tea-en")
    with pytest.raises(HindsightRefused):
        await recall_index.document(filled_bank, "tea-en")
    assert await index.document(filled_bank, "tea-en") is not None
