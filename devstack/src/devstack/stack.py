"""Every part of the system on this machine: started in order, stopped in reverse."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

from devstack.databases import SERVICE_ROLES, create_logins, login_dsn
from devstack.embeddings import EmbeddingServer
from devstack.hindsight import HindsightServer
from devstack.issuer import MEMORY_API_SIGNER, SYNC_DAEMON_SIGNER, DevelopmentIssuer
from devstack.migrations import migrate
from devstack.paths import HINDSIGHT_VENV, state_directory
from devstack.ports import free_ports
from devstack.postgres import EmbeddedPostgres
from devstack.process import ManagedProcess, base_environment

Step = Callable[[str], AbstractContextManager[None]]


@contextmanager
def silent(_title: str) -> Iterator[None]:
    """A step that shows nothing."""
    yield


class Stack:
    """PostgreSQL, embeddings, Hindsight with our guard, memory_api and sync_daemon.

    ``directory`` holds logs, spans and keys of this stack. Databases named after ``name`` are made
    anew unless ``keep`` is set. With ``index_url``, the index of another stack is used, whose
    ``issuer`` it trusts. ``step`` shows what is being done. Use as a context manager.
    """

    def __init__(
        self,
        directory: Path,
        postgres: EmbeddedPostgres,
        *,
        name: str = "openbot",
        keep: bool = False,
        port: int | None = None,
        index_url: str | None = None,
        issuer: DevelopmentIssuer | None = None,
        api_environment: Mapping[str, str] | None = None,
        daemon_environment: Mapping[str, str] | None = None,
        step: Step = silent,
    ) -> None:
        self.directory = directory
        self.logs = directory / "logs"
        self.postgres = postgres
        self.name = name
        self.issuer = issuer or DevelopmentIssuer(directory / "keys", kubernetes=True)
        self.dsns: Mapping[str, str] = {}
        self._keep = keep
        self._started_postgres = False
        self._step = step
        self._index_url = index_url
        self._api_environment = dict(api_environment or {})
        self._daemon_environment = dict(daemon_environment or {})
        embeddings_port, index_port, free_port = free_ports(3)
        self.port = port or free_port
        self.address = f"127.0.0.1:{self.port}"
        self.logs.mkdir(parents=True, exist_ok=True)
        self._embeddings_config = EmbeddingServer(port=embeddings_port)
        self._index_port = index_port
        self.hindsight: ManagedProcess | None = None
        self.hindsight_config: HindsightServer | None = None
        self.embeddings: ManagedProcess | None = None
        self.memory_api: ManagedProcess | None = None
        self.sync_daemon: ManagedProcess | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def database(self) -> str:
        """Name of the authority's database."""
        return self.name

    @property
    def index_url(self) -> str:
        """Where the services find the index."""
        return self._index_url or f"http://127.0.0.1:{self._index_port}"

    @property
    def admin_dsn(self) -> str:
        """The authority's database as its administrator."""
        return self.postgres.admin_dsn(self.database)

    def start(self) -> None:
        """Starts everything and returns when the API is ready."""
        with self._step("PostgreSQL 18 with pgvector"):
            if not self.postgres.running:
                self._started_postgres = True
                self.postgres.start()
            self._prepare_databases()
        if self._index_url is None:
            with self._step("embeddings (multilingual-e5-small)"):
                self.embeddings = self._run(
                    "embeddings", self._embeddings_config.command(), self._embeddings_config.environment()
                )
                self.embeddings.wait_ready(_http_ok(self._embeddings_config.health_url), 60)
            with self._step("Hindsight 1.1.0 behind hindsight_guard"):
                self.start_hindsight()
        with self._step("memory_api"):
            self.start_memory_api()
        with self._step("sync_daemon"):
            self.start_sync_daemon()

    def _prepare_databases(self) -> None:
        if not self._keep:
            self.postgres.drop_database(self.database)
            self.postgres.drop_database(f"{self.name}_index")
        self.postgres.create_database(self.database)
        if self._index_url is None:
            self.postgres.create_database(f"{self.name}_index", extensions=("vector",))
        migrate(self.admin_dsn)
        asyncio.run(create_logins(self.admin_dsn))
        self.dsns = {role: login_dsn(self.admin_dsn, role) for role in SERVICE_ROLES}

    def start_hindsight(self) -> None:
        """Starts Hindsight (again) and waits until it answers."""
        self.hindsight_config = HindsightServer(
            venv=HINDSIGHT_VENV,
            port=self._index_port,
            database_url=self.postgres.admin_dsn(f"{self.name}_index"),
            embeddings_url=f"http://127.0.0.1:{self._embeddings_config.port}/v1",
            issuers_file=self.issuer.guard_issuers_file,
        )
        self.hindsight = self._run(
            "hindsight", self.hindsight_config.command(), self.hindsight_config.environment()
        )
        self.hindsight.wait_ready(_http_ok(self.hindsight_config.health_url), 120)

    def start_memory_api(self) -> None:
        """Starts memory_api (again) and waits until it is ready."""
        self.memory_api = self._run(
            "memory_api",
            [sys.executable, "-m", "memory_api"],
            {
                "MEMORY_API_DATABASE_URL": self.dsns["memory_api"],
                "MEMORY_API_AUTHORITY_DATABASE_URL": self.dsns["authority_writer"],
                "MEMORY_API_HOST": "127.0.0.1",
                "MEMORY_API_PORT": str(self.port),
                "MEMORY_API_INSECURE_LOOPBACK": "true",
                "MEMORY_API_REFLECTION": "true",
                "MEMORY_API_IDENTITY_FILE": str(self.issuer.identity_file),
                "MEMORY_API_AUDIENCE": self.issuer.audience,
                "MEMORY_API_INDEX_URL": self.index_url,
                "MEMORY_API_BANK_TOKEN_KEY_FILE": str(self.issuer.bank_key_file(MEMORY_API_SIGNER)),
                "MEMORY_API_SPANS_FILE": str(self.logs / "memory_api.spans.jsonl"),
                "MEMORY_API_DRAIN_S": "2",
                **self._api_environment,
            },
        )
        self.memory_api.wait_ready(_grpc_ready(self.address), 30)

    def start_sync_daemon(self, **environment: str) -> None:
        """Starts sync_daemon (again), with ``environment`` instead of what it would have."""
        self.sync_daemon = self._run(
            "sync_daemon",
            [sys.executable, "-m", "sync_daemon"],
            {
                "SYNC_DAEMON_DATABASE_URL": self.dsns["sync_daemon"],
                "SYNC_DAEMON_INDEX_URL": self.index_url,
                "SYNC_DAEMON_BANK_TOKEN_KEY_FILE": str(self.issuer.bank_key_file(SYNC_DAEMON_SIGNER)),
                "SYNC_DAEMON_SPANS_FILE": str(self.logs / "sync_daemon.spans.jsonl"),
                "SYNC_DAEMON_CLEARANCE_POLL_S": "1",
                "SYNC_DAEMON_BACKUPS": "none",
                **self._daemon_environment,
                **environment,
            },
        )

    def ended(self) -> list[str]:
        """Names of the processes that were started and do not run any more."""
        started = (self.embeddings, self.hindsight, self.memory_api, self.sync_daemon)
        return [process.name for process in started if process is not None and not process.running]

    def stop(self) -> None:
        """Stops every process that it started, PostgreSQL last."""
        for process in (self.sync_daemon, self.memory_api, self.hindsight, self.embeddings):
            if process is not None and process.running:
                process.terminate(10)
        if self._started_postgres:
            self.postgres.stop()

    def _run(self, name: str, command: list[str], environment: Mapping[str, str]) -> ManagedProcess:
        process = ManagedProcess(
            name, command, {**base_environment(), **environment}, self.logs / f"{name}.log"
        )
        process.start()
        return process


def fresh_stack_directory(name: str) -> Path:
    """An empty directory for a stack's logs, spans and keys, inside the state directory."""
    directory = state_directory() / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def _http_ok(url: str) -> Callable[[], bool]:
    def probe() -> bool:
        try:
            return httpx.get(url, timeout=2, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    return probe


def _grpc_ready(address: str) -> Callable[[], bool]:
    def probe() -> bool:
        with grpc.insecure_channel(address) as channel:
            try:
                answer = health_pb2_grpc.HealthStub(channel).Check(  # type: ignore[attr-defined] # stubs
                    health_pb2.HealthCheckRequest(service="readiness"), timeout=2
                )
            except grpc.RpcError:
                return False
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    return probe
