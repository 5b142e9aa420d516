"""What becomes of one memory, for every way in which the index can answer."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import uuid4

import pytest
from hindsight_index import (
    BANK_SETTINGS_VERSION,
    BankMissing,
    Document,
    HindsightError,
    HindsightIndex,
    HindsightProtocolError,
    HindsightRefused,
    HindsightUnavailable,
    NothingToIndex,
)
from sync_daemon.converge import Converger
from sync_daemon.outcomes import Deleted, Indexed, InDoubt, Outcome, Permanent, Transient
from sync_daemon.store.outbox import Lease
from sync_daemon.store.records import Record, RecordStore

CALL_S = 10
WRITES_UNTIL = datetime.now(UTC) + timedelta(hours=1)


class OneRecord:
    """The store of one memory."""

    def __init__(self, record: Record | None) -> None:
        self.record = record

    async def read(self, lease: Lease) -> Record | None:
        return self.record

    async def note_bank_settings(self, lease: Lease, record: Record, settings_version: str) -> None:
        pass


class Index:
    """An index that does as told. ``fails`` maps a call to its error; ``deaf`` calls have no effect."""

    def __init__(self, held: Document | None = None, deaf: bool = False, **fails: HindsightError) -> None:
        self.held = held
        self.deaf = deaf
        self.fails = fails
        self.expiries: list[datetime | None] = []

    def _heard(self, call: str, expires_at: datetime | None = None) -> None:
        self.expiries.append(expires_at)
        if call in self.fails:
            raise self.fails[call]

    async def bank_exists(self, bank: str) -> bool:
        self._heard("bank_exists")
        return True

    async def retain(self, bank: str, document_id: str, text: str, *, expires_at: datetime) -> None:
        self._heard("retain", expires_at)
        if not self.deaf:
            self.held = Document(text, 1)

    async def document(self, bank: str, document_id: str) -> Document | None:
        self._heard("document")
        return self.held

    async def delete_document(self, bank: str, document_id: str, *, expires_at: datetime) -> bool:
        self._heard("delete", expires_at)
        if not self.deaf:
            self.held = None
        return True


async def outcome(
    index: Index,
    text: str | None = "tea",
    *,
    attempts: int = 1,
    touched: bool = True,
    writes_until: datetime = WRITES_UNTIL,
) -> Outcome:
    settings = BANK_SETTINGS_VERSION if touched else None
    record = Record(uuid4(), 3, text, uuid4(), "bank-of-lin", settings)
    converger = Converger(cast(RecordStore, OneRecord(record)), cast(HindsightIndex, index), call_s=CALL_S)
    return await converger.converge(Lease(record.memory_id, "acme", "lin", uuid4(), attempts), writes_until)


async def test_words_are_indexed_once_read_back() -> None:
    assert await outcome(Index()) == Indexed(3)


@pytest.mark.parametrize("held", [None, Document("something else", 1), Document("tea", 0), Document(None, 1)])
async def test_what_is_not_read_back_word_by_word_is_not_indexed(held: Document | None) -> None:
    assert await outcome(Index(held, deaf=True)) == Transient("INDEX_NOT_AS_WRITTEN")


async def test_a_forgotten_memory_is_deleted_once_nothing_is_read_back() -> None:
    index = Index(Document("tea", 1))
    assert await outcome(index, None) == Deleted()
    assert index.held is None
    assert await outcome(Index(Document("tea", 1), deaf=True), None) == Transient(
        "INDEX_STILL_HOLDS_DOCUMENT"
    )


async def test_a_bank_that_was_never_touched_is_not_asked() -> None:
    index = Index()
    assert await outcome(index, None, touched=False) == Deleted()
    assert index.expiries == []


async def test_a_record_that_is_not_there_is_given_up() -> None:
    converger = Converger(cast(RecordStore, OneRecord(None)), cast(HindsightIndex, Index()), call_s=CALL_S)
    lease = Lease(uuid4(), "acme", "lin", uuid4(), 1)
    assert await converger.converge(lease, WRITES_UNTIL) == Permanent("RECORD_MISSING")


@pytest.mark.parametrize("call", ["bank_exists", "document"])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (HindsightUnavailable, Transient("INDEX_UNAVAILABLE")),
        (lambda: HindsightUnavailable(7), Transient("INDEX_UNAVAILABLE", not_before_s=7)),
        (HindsightRefused, Transient("INDEX_REFUSED")),
        (BankMissing, Transient("INDEX_BANK_MISSING")),
        (HindsightProtocolError, Transient("INDEX_PROTOCOL_ERROR")),
    ],
)
async def test_a_question_that_fails_is_repeated(
    call: str, error: Callable[[], HindsightError], expected: Outcome
) -> None:
    assert await outcome(Index(**cast(Any, {call: error()}))) == expected


async def test_words_sent_without_an_answer_are_in_doubt_and_those_turned_away_are_not() -> None:
    assert await outcome(Index(retain=HindsightUnavailable())) == InDoubt("INDEX_UNAVAILABLE")
    turned_away = Transient("INDEX_UNAVAILABLE", not_before_s=2)
    assert await outcome(Index(retain=HindsightUnavailable(2))) == turned_away
    assert await outcome(Index(retain=HindsightRefused())) == Transient("INDEX_REFUSED")
    # An unanswered deletion can bring nothing back.
    assert await outcome(Index(delete=HindsightUnavailable()), None) == Transient("INDEX_UNAVAILABLE")


async def test_words_are_signed_for_one_call_and_never_beyond_the_lease() -> None:
    index = Index()
    await outcome(index)
    longest = datetime.now(UTC) + timedelta(seconds=CALL_S)
    assert [each for each in index.expiries if each is not None] != []
    assert all(each <= longest for each in index.expiries if each is not None)

    ends_soon = datetime.now(UTC) + timedelta(seconds=1)
    for text in ("tea", None):
        index = Index()
        await outcome(index, text, writes_until=ends_soon)
        assert [each for each in index.expiries if each is not None] == [ends_soon]


async def test_words_of_which_nothing_can_be_indexed_are_given_up() -> None:
    assert await outcome(Index(retain=NothingToIndex())) == Permanent("NOTHING_TO_INDEX")


async def test_answers_without_sense_are_given_up_for_words_and_never_for_a_deletion() -> None:
    nonsense = HindsightProtocolError()
    assert await outcome(Index(retain=nonsense), attempts=8) == Permanent("INDEX_PROTOCOL_ERROR")
    assert await outcome(Index(delete=nonsense), None, attempts=800) == Transient("INDEX_PROTOCOL_ERROR")
