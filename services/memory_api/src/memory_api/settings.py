"""Settings of memory_api, from environment variables ``MEMORY_API_*``."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Self

from pydantic import Field, FilePath, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict
from service_process import ServiceSettings


class Settings(ServiceSettings):
    """Verified before the first request. ``database_url`` logs in as a member of the role memory_api."""

    model_config = SettingsConfigDict(env_prefix="MEMORY_API_")

    authority_database_url: SecretStr | None = Field(
        None,
        description="PostgreSQL URL of a login that is a member of the role authority_writer. Set: control "
        "planes may call AuthorityService here.",
    )
    authority_max_call_s: float = Field(
        60,
        gt=0,
        le=300,
        description="Longest ApplyAuthority may take, in seconds: a first snapshot of a large company does.",
    )
    database_max_connections: int = Field(10, ge=1, le=200, description="Size of the connection pool.")
    statement_timeout_s: float = Field(5, gt=0, le=60, description="Longest a statement may run, in seconds.")

    host: str = Field("0.0.0.0", description="Address to listen on.")  # noqa: S104 - a pod's own address
    port: int = Field(50051, ge=1, le=65535, description="Port to listen on.")
    tls_certificate_file: FilePath | None = Field(
        None,
        description="PEM certificate chain of the server; read again when it changes, as the two below are.",
    )
    tls_key_file: FilePath | None = Field(None, description="PEM private key of the server.")
    tls_client_ca_file: FilePath | None = Field(
        None, description="PEM authorities of client certificates. Set: clients must present one (mTLS)."
    )
    insecure_loopback: bool = Field(False, description="Serve plain text; only on a loopback address.")
    reflection: bool = Field(False, description="Serve gRPC reflection (development).")
    max_call_s: float = Field(10, gt=0, le=60, description="Longest a call may take, in seconds.")
    drain_s: float = Field(20, ge=0, le=300, description="How long running calls may finish at the end.")
    max_concurrent_calls: int = Field(
        200, ge=1, description="Calls served at once; more get RESOURCE_EXHAUSTED."
    )
    # Every limit of callers is one replica's own: behind a balancer a caller has up to as many times as much.
    caller_max_concurrent_calls: int = Field(
        100,
        ge=1,
        description="Calls of one workload served at once by a replica. Keep it below "
        "MEMORY_API_MAX_CONCURRENT_CALLS, or one workload can use up all of them.",
    )
    caller_calls_per_second: int = Field(
        500, ge=1, le=100_000, description="Calls that one workload may start a second on a replica."
    )
    company_max_concurrent_calls: int = Field(
        50,
        ge=1,
        description="Calls of one workload for the same company served at once by a replica. Keep it below "
        "MEMORY_API_CALLER_MAX_CONCURRENT_CALLS, or one company can use up a shared bot runtime.",
    )
    company_calls_per_second: int = Field(
        200,
        ge=1,
        le=100_000,
        description="Calls that one workload may start a second for the same company on a replica.",
    )

    identity_file: FilePath = Field(description="JSON document of issuers and services (docs/identity.md).")
    audience: str = Field(min_length=1, description="The `aud` that tokens must contain.")
    leeway_s: float = Field(30, ge=0, le=120, description="Clock difference allowed in tokens, in seconds.")

    index_timeout_s: float = Field(1.5, gt=0, le=30, description="Longest the index may take, in seconds.")
    bank_token_issuer: str = Field("openbot-memory-api", description="Issuer name in one-bank tokens.")

    @model_validator(mode="after")
    def _transport_is_safe(self) -> Self:
        if (self.tls_certificate_file is None) != (self.tls_key_file is None):
            raise ValueError("MEMORY_API_TLS_CERTIFICATE_FILE and MEMORY_API_TLS_KEY_FILE go together")
        if self.tls_client_ca_file and not self.tls_certificate_file:
            raise ValueError("MEMORY_API_TLS_CLIENT_CA_FILE needs MEMORY_API_TLS_CERTIFICATE_FILE")
        if self.insecure_loopback == (self.tls_certificate_file is not None):
            raise ValueError("set either MEMORY_API_TLS_CERTIFICATE_FILE or MEMORY_API_INSECURE_LOOPBACK")
        if self.insecure_loopback and not _is_loopback(self.host):
            raise ValueError("MEMORY_API_INSECURE_LOOPBACK needs MEMORY_API_HOST to be a loopback address")
        return self


def _is_loopback(host: str) -> bool:
    # A name could resolve to anything, later.
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
