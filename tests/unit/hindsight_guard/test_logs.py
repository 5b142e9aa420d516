"""Hindsight's logs in the guard's process: who and where, never what."""

import io
import logging
from collections.abc import Iterator

import pytest
from hindsight_guard.logs import withhold_words


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    before = logging.getLogRecordFactory()
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


def test_our_own_fixed_sentences_stay(log: io.StringIO) -> None:
    logging.getLogger("hindsight_guard.tokens").warning("a fixed sentence")
    assert "a fixed sentence" in log.getvalue()
