"""Settings that every service of ours has."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, FilePath, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class ServiceSettings(BaseSettings):
    """Verified before anything starts; a wrong one stops the start with its name, never its value.

    A subclass names the environment variables' prefix in its ``model_config``.
    """

    # An empty variable counts as unset: templates of deployments leave them so.
    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, env_ignore_empty=True
    )

    database_url: SecretStr = Field(
        description="PostgreSQL URL of a login that is a member of the service's own role."
    )
    index_url: str = Field(description="Base URL of Hindsight.")
    index_ca_file: FilePath | None = Field(None, description="PEM authorities for Hindsight's certificate.")
    bank_token_key_file: FilePath = Field(description="PEM Ed25519 private key that signs one-bank tokens.")
    otlp_endpoint: str | None = Field(None, description="OTLP gRPC endpoint for spans.")
    spans_file: Path | None = Field(None, description="File that receives spans as JSON (development).")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level logged.")
