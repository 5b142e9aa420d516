"""With which settings the guard does not start."""

import pytest
from hindsight_guard.settings import check_hindsight_settings, listener
from hindsight_guard.tokens import GuardMisconfigured

SAFE = {
    "HINDSIGHT_API_LLM_TRACE_ENABLED": "false",
    "HINDSIGHT_API_OPERATION_RETENTION_DAYS": "1",
    "HINDSIGHT_API_MCP_ENABLED": "false",
    "HINDSIGHT_API_LOG_LEVEL": "WARNING",
    "HINDSIGHT_API_TENANT_EXTENSION": "hindsight_guard.tenant:GuardTenantExtension",
    "HINDSIGHT_API_OPERATION_VALIDATOR_EXTENSION": "hindsight_guard.validator:GuardOperationValidator",
}


def test_the_settings_of_our_stack_are_safe() -> None:
    check_hindsight_settings(SAFE)


@pytest.mark.parametrize("name", SAFE)
def test_what_is_unsafe_by_default_must_be_set(name: str) -> None:
    with pytest.raises(GuardMisconfigured, match=name):
        check_hindsight_settings({key: value for key, value in SAFE.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HINDSIGHT_API_LLM_TRACE_ENABLED", "true"),
        ("HINDSIGHT_API_LLM_TRACE_ENABLED", ""),
        ("HINDSIGHT_API_OPERATION_RETENTION_DAYS", "0"),
        ("HINDSIGHT_API_OPERATION_RETENTION_DAYS", "30"),
        ("HINDSIGHT_API_AUDIT_LOG_ENABLED", "true"),
        ("HINDSIGHT_API_MCP_ENABLED", "1"),
        ("HINDSIGHT_API_LOG_LEVEL", "debug"),
        ("HINDSIGHT_API_LOG_LEVEL", "info"),
        ("HINDSIGHT_API_TENANT_EXTENSION", "hindsight_api.extensions.builtin.tenant:DefaultTenantExtension"),
        ("HINDSIGHT_API_OPERATION_VALIDATOR_EXTENSION", "another.module:Validator"),
        ("HINDSIGHT_API_DATABASE_SCHEMA", "other"),
        ("HINDSIGHT_API_OTEL_TRACES_ENABLED", "true"),
        ("HINDSIGHT_API_WEBHOOK_URL", "https://somewhere.example"),
        ("HINDSIGHT_API_LLM_DEBUG_DUMP_4XX", "true"),
        ("HINDSIGHT_API_DEFAULT_BANK_TEMPLATE", '{"mission": "somewhere"}'),
        ("HINDSIGHT_API_OPERATION_CLEANUP_INTERVAL_SECONDS", "0"),
        ("HINDSIGHT_API_OPERATION_CLEANUP_INTERVAL_SECONDS", "-1"),
        ("HINDSIGHT_API_OPERATION_CLEANUP_INTERVAL_SECONDS", "99999"),
        ("HINDSIGHT_API_OPERATION_CLEANUP_INTERVAL_SECONDS", "9" * 5000),
        ("HINDSIGHT_API_OPERATION_CLEANUP_INTERVAL_SECONDS", "seldom"),
        ("HINDSIGHT_API_MEMORY_DEFENSE_EXTENSION", "another.module:Defense"),
        ("HINDSIGHT_API_FILE_STORAGE_EXTENSION", "another.module:Storage"),
        ("HINDSIGHT_API_OF_A_NEWER_VERSION_EXTENSION", "another.module:Anything"),
        ("HINDSIGHT_API_MEMORIES_EXTENSION", "another.module:Memories"),
        ("HINDSIGHT_API_LLM_REQUEST_EXTENSION", "another.module:Requests"),
        ("HINDSIGHT_API_HTTP_EXTENSION", "another.module:Routes"),
        ("HINDSIGHT_API_MCP_EXTENSION", "another.module:Tools"),
    ],
)
def test_an_unsafe_setting_is_named_and_not_quoted(name: str, value: str) -> None:
    with pytest.raises(GuardMisconfigured, match=name) as caught:
        check_hindsight_settings(SAFE | {name: value})
    assert "somewhere" not in str(caught.value)


def test_what_is_named_like_code_and_is_none_may_be_set() -> None:
    check_hindsight_settings(
        SAFE
        | {
            "HINDSIGHT_API_VECTOR_EXTENSION": "pgvector",
            "HINDSIGHT_API_TEXT_SEARCH_EXTENSION": "native",
            "HINDSIGHT_API_HTTP_EXTENSION": "",
            "HINDSIGHT_API_OPERATION_CLEANUP_INTERVAL_SECONDS": "600",
        }
    )


def test_the_listener_is_loopback_by_default() -> None:
    assert listener({}) == {"host": "127.0.0.1", "port": 8888}
    assert listener({"HINDSIGHT_GUARD_HOST": "::1", "HINDSIGHT_GUARD_PORT": "9"}) == {
        "host": "::1",
        "port": 9,
    }


def test_another_address_needs_tls() -> None:
    tls = {
        "HINDSIGHT_GUARD_HOST": "0.0.0.0",  # noqa: S104 - that is the point
        "HINDSIGHT_GUARD_TLS_CERTIFICATE_FILE": "c",
        "HINDSIGHT_GUARD_TLS_KEY_FILE": "k",
    }
    assert listener(tls)["ssl_certfile"] == "c"
    for missing in ("HINDSIGHT_GUARD_TLS_CERTIFICATE_FILE", "HINDSIGHT_GUARD_TLS_KEY_FILE"):
        with pytest.raises(GuardMisconfigured, match=missing):
            listener({name: value for name, value in tls.items() if name != missing})
    with pytest.raises(GuardMisconfigured, match="HINDSIGHT_GUARD_HOST"):
        listener({"HINDSIGHT_GUARD_HOST": "0.0.0.0"})  # noqa: S104


@pytest.mark.parametrize(
    "environment",
    [{"HINDSIGHT_GUARD_HOST": "localhost"}, {"HINDSIGHT_GUARD_HOST": ""}, {"HINDSIGHT_GUARD_PORT": "http"}],
    ids=str,
)
def test_an_address_or_port_that_is_none_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(GuardMisconfigured, match="HINDSIGHT_GUARD_HOST or HINDSIGHT_GUARD_PORT"):
        listener(environment)
