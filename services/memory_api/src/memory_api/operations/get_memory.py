"""GetMemory: one memory under the authorisation of this moment."""

from __future__ import annotations

from uuid import UUID

from memory_api.errors import MemoryNotFound
from memory_api.records import Asker, Memory
from memory_api.store.memories import MemoryStore


async def get_memory(memories: MemoryStore, asker: Asker, memory_id: UUID) -> Memory:
    """The memory, without text if forgotten. Raises ``MemoryNotFound`` if the asker may not know of it."""
    memory = (await memories.read(asker, [memory_id])).get(memory_id)
    if memory is None:
        raise MemoryNotFound
    return memory
