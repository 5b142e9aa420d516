"""Every error that an operation may raise. ``status.py`` maps each to what a client sees."""

from __future__ import annotations

from datetime import timedelta


class DomainError(Exception):
    """Something a caller can be told. The text is fixed; nothing of the request is in it (I13)."""

    reason: str
    text: str

    def __init__(self) -> None:
        super().__init__(self.text)


class InvalidRequest(DomainError):
    """Fields break the contract. ``violations`` are (field path, what the rule says)."""

    reason = "INVALID_REQUEST"
    text = "The request breaks the contract."

    def __init__(self, violations: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__()
        self.violations = violations


class PageTokenInvalid(InvalidRequest):
    reason = "PAGE_TOKEN_INVALID"
    text = "The page token is not one of this list."

    def __init__(self) -> None:
        super().__init__((("page_token", "is not one of this list"),))


class NotFound(DomainError):
    """It does not exist, or the caller may not know that it does: the same answer for both."""


class MemoryNotFound(NotFound):
    reason = "MEMORY_NOT_FOUND"
    text = "No such memory."


class ForgetNotFound(NotFound):
    reason = "FORGET_NOT_FOUND"
    text = "No such forget."


class SourceNotFound(NotFound):
    reason = "SOURCE_NOT_FOUND"
    text = "No such source."


class ScopeNotUsable(NotFound):
    reason = "SCOPE_NOT_USABLE"
    text = "This session may not keep anything there."


class RequestIdReused(DomainError):
    reason = "REQUEST_ID_REUSED"
    text = "The request id was used for another request."


class EtagMismatch(DomainError):
    reason = "ETAG_MISMATCH"
    text = "The memory has changed since its etag was read."


class FailedPrecondition(DomainError):
    """The facts are not such that this could be done. ``metadata`` says what they are: counts only."""

    def __init__(self, **metadata: int) -> None:
        super().__init__()
        self.metadata = {name: str(value) for name, value in metadata.items()}


class RevisionGap(FailedPrecondition):
    """``current_revision`` is the one that the batch should have started from."""

    reason = "REVISION_GAP"
    text = "The batch does not start from the current revision."


class DanglingReference(FailedPrecondition):
    reason = "DANGLING_REFERENCE"
    text = "A fact names a member, team, bot or source that is not there."


class SnapshotRevokesSources(FailedPrecondition):
    """``source_count`` sources would be revoked."""

    reason = "SNAPSHOT_REVOKES_SOURCES"
    text = "The snapshot would revoke sources, and does not say that it may."


class RevisionReused(DomainError):
    reason = "REVISION_REUSED"
    text = "This revision was applied with other content."


class Retryable(DomainError):
    """Nothing was decided; the same request may be sent again after ``retry_after``."""

    retry_after: timedelta


class StoreConflict(Retryable):
    reason = "CONCURRENT_CHANGE"
    text = "Another request changed the same memory at the same time."
    retry_after = timedelta(milliseconds=50)


class StoreUnavailable(Retryable):
    reason = "STORE_UNAVAILABLE"
    text = "The authority does not answer."
    retry_after = timedelta(seconds=1)
