"""How long the daemon waits, and how long what it signs is good for."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sync_daemon.drain import backoff_s
from sync_daemon.settings import Settings

GUARD_LEEWAY_S = 5


@given(attempts=st.integers(1, 10_000), asked=st.floats(0, 10_000))
def test_backoff_is_bounded_and_never_shorter_than_the_index_asked_for(attempts: int, asked: float) -> None:
    waited = backoff_s(attempts, asked)
    assert asked <= waited <= max(asked, 300)
    assert waited <= max(asked, 0.5 * 2 ** min(attempts, 20))


def settings(**changes: Any) -> Settings:
    return Settings(
        database_url="postgresql://unused",
        index_url="http://127.0.0.1:1",
        bank_token_key_file=Path(__file__),  # any file: it is not read here
        **changes,
    )


@given(timeout_s=st.floats(0.1, 120), lease_s=st.floats(0.1, 3600), skew_s=st.floats(0, 60))
def test_a_write_that_may_begin_always_ends_inside_its_lease(
    timeout_s: float, lease_s: float, skew_s: float
) -> None:
    try:
        accepted = settings(index_timeout_s=timeout_s, lease_s=lease_s, clock_skew_s=skew_s)
    except ValidationError:
        return
    expiry_s = accepted.lease_s - accepted.write_margin_s
    assert expiry_s > 0
    # The guard's clock may be behind, and it adds its leeway.
    accepted_until_s = expiry_s + GUARD_LEEWAY_S + skew_s
    assert accepted_until_s + timeout_s <= accepted.lease_s + 1e-6
    # The same for words that nobody answered for: their token is good for one call.
    assert timeout_s + GUARD_LEEWAY_S + skew_s + timeout_s <= accepted.doubt_s + 1e-6


def test_the_default_lease_outlives_a_write() -> None:
    assert settings().write_margin_s * 2 <= settings().lease_s


def test_nothing_is_declared_about_backups_unless_somebody_does() -> None:
    assert settings().backups == "undeclared"


@pytest.mark.parametrize("name", ["lease_s", "index_timeout_s", "workers", "poll_s", "stop_s"])
def test_nonsense_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        settings(**{name: 0})
