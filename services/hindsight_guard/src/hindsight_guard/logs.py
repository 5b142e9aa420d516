"""Hindsight's logs without words (I13).

At ERROR level, Hindsight 1.1.0 logs the input of a retain that failed, and at INFO the beginning of
every question. What a record says is therefore withheld; who said it, where and how bad stays.
"""

from __future__ import annotations

import logging
from typing import Any

_OURS = "hindsight_guard"


def withhold_words() -> None:
    """From now on, every record of other packages in this process keeps logger, level, place and
    exception type only."""
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
