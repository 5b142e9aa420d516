"""JSON logs that cannot carry content (I13).

Our own events are fixed words with identifiers, counts and states as fields. Exceptions are
reduced to their type and the places in our code they passed. Records of other libraries keep
their logger, level and place, never their message: an ``asyncio`` or driver message quotes
whatever the exception quoted.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import MutableMapping
from functools import partial
from types import TracebackType
from typing import Any, TextIO

import structlog


def configure_logs(service: str, level: str = "info", stream: TextIO | None = None) -> None:
    """Sends every log line of the process to ``stream`` (default: standard error) as one JSON object."""
    numeric = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            partial(_named, service),
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _exception_without_words,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(numeric),
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [_ForeignRecords()]
    root.setLevel(max(numeric, logging.WARNING))
    logging.captureWarnings(capture=True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda args: _uncaught(args.exc_type, args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: _uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def _uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    # Python would print the message, and with it whatever the message quotes.
    structlog.get_logger().critical("uncaught error", exc_info=error or kind())


def _named(
    service: str, logger: Any, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    # Not a context variable: other threads' lines would lack it.
    event["service"] = service
    return event


def _exception_without_words(
    logger: Any, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    info = event.pop("exc_info", None)
    if not info:
        return event
    error = info if isinstance(info, BaseException) else sys.exc_info()[1]
    if error is not None:
        event["error_type"] = type(error).__qualname__
        event["error_at"] = [
            f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-8:]
        ]
    return event


class _ForeignRecords(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        structlog.get_logger().log(
            record.levelno,
            "library log",
            logger=record.name,
            at=f"{record.module}:{record.lineno}",
            error_type=type(error).__qualname__ if error else None,
        )
