"""How long the daemon waits, and how long what it signs is good for."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sync_daemon.drain import backoff_s
from sync_daemon.settings import Settings


@given(attempts=st.integers(1, 10_000), asked=st.floats(0, 10_000))
def test_backoff_is_bounded_and_never_shorter_than_the_index_asked_for(attempts: int, asked: float) -> None:
    waited = backoff_s(attempts, asked)
    assert asked <= waited <= max(asked, 300)
    assert waited <= max(asked, 0.5 * 2 ** min(attempts, 20))


def settings(**changes: Any) -> Settings:
    return Settings(
        database_url="postgresql://unused",
        index_url="http://127.0.0.1:1",
        bank_token_key_file=Path("unused"),
        **changes,
    )


@given(timeout_s=st.floats(0.1, 120), lease_s=st.floats(0.1, 3600))
def test_a_write_that_may_begin_always_ends_inside_its_lease(timeout_s: float, lease_s: float) -> None:
    try:
        accepted = settings(index_timeout_s=timeout_s, lease_s=lease_s)
    except ValidationError:
        return
    latest_start_s = accepted.lease_s - accepted.write_margin_s
    assert latest_start_s > 0
    guard_leeway_s = 5
    assert latest_start_s + guard_leeway_s + accepted.index_timeout_s <= accepted.lease_s + 1e-6


def test_the_default_lease_outlives_a_write() -> None:
    assert settings().write_margin_s * 2 <= settings().lease_s


def test_nothing_is_declared_about_backups_unless_somebody_does() -> None:
    assert settings().backups == "undeclared"


@pytest.mark.parametrize("name", ["lease_s", "index_timeout_s", "workers", "poll_s"])
def test_nonsense_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        settings(**{name: 0})
