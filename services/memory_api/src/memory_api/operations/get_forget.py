"""GetForget: how far a forget has come."""

from __future__ import annotations

from uuid import UUID

from memory_api.errors import ForgetNotFound
from memory_api.records import Asker, Forget
from memory_api.store.forgets import ForgetStore


async def get_forget(forgets: ForgetStore, asker: Asker, forget_id: UUID) -> Forget:
    """The forget. Raises ``ForgetNotFound`` if the asker's person made none of this id."""
    forget = await forgets.read(asker, forget_id)
    if forget is None:
        raise ForgetNotFound
    return forget
