"""ListMemories: active memories, newest first, in pages (AIP-158)."""

from __future__ import annotations

import base64
import binascii
import hashlib
from datetime import UTC, datetime, timedelta
from uuid import UUID

from memory_api.errors import PageTokenInvalid
from memory_api.records import Asker, Page
from memory_api.store.memories import MemoryStore

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 200

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


async def list_memories(memories: MemoryStore, asker: Asker, *, page_size: int, page_token: str) -> Page:
    """One page. ``page_size`` 0 means 50 and is cut at 200; ``page_token`` "" means the first page.

    Raises ``PageTokenInvalid`` for a token that is not of this person's list.
    """
    size = min(page_size or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
    after = _decode(asker, page_token) if page_token else None
    found = await memories.list_active(asker, after=after, limit=size + 1)
    page = tuple(found[:size])
    more = len(found) > size
    return Page(page, _encode(asker, page[-1].recorded_at, page[-1].memory_id) if more else None)


def _encode(asker: Asker, recorded_at: datetime, memory_id: UUID) -> str:
    microseconds = (recorded_at - _EPOCH) // _MICROSECOND
    position = microseconds.to_bytes(8, "big") + memory_id.bytes
    return _spelled(_mark(asker, position) + position)


def _decode(asker: Asker, token: str) -> tuple[datetime, UUID]:
    try:
        raw = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise PageTokenInvalid from None
    mark, position = raw[:8], raw[8:]
    # Base64 has several spellings of the same bytes; one of them was given.
    if len(position) != 24 or _spelled(raw) != token or mark != _mark(asker, position):
        raise PageTokenInvalid
    try:
        recorded_at = _EPOCH + int.from_bytes(position[:8], "big") * _MICROSECOND
    except OverflowError:
        raise PageTokenInvalid from None
    return recorded_at, UUID(bytes=position[8:])


def _spelled(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode()


def _mark(asker: Asker, position: bytes) -> bytes:
    # Finds mistakes, such as another person's token; it protects nothing. What a page holds is
    # decided by the statement that reads it.
    whose = f"{asker.company}\0{asker.user}\0".encode()
    return hashlib.sha256(whose + position).digest()[:8]
