"""Request ids that were used, so that a retry changes nothing (AIP-155)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from tenant_db import Connection, load_statements

from memory_api.records import Asker

_SQL = load_statements(Path(__file__).with_name("requests.sql"))


@dataclass(frozen=True, slots=True)
class Result:
    """What a request makes: a memory or a forget, never both."""

    memory_id: UUID | None = None
    forget_id: UUID | None = None


async def claim_request(
    connection: Connection, asker: Asker, request_id: UUID, result: Result
) -> Result | None:
    """None for the first use of ``request_id``, which is now bound to ``result``; else what it made.

    A concurrent first use is waited for. The claim is part of the running transaction and goes
    with it, so that a refused request leaves its id free.
    """
    claimed = await _SQL.claim_request(
        connection,
        company=asker.company,
        person=asker.user,
        request_id=request_id,
        memory_id=result.memory_id,
        forget_id=result.forget_id,
    )
    if claimed:
        return None
    earlier = await _SQL.claimed_request(connection, request_id=request_id)
    return Result(memory_id=earlier["memory_id"], forget_id=earlier["forget_id"])
