"""ForgetMemories: stop use now, clear in the background."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from tenant_db import TenantDatabase

from memory_api.errors import EtagMismatch, ForgetNotFound, MemoryNotFound, RequestIdReused
from memory_api.records import Asker, Forget, ForgetTarget, etag_of
from memory_api.store.forgets import ForgetStore
from memory_api.store.requests import Result, claim_request


async def forget_memories(
    database: TenantDatabase,
    forgets: ForgetStore,
    asker: Asker,
    *,
    targets: Sequence[ForgetTarget],
    request_id: UUID,
) -> Forget:
    """Erases the words of every target and returns the Forget to watch, all or nothing (I6).

    The acknowledgement is the commit: from then on no path returns them. A repetition returns the
    same Forget as it is now.

    Raises ``MemoryNotFound`` if any target may not be known to the asker, ``EtagMismatch`` if one
    has changed, ``RequestIdReused`` if the id stands for another request.
    """
    wanted = {target.memory_id: target.etag for target in targets}
    forget_id = uuid4()
    async with database.of(asker.company, asker.user) as connection:
        earlier = await claim_request(connection, asker, request_id, Result(forget_id=forget_id))
        if earlier is None:
            locked = await forgets.lock_usable(connection, asker, wanted.keys())
            if locked.keys() != wanted.keys():
                raise MemoryNotFound
            if any(etag and etag != etag_of(found, locked[found]) for found, etag in wanted.items()):
                raise EtagMismatch
            await forgets.stop_use(connection, asker, forget_id=forget_id, memory_ids=wanted.keys())
        elif earlier.forget_id is None:
            raise RequestIdReused
        else:
            forget_id = earlier.forget_id
            if await forgets.item_ids(connection, forget_id) != wanted.keys():
                raise RequestIdReused
        forget = await forgets.read(asker, forget_id, connection)
    if forget is None:
        raise ForgetNotFound
    return forget
