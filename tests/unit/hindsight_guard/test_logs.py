"""Hindsight's logs in the guard's process: who and where, never what."""

import gc
import io
import logging
import sys
import threading
import traceback
from collections.abc import Iterator

import pytest
from hindsight_guard.logs import withhold_words


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    before = logging.getLogRecordFactory()
    for place, name in ((traceback, "print_exc"), (threading, "excepthook"), (sys, "unraisablehook")):
        monkeypatch.setattr(place, name, getattr(place, name))
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
    logging.getLogger().addHandler(handler)
    withhold_words()
    yield stream
    logging.getLogger().removeHandler(handler)
    logging.setLogRecordFactory(before)


def test_words_and_arguments_of_others_are_withheld(log: io.StringIO) -> None:
    logging.getLogger("hindsight_api.engine").error("retain failed for %s", "my secret diary")
    assert "hindsight_api.engine ERROR test_logs:" in log.getvalue()
    assert "secret" not in log.getvalue()


def test_of_an_exception_only_the_type_stays(log: io.StringIO) -> None:
    try:
        raise LookupError("my secret diary")
    except LookupError:
        logging.getLogger("asyncpg").exception("in %s", "my secret diary", stack_info=True)
    assert "LookupError" in log.getvalue()
    assert "secret" not in log.getvalue()


def test_a_traceback_that_is_printed_past_the_logs_keeps_its_type_only(
    log: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        raise LookupError("my secret diary")
    except LookupError:
        traceback.print_exc()
    assert "LookupError in test_a_traceback" in log.getvalue()
    assert "secret" not in log.getvalue() + "".join(capfd.readouterr())


def test_a_thread_that_ends_with_an_exception_tells_its_type_only(
    log: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise LookupError("my secret diary")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    assert "LookupError in fail" in log.getvalue()
    assert "secret" not in log.getvalue() + "".join(capfd.readouterr())


def test_an_exception_that_nobody_can_catch_tells_its_type_only(
    log: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        def __del__(self) -> None:
            raise LookupError("my secret diary")

    Broken()
    gc.collect()
    assert "LookupError in __del__" in log.getvalue()
    assert "secret" not in log.getvalue() + "".join(capfd.readouterr())


def test_our_own_fixed_sentences_stay(log: io.StringIO) -> None:
    logging.getLogger("hindsight_guard.tokens").warning("a fixed sentence")
    assert "a fixed sentence" in log.getvalue()
