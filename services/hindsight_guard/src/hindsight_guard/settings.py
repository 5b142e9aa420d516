"""Settings of the guard, and of Hindsight as far as they would undo it."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

from hindsight_guard.tokens import GuardMisconfigured, TokenVerifier, load_verifier

#: Hindsight's settings that must be as here, each with the default that would otherwise hold.
DEMANDED: Mapping[str, tuple[str, frozenset[str]]] = {
    # Default true: whole prompts would be kept for a day.
    "HINDSIGHT_API_LLM_TRACE_ENABLED": ("true", frozenset({"false"})),
    # Default 0, for ever: finished operations would keep their payloads.
    "HINDSIGHT_API_OPERATION_RETENTION_DAYS": ("0", frozenset({"1"})),
    "HINDSIGHT_API_AUDIT_LOG_ENABLED": ("false", frozenset({"false"})),
    "HINDSIGHT_API_MCP_ENABLED": ("true", frozenset({"false"})),
    # Info logs the beginning of every question.
    "HINDSIGHT_API_LOG_LEVEL": ("info", frozenset({"warning", "error", "critical"})),
    "HINDSIGHT_API_TENANT_EXTENSION": ("", frozenset({"hindsight_guard.tenant:GuardTenantExtension"})),
    "HINDSIGHT_API_OPERATION_VALIDATOR_EXTENSION": (
        "",
        frozenset({"hindsight_guard.validator:GuardOperationValidator"}),
    ),
    # The one schema that the tenant extension names.
    "HINDSIGHT_API_DATABASE_SCHEMA": ("public", frozenset({"public"})),
    # What carries content out of the process or keeps it where no clearance looks (I8).
    "HINDSIGHT_API_OTEL_TRACES_ENABLED": ("false", frozenset({"false"})),
    "HINDSIGHT_API_WEBHOOK_URL": ("", frozenset({""})),
    "HINDSIGHT_API_LLM_DEBUG_DUMP_4XX": ("false", frozenset({"false"})),
    # Would give every new bank settings, and texts for a model, that nobody of ours chose (I15).
    "HINDSIGHT_API_DEFAULT_BANK_TEMPLATE": ("", frozenset({""})),
}

#: Seconds between two runs of what makes the retention above true; 0 would switch it off.
_CLEANUP_INTERVAL = "HINDSIGHT_API_OPERATION_CLEANUP_INTERVAL_SECONDS"
_LONGEST_CLEANUP_INTERVAL_S = 3600

# Code that Hindsight would load beside ours: ways in, ways out, other stores. Named alike, but no code:
_NO_CODE = frozenset({"HINDSIGHT_API_VECTOR_EXTENSION", "HINDSIGHT_API_TEXT_SEARCH_EXTENSION"})

_LONGEST_LIFETIME_S = 300


def check_hindsight_settings(environment: Mapping[str, str]) -> None:
    """Raises ``GuardMisconfigured`` naming the first setting of Hindsight that is unsafe."""
    for name, (default, accepted) in DEMANDED.items():
        if environment.get(name, default).lower() not in {value.lower() for value in accepted}:
            raise GuardMisconfigured(f"{name} must be {' or '.join(sorted(accepted)) or 'unset'}")
    for name in sorted(environment.keys() - DEMANDED.keys() - _NO_CODE):
        if name.startswith("HINDSIGHT_API_") and name.endswith("_EXTENSION") and environment[name]:
            raise GuardMisconfigured(f"{name} must be unset")
    interval = environment.get(_CLEANUP_INTERVAL) or "900"
    if not (interval.isdecimal() and 0 < int(interval[:9]) <= _LONGEST_CLEANUP_INTERVAL_S):
        raise GuardMisconfigured(f"{_CLEANUP_INTERVAL} must be 1 to {_LONGEST_CLEANUP_INTERVAL_S}")


@functools.cache
def verifier_from_environment() -> TokenVerifier:
    """The process's verifier: ``HINDSIGHT_GUARD_ISSUERS_FILE``, ``…_AUDIENCE`` (default ``hindsight``) and
    ``…_MAX_LIFETIME_S`` (default 300)."""
    file = os.environ.get("HINDSIGHT_GUARD_ISSUERS_FILE")
    if not file:
        raise GuardMisconfigured("HINDSIGHT_GUARD_ISSUERS_FILE is not set")
    try:
        lifetime_s = int(os.environ.get("HINDSIGHT_GUARD_MAX_LIFETIME_S", "300"))
    except ValueError:
        raise GuardMisconfigured("HINDSIGHT_GUARD_MAX_LIFETIME_S is not a number") from None
    if not 0 < lifetime_s <= _LONGEST_LIFETIME_S:
        raise GuardMisconfigured(f"HINDSIGHT_GUARD_MAX_LIFETIME_S must be 1 to {_LONGEST_LIFETIME_S}")
    return load_verifier(Path(file), os.environ.get("HINDSIGHT_GUARD_AUDIENCE", "hindsight"), lifetime_s)


def listener(environment: Mapping[str, str]) -> dict[str, str | int]:
    """uvicorn's arguments: ``HINDSIGHT_GUARD_HOST`` (an address, default 127.0.0.1), ``…_PORT`` (default
    8888), ``…_TLS_CERTIFICATE_FILE`` and ``…_TLS_KEY_FILE``, without which only loopback is served.
    """
    host = environment.get("HINDSIGHT_GUARD_HOST", "127.0.0.1")
    try:
        loopback = ip_address(host).is_loopback
        port = int(environment.get("HINDSIGHT_GUARD_PORT", "8888"))
    except ValueError:
        raise GuardMisconfigured("HINDSIGHT_GUARD_HOST or HINDSIGHT_GUARD_PORT is none") from None
    certificate = environment.get("HINDSIGHT_GUARD_TLS_CERTIFICATE_FILE")
    key = environment.get("HINDSIGHT_GUARD_TLS_KEY_FILE")
    if bool(certificate) != bool(key):
        raise GuardMisconfigured(
            "HINDSIGHT_GUARD_TLS_CERTIFICATE_FILE and HINDSIGHT_GUARD_TLS_KEY_FILE go together"
        )
    if certificate and key:
        return {"host": host, "port": port, "ssl_certfile": certificate, "ssl_keyfile": key}
    if not loopback:
        raise GuardMisconfigured("HINDSIGHT_GUARD_HOST must be loopback without TLS")
    return {"host": host, "port": port}
