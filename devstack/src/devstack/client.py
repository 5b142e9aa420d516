"""A caller of MemoryService for development: one session, blocking calls over a real socket."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import grpc
from openbot.memory.v1 import forget_pb2, memory_pb2, memory_service_pb2, memory_service_pb2_grpc

from devstack.issuer import CHANNEL_GATEWAY, DevelopmentIssuer


class Session:
    """One person in one company with one bot, through the web app unless ``actor`` says otherwise. Use as
    a context manager."""

    def __init__(
        self,
        address: str,
        issuer: DevelopmentIssuer,
        *,
        user: str,
        company: str,
        bot: str,
        actor: str = CHANNEL_GATEWAY,
        **claims: Any,
    ) -> None:
        self.metadata = (
            ("authorization", f"Bearer {issuer.service_token(actor)}"),
            (
                "openbot-session",
                issuer.session_token(user=user, company=company, bot=bot, actor=actor, **claims),
            ),
        )
        self._channel = grpc.insecure_channel(address)
        self._stub = memory_service_pb2_grpc.MemoryServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()

    def remember(
        self,
        text: str,
        *,
        source: str = "",
        this_bot_only: bool = False,
        request_id: str | None = None,
    ) -> memory_pb2.Memory:
        """Remembers ``text``; ``source`` is a bare source id or empty."""
        return self._stub.Remember(
            memory_service_pb2.RememberRequest(
                text=text,
                source=f"sources/{source}" if source else "",
                this_bot_only=this_bot_only,
                request_id=request_id or str(uuid4()),
            ),
            metadata=self.metadata,
            timeout=10,
        ).memory

    def recall(self, query: str, limit: int = 0) -> memory_service_pb2.RecallResponse:
        """Recalls."""
        return self._stub.Recall(
            memory_service_pb2.RecallRequest(query=query, limit=limit), metadata=self.metadata, timeout=10
        )

    def get(self, name: str) -> memory_pb2.Memory:
        """Reads one memory by name."""
        return self._stub.GetMemory(
            memory_service_pb2.GetMemoryRequest(name=name), metadata=self.metadata, timeout=10
        )

    def list(self, page_size: int = 0, page_token: str = "") -> memory_service_pb2.ListMemoriesResponse:
        """Lists one page."""
        return self._stub.ListMemories(
            memory_service_pb2.ListMemoriesRequest(page_size=page_size, page_token=page_token),
            metadata=self.metadata,
            timeout=10,
        )

    def forget(self, *names: str, request_id: str | None = None) -> forget_pb2.Forget:
        """Forgets memories by name."""
        return self._stub.ForgetMemories(
            memory_service_pb2.ForgetMemoriesRequest(
                targets=[memory_service_pb2.ForgetMemoriesRequest.Target(name=name) for name in names],
                request_id=request_id or str(uuid4()),
            ),
            metadata=self.metadata,
            timeout=10,
        )

    def get_forget(self, name: str) -> forget_pb2.Forget:
        """Reads one forget by name."""
        return self._stub.GetForget(
            memory_service_pb2.GetForgetRequest(name=name), metadata=self.metadata, timeout=10
        )
