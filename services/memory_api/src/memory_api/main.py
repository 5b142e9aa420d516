"""memory_api: the only place where its parts are put together."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import grpc
import structlog
from authz import ConfigurationError, IdentityVerifier, parse_issuers
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from hindsight_index import BankTokenSigner, HindsightIndex
from openbot.memory.v1 import memory_service_pb2, memory_service_pb2_grpc
from opentelemetry.instrumentation.grpc import aio_server_interceptor
from service_process import run_service
from tenant_db import DatabaseError, TenantDatabase

from memory_api.health import Health
from memory_api.index_arm import IndexArm
from memory_api.interceptors.failures import Failures
from memory_api.interceptors.identity import Identity
from memory_api.interceptors.limits import SIZE_OPTIONS, Limits
from memory_api.interceptors.validation import Validation
from memory_api.servicer import MemoryServicer
from memory_api.settings import Settings

_log = structlog.get_logger()


def main() -> int:
    """Runs the service until SIGTERM or SIGINT. Returns the exit status: 2 if it cannot start."""
    return run_service("memory_api", Settings, serve, speaking=(ConfigurationError, DatabaseError))


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Starts everything, serves until ``stop``, then drains."""
    verifier = IdentityVerifier(
        parse_issuers(settings.identity_file.read_text(encoding="utf-8")),
        audience=settings.audience,
        leeway=timedelta(seconds=settings.leeway_s),
    )
    signer = BankTokenSigner(settings.bank_token_key_file.read_bytes(), issuer=settings.bank_token_issuer)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            TenantDatabase(
                settings.database_url.get_secret_value(),
                role="memory_api",
                max_connections=settings.database_max_connections,
                statement_timeout_s=settings.statement_timeout_s,
                application_name="memory_api",
            )
        )
        index = await stack.enter_async_context(
            HindsightIndex(settings.index_url, signer, ca_file=settings.index_ca_file)
        )
        health = Health(database)
        server = grpc.aio.server(
            interceptors=[
                Limits(max_call_s=settings.max_call_s),  # first: bounds everything below
                aio_server_interceptor(),  # sees every outcome, refusals included
                Failures(),  # turns what is raised below into a status
                Identity(verifier),  # before anything of the request is looked at
                Validation(),  # last: a servicer sees valid requests of known callers only
            ],
            options=SIZE_OPTIONS,
            maximum_concurrent_rpcs=settings.max_concurrent_calls,
        )
        arm = IndexArm(index, timeout_s=settings.index_timeout_s)
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(
            MemoryServicer(database, arm, max_call_s=settings.max_call_s), server
        )
        health_pb2_grpc.add_HealthServicer_to_server(health.servicer, server)
        if settings.reflection:
            reflection.enable_server_reflection(
                (
                    memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name,
                    health_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
                    reflection.SERVICE_NAME,
                ),
                server,
            )
        _listen(server, settings)
        await server.start()
        _log.info("serving", host=settings.host, port=settings.port)
        watching = asyncio.create_task(health.watch())
        await stop.wait()
        _log.info("draining")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await health.drain()
        await server.stop(settings.drain_s)


def _listen(server: grpc.aio.Server, settings: Settings) -> None:
    address = f"{settings.host}:{settings.port}"
    if settings.tls_certificate_file and settings.tls_key_file:
        client_ca = settings.tls_client_ca_file.read_bytes() if settings.tls_client_ca_file else None
        credentials = grpc.ssl_server_credentials(
            [(settings.tls_key_file.read_bytes(), settings.tls_certificate_file.read_bytes())],
            root_certificates=client_ca,
            require_client_auth=client_ca is not None,
        )
        bound = server.add_secure_port(address, credentials)
    else:
        bound = server.add_insecure_port(address)
    if not bound:
        raise OSError("the address cannot be bound")
