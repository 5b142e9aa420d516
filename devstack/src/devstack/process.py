"""Child processes that start, become ready, end in an orderly way, and never outlive their parent."""

import asyncio
import atexit
import contextlib
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

_POLL_S = 0.05
_PASSED_ON = ("PATH", "LANG", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")


class ProcessError(Exception):
    """A process ended early or did not become ready; the message names the log file and quotes none of it."""

    def __init__(self, message: str, log_file: Path) -> None:
        super().__init__(f"{message}; see {log_file}")
        self.log_file = log_file


def base_environment() -> dict[str, str]:
    """The few variables of this process that a child may need: search path, locale, time zone, CA files.

    A child's environment is never inherited, so that nothing on a developer's machine changes what runs.
    """
    return {"LANG": "C.UTF-8"} | {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


class _Leash:
    """This process's end of the pipe to `leash.py`, which is started with the first child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keeper: subprocess.Popen[bytes] | None = None

    def hold(self, pid: int, on_orphaned: signal.Signals) -> None:
        """End `pid` with this signal once this process is gone."""
        self._say(f"hold {pid} {int(on_orphaned)}\n")

    def release(self, pid: int) -> None:
        """Forget `pid`: it has ended."""
        self._say(f"release {pid}\n")

    def close(self) -> None:
        """Let the keeper end whatever is still held, and wait for it."""
        with self._lock:
            if self._keeper is not None:
                self._keeper.communicate()
                self._keeper = None

    def _say(self, line: str) -> None:
        with self._lock:
            if self._keeper is None:
                self._keeper = subprocess.Popen(
                    [sys.executable, "-I", "-S", Path(__file__).with_name("leash.py")],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    cwd="/",
                    start_new_session=True,
                )
            if self._keeper.stdin is not None:
                self._keeper.stdin.write(line.encode())


_leash = _Leash()
atexit.register(_leash.close)


def open_log(path: Path) -> IO[bytes]:
    """Open a log file for appending, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), "ab")


class ManagedProcess:
    """One child process in a session of its own, with its output in a file.

    `env` is the whole environment. `user` names the account to run as (only root may set it); the child then
    starts in `/` unless `cwd` says otherwise. When this Python process ends, even by SIGKILL, the child gets
    `stop_signal`, and a few seconds later its whole process group is killed.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        env: Mapping[str, str],
        log_file: Path,
        *,
        user: str | None = None,
        cwd: Path | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.name = name
        self.log_file = log_file
        self._argv = [str(part) for part in argv]
        self._env = dict(env)
        self._user = user
        self._cwd = cwd if cwd or user is None else Path("/")
        self._stop_signal = stop_signal
        self._child: subprocess.Popen[bytes] | None = None
        self._group: int | None = None

    def start(self) -> None:
        """Start the child; raises `RuntimeError` if it runs already. Output is appended to the log file."""
        if self.running:
            raise RuntimeError(f"{self.name} runs already")
        self._end_group()
        account = None if self._user is None else pwd.getpwnam(self._user)
        with open_log(self.log_file) as log:
            self._child = subprocess.Popen(
                self._argv,
                env=self._env,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=account and account.pw_uid,
                group=account and account.pw_gid,
                extra_groups=account and [],
            )
        self._group = self._child.pid
        _leash.hold(self._child.pid, self._stop_signal)

    @property
    def pid(self) -> int:
        """Process id of the child that was started last; `RuntimeError` before the first start."""
        return self._started().pid

    @property
    def running(self) -> bool:
        """Whether the child has been started and has not ended."""
        return self._child is not None and self._child.poll() is None

    @property
    def exit_status(self) -> int | None:
        """Exit status of the child, negative for a signal, `None` while it runs."""
        return self._started().poll()

    def tail(self, lines: int = 20) -> str:
        """The last lines of the log, for a developer's screen."""
        with contextlib.suppress(FileNotFoundError):
            return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])
        return ""

    def wait_ready(self, probe: Callable[[], bool], timeout_s: float) -> None:
        """Return once `probe()` is true; an `OSError` out of it counts as not ready.

        Raises `ProcessError` as soon as the child has ended, or after `timeout_s`, the child still running.
        """
        give_up = time.monotonic() + timeout_s
        while not self._is_ready(give_up):
            with contextlib.suppress(OSError):
                if probe():
                    return
            time.sleep(_POLL_S)

    async def wait_ready_async(self, probe: Callable[[], Awaitable[bool]], timeout_s: float) -> None:
        """The same as `wait_ready` for an asynchronous probe."""
        give_up = time.monotonic() + timeout_s
        while not self._is_ready(give_up):
            with contextlib.suppress(OSError):
                if await probe():
                    return
            await asyncio.sleep(_POLL_S)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the child itself, not to its group; nothing happens if it has ended."""
        self._started().send_signal(number)

    def wait(self, timeout_s: float) -> int:
        """Wait for the child to end by itself and return its exit status; `TimeoutError` if it does not."""
        child = self._started()
        try:
            status = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.name} still runs after {timeout_s} s") from None
        self._end_group()
        return status

    def terminate(self, grace_s: float = 10.0) -> None:
        """Ask the child to stop, wait up to `grace_s`, then kill what is left of its process group."""
        if self._child is None:
            return
        if self.running:
            self._child.send_signal(self._stop_signal)
            with contextlib.suppress(TimeoutError):
                self.wait(grace_s)
        self.kill()

    def kill(self) -> None:
        """SIGKILL the child and its process group at once, as a crash would."""
        if self._child is not None:
            self._end_group()
            self._child.wait()

    def _is_ready(self, give_up: float) -> bool:
        """Raise if waiting any longer is pointless; never true, the probe decides."""
        if not self.running:
            status = self.exit_status
            raise ProcessError(f"{self.name} ended with status {status} before it was ready", self.log_file)
        if time.monotonic() > give_up:
            raise ProcessError(f"{self.name} did not become ready in time", self.log_file)
        return False

    def _end_group(self) -> None:
        """Kill what is left of the process group, once: later its number may be somebody else's."""
        if self._group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGKILL)
            _leash.release(self._group)
            self._group = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._child
