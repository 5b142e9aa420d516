"""With what the guarded Hindsight does not start. It must fail before it listens."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from devstack.ports import accepts_connections, free_port
from devstack.process import base_environment
from devstack.stack import Stack
from hindsight_guard.settings import DEMANDED

from tests.contract.inside import Inside

pytestmark = pytest.mark.hindsight

Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def start(stack: Stack, tmp_path: Path) -> Start:
    """Starts a guarded Hindsight with other settings than the stack's, which are right."""

    def run(*, module: str = "hindsight_guard", **changes: str | None) -> subprocess.CompletedProcess[str]:
        assert stack.hindsight_config is not None
        port = free_port()
        right = stack.hindsight_config.environment() | {"HINDSIGHT_GUARD_PORT": str(port)}
        settings = {name: value for name, value in (right | changes).items() if value is not None}
        done = subprocess.run(
            [stack.hindsight_config.venv / "bin" / "python", "-m", module],
            env=base_environment() | settings,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert not accepts_connections(port)
        return done

    return run


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HINDSIGHT_GUARD_ISSUERS_FILE", None),
        ("HINDSIGHT_GUARD_ISSUERS_FILE", "/nonexistent"),
        ("HINDSIGHT_GUARD_AUDIENCE", ""),
        ("HINDSIGHT_GUARD_MAX_LIFETIME_S", "86400"),
        ("HINDSIGHT_GUARD_HOST", "0.0.0.0"),  # noqa: S104 - that is the point
        ("HINDSIGHT_API_LLM_TRACE_ENABLED", None),
        ("HINDSIGHT_API_OPERATION_RETENTION_DAYS", None),
        ("HINDSIGHT_API_AUDIT_LOG_ENABLED", "true"),
        ("HINDSIGHT_API_MCP_ENABLED", None),
        ("HINDSIGHT_API_LOG_LEVEL", "info"),
        ("HINDSIGHT_API_TENANT_EXTENSION", None),
        ("HINDSIGHT_API_OPERATION_VALIDATOR_EXTENSION", None),
    ],
)
def test_a_wrong_setting_is_named(start: Start, name: str, value: str | None) -> None:
    done = start(**{name: value})
    assert done.returncode == 2
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_the_defaults_that_the_guard_counts_on_are_hindsights(inside: Inside) -> None:
    code = {"HINDSIGHT_API_TENANT_EXTENSION", "HINDSIGHT_API_OPERATION_VALIDATOR_EXTENSION"}
    for name, (default, _) in DEMANDED.items():
        assert name in code or (name, inside["defaults"][name]) == (name, default)


@pytest.mark.parametrize(
    "content", ["[]", '[{"issuer": "i", "jwks_file": "/nonexistent", "operations": ["recall"]}]']
)
def test_without_an_issuer_or_its_keys_it_does_not_start(start: Start, tmp_path: Path, content: str) -> None:
    issuers = tmp_path / "issuers.json"
    issuers.write_text(content)
    done = start(HINDSIGHT_GUARD_ISSUERS_FILE=str(issuers))
    assert done.returncode == 2
    assert "issuer" in done.stderr


def test_an_env_file_that_hindsight_finds_cannot_undo_a_setting(start: Start, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("HINDSIGHT_API_AUDIT_LOG_ENABLED=true\n")
    done = start()
    assert done.returncode != 0
    assert "HINDSIGHT_API_AUDIT_LOG_ENABLED" in done.stderr
