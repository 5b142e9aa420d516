"""MemoryService: from a validated request to an operation, and back. Decides nothing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import grpc
from openbot.memory.v1 import forget_pb2, memory_pb2, memory_service_pb2, memory_service_pb2_grpc
from tenant_db import TenantDatabase

from memory_api import presentation
from memory_api.index_arm import IndexArm
from memory_api.interceptors.identity import current_principal
from memory_api.operations.forget_memories import forget_memories
from memory_api.operations.get_forget import get_forget
from memory_api.operations.get_memory import get_memory
from memory_api.operations.list_memories import list_memories
from memory_api.operations.recall import recall
from memory_api.operations.remember import remember
from memory_api.records import Asker, ForgetTarget, Target
from memory_api.store.forgets import ForgetStore
from memory_api.store.memories import MemoryStore
from memory_api.store.recall import RecallStore

Context = grpc.aio.ServicerContext[Any, Any]


class MemoryServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """The RPCs of ``openbot.memory.v1.MemoryService``."""

    def __init__(self, database: TenantDatabase, index: IndexArm, *, max_call_s: float) -> None:
        self._database = database
        self._index = index
        self._max_call_s = max_call_s
        self._memories = MemoryStore(database)
        self._recalls = RecallStore(database)
        self._forgets = ForgetStore(database)

    async def Remember(  # noqa: N802 - the contract's name
        self, request: memory_service_pb2.RememberRequest, context: Context
    ) -> memory_service_pb2.RememberResponse:
        memory = await remember(
            self._database,
            self._memories,
            _asker(),
            text=request.text,
            target=Target(presentation.source_of(request.source), this_bot_only=request.this_bot_only),
            request_id=UUID(request.request_id),
        )
        return memory_service_pb2.RememberResponse(memory=presentation.memory(memory))

    async def Recall(  # noqa: N802
        self, request: memory_service_pb2.RecallRequest, context: Context
    ) -> memory_service_pb2.RecallResponse:
        left_s = context.time_remaining()
        recalled = await recall(
            self._recalls,
            self._memories,
            self._index,
            _asker(),
            query=request.query,
            limit=request.limit,
            time_left_s=self._max_call_s if left_s is None else min(left_s, self._max_call_s),
        )
        return presentation.recall_response(recalled)

    async def GetMemory(  # noqa: N802
        self, request: memory_service_pb2.GetMemoryRequest, context: Context
    ) -> memory_pb2.Memory:
        return presentation.memory(
            await get_memory(self._memories, _asker(), presentation.id_of(request.name))
        )

    async def ListMemories(  # noqa: N802
        self, request: memory_service_pb2.ListMemoriesRequest, context: Context
    ) -> memory_service_pb2.ListMemoriesResponse:
        page = await list_memories(
            self._memories, _asker(), page_size=request.page_size, page_token=request.page_token
        )
        return memory_service_pb2.ListMemoriesResponse(
            memories=[presentation.memory(each) for each in page.memories],
            next_page_token=page.next_page_token or "",
        )

    async def ForgetMemories(  # noqa: N802
        self, request: memory_service_pb2.ForgetMemoriesRequest, context: Context
    ) -> forget_pb2.Forget:
        forget = await forget_memories(
            self._database,
            self._forgets,
            _asker(),
            targets=[
                ForgetTarget(presentation.id_of(target.name), target.etag or None)
                for target in request.targets
            ],
            request_id=UUID(request.request_id),
        )
        return presentation.forget(forget)

    async def GetForget(  # noqa: N802
        self, request: memory_service_pb2.GetForgetRequest, context: Context
    ) -> forget_pb2.Forget:
        return presentation.forget(
            await get_forget(self._forgets, _asker(), presentation.id_of(request.name))
        )


def _asker() -> Asker:
    principal = current_principal()
    return Asker(principal.company, principal.user, principal.bot, principal.sources)
