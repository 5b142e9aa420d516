"""Wrong settings are refused before anything starts, by name and without their values."""

from pathlib import Path

import pytest
from memory_api.settings import Settings
from pydantic import ValidationError


@pytest.fixture
def right(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment with which the service starts in plain text on loopback."""
    file = tmp_path / "there"
    file.touch()
    for name, value in {
        "DATABASE_URL": "postgresql://u:secret@127.0.0.1/openbot",
        "HOST": "127.0.0.1",
        "INSECURE_LOOPBACK": "true",
        "IDENTITY_FILE": str(file),
        "AUDIENCE": "openbot-memory",
        "INDEX_URL": "http://127.0.0.1:9",
        "BANK_TOKEN_KEY_FILE": str(file),
    }.items():
        monkeypatch.setenv(f"MEMORY_API_{name}", value)
    return monkeypatch


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1"])
def test_plain_text_is_served_on_loopback_only_when_asked_for(right: pytest.MonkeyPatch, host: str) -> None:
    right.setenv("MEMORY_API_HOST", host)
    assert Settings().insecure_loopback


def test_an_empty_variable_counts_as_unset(right: pytest.MonkeyPatch) -> None:
    right.setenv("MEMORY_API_SPANS_FILE", "")
    right.setenv("MEMORY_API_TLS_CLIENT_CA_FILE", "")
    assert Settings().spans_file is None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"AUDIENCE": ""}, "audience"),
        ({"HOST": "0.0.0.0"}, "MEMORY_API_INSECURE_LOOPBACK"),  # noqa: S104 - what is refused
        ({"HOST": "::"}, "MEMORY_API_INSECURE_LOOPBACK"),
        ({"HOST": "192.0.2.7"}, "MEMORY_API_INSECURE_LOOPBACK"),
        ({"HOST": "localhost"}, "MEMORY_API_HOST"),
        ({"INSECURE_LOOPBACK": "false"}, "MEMORY_API_TLS_CERTIFICATE_FILE"),
        ({"TLS_KEY_FILE": __file__}, "MEMORY_API_TLS_CERTIFICATE_FILE"),
        ({"TLS_CERTIFICATE_FILE": __file__}, "MEMORY_API_TLS_KEY_FILE"),
        ({"TLS_CLIENT_CA_FILE": __file__}, "MEMORY_API_TLS_CLIENT_CA_FILE"),
        ({"TLS_CERTIFICATE_FILE": __file__, "TLS_KEY_FILE": __file__}, "MEMORY_API_INSECURE_LOOPBACK"),
        ({"TLS_CERTIFICATE_FILE": __file__, "TLS_KEY_FILE": "/nowhere"}, "tls_key_file"),
        ({"IDENTITY_FILE": "/nowhere"}, "identity_file"),
        ({"IDENTITY_FILE": "/"}, "identity_file"),
        ({"BANK_TOKEN_KEY_FILE": "/nowhere"}, "bank_token_key_file"),
        ({"PORT": "0"}, "port"),
        ({"LEEWAY_S": "3600"}, "leeway_s"),
        ({"MAX_CONCURRENT_CALLS": "0"}, "max_concurrent_calls"),
        ({"CALLER_MAX_CONCURRENT_CALLS": "0"}, "caller_max_concurrent_calls"),
        ({"CALLER_CALLS_PER_SECOND": "0"}, "caller_calls_per_second"),
        ({"COMPANY_MAX_CONCURRENT_CALLS": "0"}, "company_max_concurrent_calls"),
        ({"COMPANY_CALLS_PER_SECOND": "0.5"}, "company_calls_per_second"),
    ],
)
def test_wrong_settings_are_named(right: pytest.MonkeyPatch, changes: dict[str, str], named: str) -> None:
    for name, value in changes.items():
        right.setenv(f"MEMORY_API_{name}", value)
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert named in str(refused.value)
    assert "secret" not in str(refused.value)
