"""Where the checkout keeps its tools and its state.

Two places hold state. `.dev/` in the checkout (or `OPENBOT_DEV_DIR`) has logs, keys and sockets. What an
unprivileged user must reach even when the checkout lies under a 0700 home, such as PostgreSQL's files when
root starts it, lies in the *cache*: one directory per user under `/var/tmp`.
"""

import hashlib
import os
import stat
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
VENV_BIN = CHECKOUT / ".venv" / "bin"
HINDSIGHT_VENV = CHECKOUT / ".venv-hindsight"
MIGRATIONS = CHECKOUT / "db" / "migrations"


class UnsafeDirectoryError(Exception):
    """A directory of ours is a link, belongs to somebody else, or is writable by others."""


def state_directory() -> Path:
    """`.dev/` of the checkout, or `OPENBOT_DEV_DIR`: created, readable by its owner only."""
    path = Path(os.environ.get("OPENBOT_DEV_DIR") or CHECKOUT / ".dev")
    path.parent.mkdir(parents=True, exist_ok=True)
    return own_directory(path, mode=0o700)


def postgres_home() -> Path:
    """Home of the PostgreSQL that demo and dev of this checkout share; two clones never share one."""
    name = hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:12]
    return cache_directory(f"checkout-{name}", "postgres")


def cache_directory(*parts: str) -> Path:
    """Directory that an unprivileged user may traverse, `/var/tmp/openbot-memory-<uid>/<parts>`.

    `/var/tmp` is everybody's, so every step is checked to be a real directory of this user that nobody else
    may write: a link or a directory laid there beforehand raises `UnsafeDirectoryError`.
    """
    base = Path("/var/tmp") if Path("/var/tmp").is_dir() else Path(tempfile.gettempdir())  # noqa: S108
    path = own_directory(base / f"openbot-memory-{os.geteuid()}", mode=0o711)
    for part in parts:
        path = own_directory(path / part, mode=0o711)
    return path


def own_directory(path: Path, *, mode: int) -> Path:
    """Create `path` unless it is there, make sure that it is ours alone to write, and give it `mode`."""
    path.mkdir(mode=mode, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise UnsafeDirectoryError(
            f"{path} must be a directory of uid {os.geteuid()} that no other may write"
        )
    path.chmod(mode)
    return path
