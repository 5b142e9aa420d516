"""Settings of sync_daemon, from environment variables ``SYNC_DAEMON_*``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict
from service_process import ServiceSettings

# How long the guard takes a token after its expiry, by its own clock, in seconds (services/hindsight_guard).
_GUARD_LEEWAY_S = 5.0


class Settings(ServiceSettings):
    """Verified before the first row is leased. ``database_url`` logs in as a member of sync_daemon."""

    model_config = SettingsConfigDict(env_prefix="SYNC_DAEMON_")

    statement_timeout_s: float = Field(
        10, gt=0, le=60, description="Longest a statement may run, in seconds."
    )

    index_timeout_s: float = Field(
        30, gt=0, le=120, description="Longest one call to the index may take, in seconds."
    )
    bank_token_issuer: str = Field("openbot-sync-daemon", description="Issuer name in one-bank tokens.")

    workers: int = Field(4, ge=1, le=64, description="Memories converged at a time.")
    lease_s: float = Field(
        120, gt=0, le=3600, description="How long a leased row is this daemon's, in seconds."
    )
    clock_skew_s: float = Field(
        5,
        ge=0,
        le=60,
        description="How far the clocks of this machine and of Hindsight's may differ, in seconds.",
    )
    stop_s: float = Field(
        15,
        gt=0,
        le=600,
        description=(
            "How long work in hand may go on after SIGTERM, in seconds. The process ends at most five later."
        ),
    )
    poll_s: float = Field(5, gt=0, le=60, description="Longest wait without a notification, in seconds.")
    clearance_poll_s: float = Field(
        2, gt=0, le=600, description="Least pause between two probes of one forget, in seconds."
    )
    backups: Literal["none", "registered", "undeclared"] = Field(
        "undeclared",
        description=(
            "What is known of backups of both databases. `none`: nobody takes any. `registered`: each is in"
            " openbot.backups. `undeclared`: forgets never become cleared."
        ),
    )

    @property
    def write_margin_s(self) -> float:
        """How long before its lease ends a write may begin at the latest, in seconds.

        A call accepted at the last moment, by the slower clock, ends with its timeout, inside the lease.
        """
        return self.index_timeout_s + _GUARD_LEEWAY_S + self.clock_skew_s

    @property
    def doubt_s(self) -> float:
        """How long a write that nobody answered may still have an effect, in seconds.

        Its token is good for one ``index_timeout_s``; the rest is as in ``write_margin_s``.
        """
        return self.index_timeout_s + self.write_margin_s

    @model_validator(mode="after")
    def _lease_outlives_a_write(self) -> Self:
        if self.lease_s < 2 * self.write_margin_s:
            raise ValueError(
                "lease_s must be at least twice index_timeout_s + clock_skew_s + 5, to outlive a write"
            )
        return self
