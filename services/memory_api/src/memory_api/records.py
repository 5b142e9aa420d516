"""What operations and stores speak of: plain records, no transport and no driver in them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Asker:
    """For whom a statement runs: the tenant, and what narrows it to this session (I3, I4)."""

    company: str
    user: str
    bot: str
    sources: frozenset[str]


class IndexState(Enum):
    PENDING = "pending"
    INDEXED = "indexed"
    FAILED = "failed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory as PostgreSQL has it now. ``text`` is None once forgotten; times are UTC."""

    memory_id: UUID
    version: int
    text: str | None
    team: str | None
    source: str | None
    only_bot: str | None
    recorded_at: datetime
    index_state: IndexState
    index_state_at: datetime
    index_failure_reason: str | None

    @property
    def etag(self) -> str:
        """Changes whenever the memory changes; equal for equal states (AIP-154)."""
        return etag_of(self.memory_id, self.version)


def etag_of(memory_id: UUID, version: int) -> str:
    """The etag of one version of one memory: 16 hexadecimal digits."""
    return hashlib.sha256(f"{memory_id}:{version}".encode()).hexdigest()[:16]


class ForgetState(Enum):
    STOPPED_USE = "stopped_use"
    CLEARING = "clearing"
    CLEARED = "cleared"


class ForgetCause(Enum):
    REQUESTED = "requested"
    SOURCE_REVOKED = "source_revoked"


@dataclass(frozen=True, slots=True)
class Clearance:
    """What is proven of one domain: how many of the forget's memories are gone from it."""

    domain: str
    cleared_count: int
    probed_at: datetime | None
    pending_reason: str | None


@dataclass(frozen=True, slots=True)
class Forget:
    """One decision to forget and its progress."""

    forget_id: UUID
    state: ForgetState
    cause: ForgetCause
    stopped_use_at: datetime
    cleared_at: datetime | None
    memory_count: int
    clearances: tuple[Clearance, ...]


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """One memory to forget; with an etag, only if it still has it."""

    memory_id: UUID
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Memories in order, and where the next page starts (None on the last)."""

    memories: tuple[Memory, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class Target:
    """Where the asker wants words to be kept: a source, the session's own bot alone, or neither."""

    source: str | None = None
    this_bot_only: bool = False


class ServedBy(Enum):
    INDEX = "index"
    LEXICAL = "lexical"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Recalled:
    """An answer: memories best first, which arms found them, and why fewer arms than usual."""

    memories: tuple[Memory, ...]
    served_by: ServedBy
    degraded_reason: str | None
