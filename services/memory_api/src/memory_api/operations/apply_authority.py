"""ApplyAuthority: the control plane's facts, in the order of their revisions."""

from __future__ import annotations

from tenant_db import DatabaseError, TenantDatabase

from memory_api.authority import (
    Applied,
    Batch,
    Changes,
    Counts,
    FactKind,
    Feed,
    Snapshot,
    difference,
    is_complete,
)
from memory_api.errors import DanglingReference, RevisionGap, RevisionReused, SnapshotRevokesSources
from memory_api.store.authority import AuthorityStore, Connection

_FOREIGN_KEY_VIOLATION = "23503"


class _OnlyValidated(Exception):
    """Rolls back what was asked to be tried only."""

    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self.counts = counts


async def apply_authority(
    database: TenantDatabase,
    store: AuthorityStore,
    company: str,
    *,
    revision: int,
    content: Batch | Snapshot,
    validate_only: bool = False,
) -> Applied:
    """Makes the facts of ``company`` what ``content`` says, all or nothing (I6).

    One writer of a company at a time. What is at or below the current revision changes nothing, except
    that a snapshot at the current one repairs what differs from it.

    Raises ``RevisionGap`` if a batch starts from another revision than the current one, ``RevisionReused``
    if the current revision was applied with other content, ``SnapshotRevokesSources`` if a snapshot leaves
    out sources without saying that it may, and ``DanglingReference`` if a fact names what is not there.
    """
    feed = Feed()
    try:
        async with database.of_company(company) as connection:
            feed = await store.lock_feed(connection)
            if _is_old(feed, revision, content):
                return Applied(feed, None)
            changes = await _changes(store, connection, feed, content)
            counts = await store.apply(connection, company, changes)
            if validate_only:
                raise _OnlyValidated(counts)
            feed = await store.advance(connection, company, revision=revision, digest=content.digest())
            return Applied(feed, counts)
    except _OnlyValidated as tried:
        return Applied(feed, tried.counts)
    except DatabaseError as error:
        if error.sqlstate == _FOREIGN_KEY_VIOLATION:
            raise DanglingReference from None
        raise


def _is_old(feed: Feed, revision: int, content: Batch | Snapshot) -> bool:
    if revision != feed.revision:
        return revision < feed.revision
    if isinstance(content, Snapshot):
        return False
    if content.digest() != feed.digest:
        raise RevisionReused
    return True


async def _changes(
    store: AuthorityStore, connection: Connection, feed: Feed, content: Batch | Snapshot
) -> Changes:
    if isinstance(content, Batch):
        if content.base_revision != feed.revision:
            raise RevisionGap(current_revision=feed.revision)
        return content.changes
    if not is_complete(content.facts):
        raise DanglingReference
    changes = difference(await store.facts(connection), content.facts)
    revoked = len(changes.removals[FactKind.SOURCE])
    if revoked and not content.revoke_missing_sources:
        raise SnapshotRevokesSources(source_count=revoked)
    return changes
