"""Remember: the present person's words, recorded as they are."""

from __future__ import annotations

from uuid import UUID, uuid4

from tenant_db import TenantDatabase

from memory_api.errors import MemoryNotFound, RequestIdReused, ScopeNotUsable, SourceNotFound
from memory_api.records import Asker, Memory, Target
from memory_api.store.memories import MemoryStore
from memory_api.store.requests import Result, claim_request


async def remember(
    database: TenantDatabase,
    memories: MemoryStore,
    asker: Asker,
    *,
    text: str,
    target: Target,
    request_id: UUID,
) -> Memory:
    """Records ``text`` in the scope that ``target`` asks for, once per ``request_id``.

    Memory, index entry and outbox row are one transaction (I9). A repetition returns the memory as
    it is now: one that was forgotten meanwhile stays forgotten (I7).

    Raises ``SourceNotFound`` or ``ScopeNotUsable`` where the session may not write, and
    ``RequestIdReused`` if the id stands for other content.
    """
    memory_id = uuid4()
    async with database.of(asker.company, asker.user) as connection:
        earlier = await claim_request(connection, asker, request_id, Result(memory_id=memory_id))
        if earlier is None:
            scope = await memories.usable_scope(connection, asker, target)
            if scope is None:
                raise SourceNotFound if target.source else ScopeNotUsable
            await memories.record(connection, asker, memory_id=memory_id, scope=scope, text=text)
        elif earlier.memory_id is None:
            raise RequestIdReused
        else:
            memory_id = earlier.memory_id
        memory = (await memories.read(asker, [memory_id], connection)).get(memory_id)
        if memory is None:
            # Recorded by an earlier use of this id in a scope that this session may not see.
            raise MemoryNotFound
    recorded_for = Target(memory.source, this_bot_only=memory.only_bot is not None)
    if recorded_for != target or (memory.text is not None and memory.text != text):
        raise RequestIdReused
    return memory
