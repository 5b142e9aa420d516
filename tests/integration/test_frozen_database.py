"""memory_api ends when it is asked to, although its database has stopped answering."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from devstack.postgres import EmbeddedPostgres
from devstack.process import ManagedProcess
from devstack.template import TemplateDatabase

from tests.eventually import until
from tests.integration.test_api_process import Api, opened

pytestmark = pytest.mark.postgres


@contextmanager
def frozen(api: Api, postgres: EmbeddedPostgres) -> Iterator[None]:
    """While it lasts, neither the server nor a backend of the service does anything, not even end."""
    found = api.sql(
        "select pid from pg_stat_activity where datname = current_database()"
        " and application_name = 'memory_api'"
    )
    processes = [postgres.pid, *map(int, found.split())]
    assert len(processes) > 1
    try:
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "busy"])
def test_the_end_does_not_wait_for_a_frozen_database(
    tmp_path: Path, postgres_server: EmbeddedPostgres, template_database: TemplateDatabase, busy: bool
) -> None:
    with (
        opened(tmp_path, postgres_server, template_database) as api,
        api.session() as lin,
        ThreadPoolExecutor(1) as threads,
    ):
        api.process.terminate(10)
        api.process = ManagedProcess(
            "memory_api",
            [sys.executable, "-m", "memory_api"],
            api.environment | {"MEMORY_API_DRAIN_S": "1"},
            api.log,
        )
        api.start()
        with api.stalled():
            if busy:
                late = threads.submit(lin.remember, "late")
                assert until(api.waiting)
            with frozen(api, postgres_server):
                time.sleep(3)  # so that the question whether the database is there has no answer either
                api.process.send(signal.SIGTERM)
                assert api.process.wait(60) == 0, "drain_s and seven seconds, not for ever"
                if busy:
                    assert late.exception(60) is not None
        log = api.log.read_text()
        assert '"stopped"' in log
        assert "Traceback" not in log
        assert "was never" not in log
