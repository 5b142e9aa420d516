"""Scopes whose source was revoked: forgetting what came from it, a bounded number at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from tenant_db import TenantDatabase, collect, load_statements

_SQL = load_statements(Path(__file__).with_name("revocations.sql"))


@dataclass(frozen=True, slots=True)
class RevokedScope:
    """A scope that nobody can use any more and that may still hold words."""

    scope_id: UUID
    company: str
    user: str


class RevocationStore:
    """Revoked scopes of all tenants; their memories one tenant at a time."""

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def any(self) -> RevokedScope | None:
        """Some scope that is not erased yet."""
        async with self._database.crossing_tenants() as connection:
            row = await _SQL.any_revoked(connection)
        return None if row is None else RevokedScope(row["scope_id"], row["company_id"], row["user_id"])

    async def erase_some(self, scope: RevokedScope, *, limit: int) -> int | None:
        """Forgets at most ``limit`` memories of the scope, in one forget, and says how many.

        0 means that nothing is left and the scope is done; None that another daemon is at it. Forget, items,
        erased words, outbox rows and index entries are one transaction (I6), as when their owner asks.
        """
        tenant = {"company": scope.company, "person": scope.user}
        async with self._database.of(scope.company, scope.user) as connection:
            if not await _SQL.lock_scope(connection, scope_id=scope.scope_id):
                return None
            ids = [
                row["memory_id"]
                for row in await collect(
                    _SQL.lock_active(connection, scope_id=scope.scope_id, row_limit=limit)
                )
            ]
            if not ids:
                await _SQL.mark_erased(connection, scope_id=scope.scope_id)
                return 0
            forget_id = uuid4()
            await _SQL.begin_forget(connection, forget_id=forget_id, scope_id=scope.scope_id, **tenant)
            await _SQL.insert_items(connection, forget_id=forget_id, memory_ids=ids, **tenant)
            await _SQL.erase(connection, memory_ids=ids)
            await _SQL.enqueue(connection, memory_ids=ids)
            await _SQL.await_deletion(connection, memory_ids=ids)
            return len(ids)
