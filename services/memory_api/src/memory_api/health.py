"""gRPC health: liveness is the process, readiness knows the database."""

from __future__ import annotations

import asyncio

import structlog
from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio as health_aio
from tenant_db import TenantDatabase

#: ``grpc.health.v1`` service names: "" and the contract's own follow readiness.
LIVENESS = "liveness"
READINESS = ("", "readiness", "openbot.memory.v1.MemoryService")

_log = structlog.get_logger()


class Health:
    """Keeps the health servicer true to the database, asked every ``interval_s`` seconds."""

    def __init__(self, database: TenantDatabase, *, interval_s: float = 2.0) -> None:
        self.servicer = health_aio.HealthServicer()
        self._database = database
        self._interval_s = interval_s
        self._ready: bool | None = None

    async def watch(self) -> None:
        """Runs until cancelled."""
        await self.servicer.set(LIVENESS, health_pb2.HealthCheckResponse.SERVING)
        while True:
            await self._set_ready(ready=await self._database.reachable())
            await asyncio.sleep(self._interval_s)

    async def drain(self) -> None:
        """Tells balancers to send no more; liveness stays."""
        await self._set_ready(ready=False)

    async def _set_ready(self, *, ready: bool) -> None:
        if ready == self._ready:
            return
        self._ready = ready
        _log.info("readiness", ready=ready)
        status = (
            health_pb2.HealthCheckResponse.SERVING if ready else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for service in READINESS:
            await self.servicer.set(service, status)
