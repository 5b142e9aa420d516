"""A PostgreSQL 18 with pgvector that needs no installed database, for root and ordinary users alike.

The server runs in the foreground as a `ManagedProcess`, so that it ends with the process that started it.
It listens on the loopback interface only, keeps no socket file, and its log holds no statement, no parameter
and no error text that could quote a row (I13).
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from devstack.installation import Installation, PostgresError, installation
from devstack.paths import cache_directory, own_directory
from devstack.ports import LOOPBACK, free_port
from devstack.process import ManagedProcess, ProcessError

_READY_S = 60
_SUPERUSER = "postgres"
_ATTEMPTS = 4

# Fast, and safe against everything but a power cut: a killed server loses no commit, which is why
# synchronous_commit stays on (without fsync it costs nothing). A caller may override these.
_DEFAULTS: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "max_connections": "200",
}

# These are not a caller's to choose.
_FIXED: Mapping[str, str] = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "logging_collector": "off",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}


class EmbeddedPostgres:
    """One server whose data, password (0600) and log live below `home`, and only there.

    Under root, `home` must lie where `nobody` may pass, as everything in `paths.cache_directory` does.
    """

    def __init__(self, home: Path, config: Mapping[str, str] | None = None) -> None:
        self.home = home
        self._config = {**_DEFAULTS, **(config or {}), **_FIXED}
        self._data = home / "data"
        self._password_file = home / "superuser-password"
        self._log_file = home / "postgresql.log"
        self._port: int | None = None
        self._process: ManagedProcess | None = None
        self._lock: IO[str] | None = None

    @classmethod
    def throwaway(cls, config: Mapping[str, str] | None = None) -> "EmbeddedPostgres":
        """A server in a new home, to be destroyed by the caller; homes of killed runs are cleared away."""
        homes = cache_directory("throwaway")
        for left in homes.iterdir():
            with contextlib.suppress(PostgresError, OSError):
                cls(left).destroy()
        return cls(homes / secrets.token_hex(8), config)

    @property
    def bin_dir(self) -> Path:
        """Directory of `psql` and `pg_dump`, which need `library_path` as their LD_LIBRARY_PATH."""
        return self._installation.bin_dir

    @property
    def library_path(self) -> str:
        """LD_LIBRARY_PATH for the programs in `bin_dir`: ICU lies beside them."""
        return self._installation.environment["LD_LIBRARY_PATH"]

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        return self._running_process().pid

    @property
    def port(self) -> int:
        """The loopback port that the server was last started on; `RuntimeError` before the first start."""
        if self._port is None:
            raise RuntimeError("PostgreSQL was never started")
        return self._port

    @property
    def running(self) -> bool:
        """Whether this object has started the server and it still runs."""
        return self._process is not None and self._process.running

    def start(self) -> None:
        """Set up on first use, recover what a crash left, and run on a free port. Idempotent.

        Raises `PostgresError` if another process uses the same home, `ProcessError` if the server fails.
        """
        if self.running:
            return
        self._take_home()
        if not self._data.is_dir():
            self._initialise()
        self._end_orphan()
        for attempt in range(1, _ATTEMPTS + 1):
            self._port = free_port()
            process = self._process = self._postmaster(self._port)
            process.start()
            try:
                process.wait_ready(self._accepts, _READY_S)
            except ProcessError:
                # Somebody took the port meanwhile, or a crashed server's backends are not gone yet.
                if process.running or attempt == _ATTEMPTS:
                    process.terminate()
                    raise
                time.sleep(0.2 * attempt)
            else:
                return

    def stop(self) -> None:
        """End the server in an orderly way, disconnecting clients. The data stay, the home is free again."""
        if self._process is not None:
            self._process.terminate(grace_s=30)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def kill(self) -> None:
        """SIGKILL the postmaster, as a crash would. The next `start` recovers."""
        self._running_process().kill()

    def destroy(self) -> None:
        """End the server and remove its home; `PostgresError` if another process uses it."""
        if self._lock is None:
            self._take_home()
        self._end_orphan()
        if self._process is not None and self._process.running:
            self._process.send(signal.SIGQUIT)  # immediate shutdown: the postmaster waits for its children
            with contextlib.suppress(TimeoutError):
                self._process.wait(_READY_S)
        try:
            if self._process is not None:
                self._process.terminate(grace_s=30)
            shutil.rmtree(self.home)
        finally:
            self.stop()

    def admin_dsn(self, database: str = "postgres") -> str:
        """URL of `database` for the superuser."""
        return f"postgresql://{_SUPERUSER}:{self._password()}@{LOOPBACK}:{self.port}/{database}"

    def execute(self, sql: str, database: str = "postgres") -> str:
        """Run statements as the superuser, each in a transaction of its own; return rows as plain text."""
        plain = ("--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1")
        return self.client("psql", database, *plain, stdin=sql).strip()

    def client(self, program: str, database: str, *arguments: str, stdin: str = "") -> str:
        """Run `psql`, `pg_dump` or the like on `database` as the superuser; return its output."""
        where = [f"--host={LOOPBACK}", f"--port={self.port}", f"--username={_SUPERUSER}"]
        return self._installation.run(
            program, *where, f"--dbname={database}", *arguments, stdin=stdin, password=self._password()
        )

    def create_database(self, name: str, template: str | None = None, extensions: Iterable[str] = ()) -> None:
        """Create `name` with these extensions, unless it exists; a template must have no connections."""
        if not self.execute(f"select 1 from pg_database where datname = {_literal(name)}"):  # noqa: S608
            of = _identifier(template or "template0")
            self.execute(f"create database {_identifier(name)} template {of}")
        wanted = [f"create extension if not exists {_identifier(extension)};" for extension in extensions]
        if wanted:
            self.execute("\n".join(wanted), name)

    def drop_database(self, name: str) -> None:
        """Drop `name`, if it exists, and whatever is connected to it."""
        self.execute(f"drop database if exists {_identifier(name)} with (force)")

    @property
    def _installation(self) -> Installation:
        return installation()

    def _running_process(self) -> ManagedProcess:
        if self._process is None:
            raise RuntimeError("PostgreSQL was never started")
        return self._process

    def _password(self) -> str:
        return self._password_file.read_text()

    def _take_home(self) -> None:
        """Hold `home` for this process alone, until `stop` or the end of the process."""
        if self._lock is None:
            self.home.parent.mkdir(parents=True, exist_ok=True)
            lock = (own_directory(self.home, mode=0o711) / "lock").open("w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                raise PostgresError(f"another process uses {self.home}; stop it first") from None
            self._lock = lock

    def _initialise(self) -> None:
        """Make the data directory under another name first: a killed initdb leaves half of one."""
        account = self._installation.account
        unfinished = self.home / "data.unfinished"
        for left in (unfinished, self._password_file):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
        unfinished.mkdir(mode=0o700)
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(secrets.token_urlsafe(24))
        self._installation.run(
            "initdb",
            "--pgdata", account.give(unfinished), "--username", _SUPERUSER,
            "--pwfile", account.give(self._password_file), "--auth", "scram-sha-256",
            "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync",
        )  # fmt: skip
        unfinished.rename(self._data)

    def _postmaster(self, port: int) -> ManagedProcess:
        settings = [f"--{name}={value}" for name, value in self._config.items()]
        return ManagedProcess(
            "postgresql",
            [self.bin_dir / "postgres", "-D", self._data, "-p", str(port), *settings],
            self._installation.environment,
            self._log_file,
            user=self._installation.account.user,
            stop_signal=signal.SIGINT,  # PostgreSQL's fast shutdown: do not wait for clients to leave
        )

    def _accepts(self) -> bool:
        with contextlib.suppress(PostgresError):
            self._installation.run("pg_isready", f"--host={LOOPBACK}", f"--port={self.port}", "--timeout=1")
            return True
        return False

    def _end_orphan(self) -> None:
        """End a postmaster that outlived its parent, and remove a pid file whose process is gone.

        We hold the lock on `home`, so no living process of ours can be the one that wants it.
        """
        pid_file = self._data / "postmaster.pid"
        try:
            pid = int(pid_file.read_text().split(maxsplit=1)[0])
        except (FileNotFoundError, ValueError, IndexError):
            return
        if self.running:
            return
        command = Path("/proc") / str(pid) / "cmdline"
        give_up = time.monotonic() + _READY_S
        with contextlib.suppress(OSError):
            # An empty command line is a zombie's: it is dead, only nobody has taken notice.
            while os.fsencode(self._data) in command.read_bytes() and time.monotonic() < give_up:
                os.kill(pid, signal.SIGQUIT)
                time.sleep(0.05)
        pid_file.unlink(missing_ok=True)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
