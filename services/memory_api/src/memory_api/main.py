"""memory_api: the only place where its parts are put together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta

import grpc
import structlog
from authz import ConfigurationError, IdentityVerifier, parse_issuers
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from hindsight_index import BankTokenSigner, HindsightIndex
from openbot.memory.v1 import (
    authority_service_pb2,
    authority_service_pb2_grpc,
    memory_service_pb2,
    memory_service_pb2_grpc,
)
from opentelemetry.instrumentation.grpc import aio_server_interceptor
from pydantic import SecretStr
from service_process import run_service
from tenant_db import DatabaseError, TenantDatabase

from memory_api.allowance import Allowance
from memory_api.authority_servicer import AuthorityServicer
from memory_api.health import Health
from memory_api.index_arm import IndexArm
from memory_api.interceptors.callers import Callers
from memory_api.interceptors.failures import Failures
from memory_api.interceptors.identity import Identity
from memory_api.interceptors.limits import Limits
from memory_api.interceptors.sizes import APPLY_AUTHORITY, SIZE_OPTIONS
from memory_api.interceptors.validation import Validation
from memory_api.servicer import MemoryServicer
from memory_api.settings import Settings
from memory_api.tls import TlsFiles

# Few are needed: one writer of a company at a time.
_AUTHORITY_CONNECTIONS = 4
_CLOSING_S = 5.0
_CANCELLING_S = 2.0

_log = structlog.get_logger()


def main() -> int:
    """Runs the service until SIGTERM or SIGINT. Returns the exit status: 2 if it cannot start."""
    return run_service("memory_api", Settings, serve, speaking=(ConfigurationError, DatabaseError))


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Starts everything, serves until ``stop``, then drains.

    Returns at most ``drain_s`` and seven seconds after ``stop``, whatever does not answer, such as a
    database that takes connections and says nothing.
    """
    serving, stopping = asyncio.create_task(_serve(settings, stop)), asyncio.create_task(stop.wait())
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    await asyncio.wait((serving,), timeout=settings.drain_s + _CLOSING_S)
    if serving.done():
        return serving.result()
    _log.warning("closing was cut off", after_s=settings.drain_s + _CLOSING_S)
    serving.cancel()
    await asyncio.wait((serving,), timeout=_CANCELLING_S)


async def _serve(settings: Settings, stop: asyncio.Event) -> None:
    verifier = IdentityVerifier(
        parse_issuers(settings.identity_file.read_text(encoding="utf-8")),
        audience=settings.audience,
        leeway=timedelta(seconds=settings.leeway_s),
    )
    with _blaming("MEMORY_API_BANK_TOKEN_KEY_FILE", "is not a PEM Ed25519 private key"):
        signer = BankTokenSigner(settings.bank_token_key_file.read_bytes(), issuer=settings.bank_token_issuer)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(verifier)
        database = await _database(stack, settings)
        with _blaming("MEMORY_API_INDEX_URL", "is neither HTTPS nor plain HTTP of a loopback address"):
            client = HindsightIndex(settings.index_url, signer, ca_file=settings.index_ca_file)
        index = await stack.enter_async_context(client)
        health = Health(database)
        server = grpc.aio.server(
            interceptors=[
                Limits(  # first: bounds everything below
                    max_call_s=settings.max_call_s,
                    max_concurrent_calls=settings.max_concurrent_calls,
                    max_call_s_of={APPLY_AUTHORITY: settings.authority_max_call_s},
                ),
                aio_server_interceptor(),  # sees every outcome, refusals included
                Failures(),  # turns what is raised below into a status
                Identity(verifier),  # before anything of the request is looked at
                Callers(  # as soon as the caller is known, and before work is done for it
                    workload=Allowance(
                        at_once=settings.caller_max_concurrent_calls,
                        per_second=settings.caller_calls_per_second,
                    ),
                    company=Allowance(
                        at_once=settings.company_max_concurrent_calls,
                        per_second=settings.company_calls_per_second,
                    ),
                ),
                Validation(),  # last: a servicer sees valid requests of known callers only
            ],
            options=(
                *SIZE_OPTIONS,
                # A second process on the same port is a mistake, not a share of the load.
                ("grpc.so_reuseport", 0),
                # gRPC reads requests before anything above counts them.
                ("grpc.max_concurrent_streams", 256),
            ),
        )
        arm = IndexArm(index, timeout_s=settings.index_timeout_s)
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(
            MemoryServicer(database, arm, max_call_s=settings.max_call_s), server
        )
        if settings.authority_database_url is not None:
            writer = await _authority_database(stack, settings, settings.authority_database_url)
            authority_service_pb2_grpc.add_AuthorityServiceServicer_to_server(
                AuthorityServicer(writer), server
            )
        health_pb2_grpc.add_HealthServicer_to_server(health.servicer, server)
        if settings.reflection:
            reflection.enable_server_reflection(
                (
                    memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name,
                    authority_service_pb2.DESCRIPTOR.services_by_name["AuthorityService"].full_name,
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


async def _database(stack: AsyncExitStack, settings: Settings) -> TenantDatabase:
    with _naming("MEMORY_API_DATABASE_URL"):
        return await stack.enter_async_context(
            TenantDatabase(
                settings.database_url.get_secret_value(),
                role="memory_api",
                max_connections=settings.database_max_connections,
                statement_timeout_s=settings.statement_timeout_s,
                application_name="memory_api",
            )
        )


async def _authority_database(stack: AsyncExitStack, settings: Settings, url: SecretStr) -> TenantDatabase:
    with _naming("MEMORY_API_AUTHORITY_DATABASE_URL"):
        return await stack.enter_async_context(
            TenantDatabase(
                url.get_secret_value(),
                role="authority_writer",
                max_connections=_AUTHORITY_CONNECTIONS,
                statement_timeout_s=settings.authority_max_call_s,
                application_name="memory_api",
            )
        )


@contextmanager
def _naming(variable: str) -> Iterator[None]:
    """Says which database it is that cannot be used."""
    try:
        yield
    except DatabaseError as error:
        raise ConfigurationError(variable, str(error)) from None


def _listen(server: grpc.aio.Server, settings: Settings) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"{host}:{settings.port}"
    credentials = _tls(settings)
    # gRPC tells its reasons to nobody.
    with _blaming("MEMORY_API_PORT", "cannot be bound on MEMORY_API_HOST"):
        if credentials is None:
            server.add_insecure_port(address)
        else:
            server.add_secure_port(address, credentials)


def _tls(settings: Settings) -> grpc.ServerCredentials | None:
    if settings.tls_certificate_file is None or settings.tls_key_file is None:
        return None
    return TlsFiles(
        settings.tls_certificate_file, settings.tls_key_file, settings.tls_client_ca_file
    ).credentials()


@contextmanager
def _blaming(variable: str, problem: str) -> Iterator[None]:
    """Names the setting in place of whatever a library says about its value."""
    try:
        yield
    except (ValueError, RuntimeError):
        raise ConfigurationError(variable, problem) from None
