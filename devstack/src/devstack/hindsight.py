"""Hindsight 1.1.0 with our guard, as it must be configured, in an environment of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HindsightServer:
    """How to run it on a loopback port. ``database_url`` is an empty or earlier database with pgvector."""

    venv: Path
    port: int
    database_url: str
    embeddings_url: str
    issuers_file: Path

    @property
    def url(self) -> str:
        """Base URL of its API."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def health_url(self) -> str:
        """Answers 200 once it serves."""
        return f"{self.url}/health"

    def command(self) -> list[str]:
        """Its command line."""
        return [str(self.venv / "bin" / "python"), "-m", "hindsight_guard"]

    def environment(self) -> dict[str, str]:
        """Every setting that docs/architecture.md demands of an index."""
        return {
            "HINDSIGHT_API_DATABASE_URL": self.database_url,
            "HINDSIGHT_API_WORKER_ID": "development",
            "HINDSIGHT_API_LLM_PROVIDER": "none",
            "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "openai",
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL": self.embeddings_url,
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_API_KEY": "unused",
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL": "multilingual-e5-small-q4",
            "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
            "HF_HUB_OFFLINE": "1",
            "HINDSIGHT_API_LLM_TRACE_ENABLED": "false",
            "HINDSIGHT_API_OPERATION_RETENTION_DAYS": "1",
            "HINDSIGHT_API_AUDIT_LOG_ENABLED": "false",
            "HINDSIGHT_API_MCP_ENABLED": "false",
            "HINDSIGHT_API_LOG_LEVEL": "warning",
            "HINDSIGHT_API_VECTOR_INDEX_MIN_ROWS": "10000",
            "HINDSIGHT_API_TEXT_SEARCH_EXTENSION_NATIVE_LANGUAGE": "simple",
            "HINDSIGHT_API_TENANT_EXTENSION": "hindsight_guard.tenant:GuardTenantExtension",
            "HINDSIGHT_API_OPERATION_VALIDATOR_EXTENSION": (
                "hindsight_guard.validator:GuardOperationValidator"
            ),
            "HINDSIGHT_GUARD_ISSUERS_FILE": str(self.issuers_file),
            "HINDSIGHT_GUARD_HOST": "127.0.0.1",
            "HINDSIGHT_GUARD_PORT": str(self.port),
        }
