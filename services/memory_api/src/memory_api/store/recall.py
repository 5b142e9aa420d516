"""What recall asks of PostgreSQL before and beside the index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from tenant_db import TenantDatabase, collect, load_statements

from memory_api.records import Asker

_SQL = load_statements(Path(__file__).with_name("recall.sql"))


@dataclass(frozen=True, slots=True)
class UsableBanks:
    """Banks, and the database's time when they were read."""

    read_at: datetime
    banks: tuple[str, ...]


class RecallStore:
    """Banks to ask, and matches by words."""

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def usable_banks(self, asker: Asker) -> UsableBanks:
        """The banks that this person, bot and session may use now and the index holds something of."""
        async with self._database.of(asker.company, asker.user) as connection:
            row = await _SQL.usable_banks(connection, bot=asker.bot, sources=sorted(asker.sources))
            return UsableBanks(row["read_at"], tuple(row["banks"]))

    async def lexical_matches(
        self, asker: Asker, query: str, *, asked_at: datetime, unanswered_banks: Collection[str], limit: int
    ) -> Sequence[UUID]:
        """Ids by shared words, best first: what was not indexed yet at ``asked_at``, before the index was
        asked, and all of ``unanswered_banks``."""
        async with self._database.of(asker.company, asker.user) as connection:
            rows = await collect(
                _SQL.lexical_matches(
                    connection,
                    bot=asker.bot,
                    sources=sorted(asker.sources),
                    query=query,
                    asked_at=asked_at,
                    unanswered_banks=sorted(unanswered_banks),
                    row_limit=limit,
                )
            )
            return [row["memory_id"] for row in rows]
