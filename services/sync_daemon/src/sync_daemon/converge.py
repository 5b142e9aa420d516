"""Making the index agree with one record as it is now (I9)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import structlog
from hindsight_index import (
    BANK_SETTINGS_VERSION,
    BankMissing,
    HindsightError,
    HindsightIndex,
    HindsightProtocolError,
    HindsightRefused,
    HindsightUnavailable,
    NothingToIndex,
)

from sync_daemon.outcomes import Deleted, Indexed, InDoubt, Outcome, Permanent, Transient
from sync_daemon.store.outbox import Lease
from sync_daemon.store.records import Record, RecordStore

#: Noted before a bank is first touched, so that "never touched" is always true.
APPLYING = "applying"

# An answer that makes no sense may be a proxy's; after this many attempts it is the memory's own.
_MAX_TRIES = 8

_log = structlog.get_logger()


class Converger:
    """Drives Hindsight to the state of a record: the words retained, or the document gone.

    Writing tokens expire with ``writes_until``, before the lease can pass to another daemon: what
    a paused daemon sends too late is refused by the guard (I7). Those that carry words also expire with
    the call, ``call_s`` seconds, so that it is known when words sent in vain can no longer arrive.
    """

    def __init__(self, records: RecordStore, index: HindsightIndex, *, call_s: float) -> None:
        self._records = records
        self._index = index
        self._call_s = call_s

    async def converge(self, lease: Lease, writes_until: datetime) -> Outcome:
        """Repeating or reordering changes nothing: what is done follows from the record alone."""
        record = await self._records.read(lease)
        if record is None:
            return Permanent("RECORD_MISSING")
        try:
            if record.text is None:
                return await self._delete(record, writes_until)
            return await self._retain(lease, record, record.text, writes_until)
        except HindsightUnavailable as error:
            return Transient("INDEX_UNAVAILABLE", not_before_s=error.retry_after or 0.0)
        except HindsightRefused:
            return Transient("INDEX_REFUSED")
        except BankMissing:
            return Transient("INDEX_BANK_MISSING")
        except NothingToIndex:
            return Permanent("NOTHING_TO_INDEX")
        except HindsightProtocolError:
            # A deletion is never given up (I7).
            if lease.attempts >= _MAX_TRIES and record.text is not None:
                return Permanent("INDEX_PROTOCOL_ERROR")
            return Transient("INDEX_PROTOCOL_ERROR")
        except HindsightError:
            return Transient("INDEX_ERROR")

    async def _retain(self, lease: Lease, record: Record, text: str, writes_until: datetime) -> Outcome:
        bank, document_id = record.bank_id, str(record.memory_id)
        lost = record.bank_settings_version is not None and not await self._index.bank_exists(bank)
        if lost:
            # Before a new bank stands in its place and looks complete (I10).
            if record.bank_settings_version != APPLYING:  # or it is only being made
                _log.error("the index lost a bank", bank_id=bank)
            await self._records.index_everything_again(lease, record)
        if lost or record.bank_settings_version != BANK_SETTINGS_VERSION:
            await self._records.note_bank_settings(lease, record, APPLYING)
            await self._index.ensure_bank(bank, expires_at=writes_until)
            await self._records.note_bank_settings(lease, record, BANK_SETTINGS_VERSION)
        call_ends = datetime.now(UTC) + timedelta(seconds=self._call_s)
        try:
            await self._index.retain(bank, document_id, text, expires_at=min(writes_until, call_ends))
        except HindsightUnavailable as error:
            if error.retry_after is None:  # with it, Hindsight itself said that it did nothing
                return InDoubt("INDEX_UNAVAILABLE")
            raise
        # A replace overtaken by another write, or cut off half done, reports success all the same.
        document = await self._index.document(bank, document_id)
        if document is None or not document.holds(text):
            if lease.attempts >= _MAX_TRIES:
                return Permanent("INDEX_NOT_AS_WRITTEN")
            return Transient("INDEX_NOT_AS_WRITTEN")
        return Indexed(record.version)

    async def _delete(self, record: Record, writes_until: datetime) -> Outcome:
        if record.bank_settings_version is None:
            return Deleted()
        bank, document_id = record.bank_id, str(record.memory_id)
        await self._index.delete_document(bank, document_id, expires_at=writes_until)
        if await self._index.document(bank, document_id) is not None:
            return Transient("INDEX_STILL_HOLDS_DOCUMENT")
        return Deleted()
