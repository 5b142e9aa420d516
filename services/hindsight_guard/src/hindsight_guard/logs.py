"""Hindsight's logs without words (I13).

At ERROR level, Hindsight 1.1.0 logs the input of a retain that failed, and at INFO the beginning of
every question. What a record says is therefore withheld; who said it, where and how bad stays.
Tracebacks that are printed past the logs, as Hindsight does where links are made, end with the text of the
exception, and a database quotes the row there: of those, the type and the place stay.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from types import TracebackType
from typing import Any

_OURS = "hindsight_guard"

_log = logging.getLogger(__name__)


def withhold_words() -> None:
    """From now on, every record of other packages in this process keeps logger, level, place and
    exception type only, and so does every traceback that is printed for an exception that was caught or
    that ends a thread."""
    make = logging.getLogRecordFactory()

    def reduced(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        if record.name.partition(".")[0] != _OURS:
            kind = record.exc_info[0] if record.exc_info else None
            record.msg = "%s:%s %s"
            record.args = (record.module, record.lineno, kind.__qualname__ if kind else "words withheld")
            record.exc_info = record.exc_text = record.stack_info = None
        return record

    logging.setLogRecordFactory(reduced)
    traceback.print_exc = _print_exc
    threading.excepthook = _in_thread
    sys.unraisablehook = _unraisable


def _print_exc(*_args: Any, **_kwargs: Any) -> None:
    kind, _, trace = sys.exc_info()
    if kind is not None:
        _note(kind, trace)


def _in_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_type is not SystemExit:
        _note(ended.exc_type, ended.exc_traceback)


def _unraisable(ignored: sys.UnraisableHookArgs) -> None:
    _note(ignored.exc_type, ignored.exc_traceback)


def _note(kind: type[BaseException], trace: TracebackType | None) -> None:
    frames = traceback.extract_tb(trace)
    place = f"{frames[-1].name}:{frames[-1].lineno}" if frames else "?"
    _log.error("%s in %s", kind.__qualname__, place)
