"""Children of the development stack report an early end, get what they are given, and leave nobody behind."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from devstack.ports import accepts_connections, free_ports
from devstack.process import ManagedProcess, ProcessError


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[ManagedProcess]]:
    """Whatever a test puts in here is ended after it."""
    processes: list[ManagedProcess] = []
    yield processes
    for process in processes:
        process.kill()


def _python(tmp_path: Path, program: str, env: dict[str, str] | None = None) -> ManagedProcess:
    return ManagedProcess("child", [sys.executable, "-c", program], env or {}, tmp_path / "child.log")


def test_an_early_end_is_reported_at_once_without_quoting_the_log(
    tmp_path: Path, started: list[ManagedProcess]
) -> None:
    """Nobody waits for a time-out, and what a log says stays in the log (I13)."""
    child = _python(tmp_path, "import sys; sys.exit('blue heron')")
    started.append(child)
    child.start()
    begun = time.monotonic()
    with pytest.raises(ProcessError, match="ended with status 1 before it was ready") as refused:
        child.wait_ready(lambda: False, timeout_s=60)
    assert time.monotonic() - begun < 30
    assert str(tmp_path / "child.log") in str(refused.value)
    assert "heron" not in str(refused.value)
    assert child.tail() == "blue heron"


def test_a_child_that_never_becomes_ready_is_given_up(tmp_path: Path, started: list[ManagedProcess]) -> None:
    """It is left running, for whoever wants to look at it."""
    child = _python(tmp_path, "import time; time.sleep(60)")
    started.append(child)
    child.start()
    with pytest.raises(ProcessError, match="did not become ready in time"):
        child.wait_ready(lambda: False, timeout_s=0.1)
    assert child.running


async def test_an_asynchronous_probe_may_fail_until_the_child_listens(
    tmp_path: Path, started: list[ManagedProcess]
) -> None:
    """A refused connection means not yet."""
    (port,) = free_ports(1)
    child = _python(
        tmp_path, f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(60)"
    )
    started.append(child)
    child.start()

    async def probe() -> bool:
        if not accepts_connections(port):
            raise ConnectionRefusedError
        return True

    await child.wait_ready_async(probe, timeout_s=30)
    assert child.running


def test_a_child_sees_only_the_environment_it_was_given(
    tmp_path: Path, started: list[ManagedProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing on a developer's machine changes what runs."""
    monkeypatch.setenv("OPENBOT_STRAY", "1")
    child = _python(tmp_path, "import os; print(sorted(os.environ))", {"OPENBOT_GIVEN": "1"})
    started.append(child)
    child.start()
    assert child.wait(timeout_s=30) == 0
    assert "OPENBOT_GIVEN" in child.tail()
    assert "OPENBOT_STRAY" not in child.tail()


@pytest.mark.parametrize("end", [ManagedProcess.kill, ManagedProcess.terminate])
def test_grandchildren_end_with_the_child(
    tmp_path: Path, started: list[ManagedProcess], end: Callable[[ManagedProcess], None]
) -> None:
    """A server's own workers are in its process group."""
    (port,) = free_ports(1)
    worker = f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(60)"
    child = _python(
        tmp_path, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}], check=False)"
    )
    started.append(child)
    child.start()
    child.wait_ready(lambda: accepts_connections(port), timeout_s=30)
    end(child)
    assert not child.running
    give_up = time.monotonic() + 10
    while accepts_connections(port) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not accepts_connections(port)


def test_a_child_that_ignores_its_signal_is_killed(tmp_path: Path, started: list[ManagedProcess]) -> None:
    """`terminate` always ends, and says how through the exit status."""
    ignoring = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)"
    child = _python(tmp_path, f"{ignoring}; time.sleep(60)")
    started.append(child)
    child.start()
    child.wait_ready(lambda: child.tail() == "1", timeout_s=30)
    child.terminate(grace_s=0.2)
    assert child.exit_status == -signal.SIGKILL


def test_a_log_is_readable_by_its_owner_only(tmp_path: Path, started: list[ManagedProcess]) -> None:
    """Logs carry no content, and are nobody's business all the same."""
    child = _python(tmp_path, "pass")
    started.append(child)
    child.start()
    child.wait(timeout_s=30)
    assert (tmp_path / "child.log").stat().st_mode & 0o077 == 0
    assert (tmp_path / "child.log").stat().st_uid == os.geteuid()


def test_ports_are_never_handed_out_twice() -> None:
    """Two servers that start together do not meet."""
    first, second = free_ports(20), free_ports(20)
    assert len({*first, *second}) == 40
