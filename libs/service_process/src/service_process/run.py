"""From the command line to the last log line of a service."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from pydantic import ValidationError
from telemetry import configure_logs, configure_spans

from service_process.settings import ServiceSettings

Settings = TypeVar("Settings", bound=ServiceSettings)

_log = structlog.get_logger()


def run_service(
    name: str,
    settings_class: type[Settings],
    serve: Callable[[Settings, asyncio.Event], Awaitable[None]],
    *,
    speaking: tuple[type[Exception], ...],
) -> int:
    """Runs ``serve(settings, stop)`` until it returns; ``stop`` is set by SIGTERM and SIGINT.

    Returns the exit status: 0, or 2 if the settings are wrong or ``serve`` raises one of ``speaking``,
    ``OSError`` or ``ValueError``. The words of ``speaking`` errors and of ``OSError`` are logged, for they
    are ours or the operating system's about a file; those of a ``ValueError`` are not (I13).
    """
    try:
        settings = settings_class()
    except ValidationError as error:
        prefix = settings_class.model_config.get("env_prefix", "")
        for wrong in error.errors(include_input=False, include_url=False):
            variable = "_".join(map(str, (prefix.rstrip("_"), *wrong["loc"]))).upper()
            print(f"{variable}: {wrong['msg']}", file=sys.stderr)  # noqa: T201 - no log yet
        return 2
    configure_logs(name, settings.log_level)
    try:
        spans = configure_spans(name, otlp_endpoint=settings.otlp_endpoint, file=settings.spans_file)
    except OSError as error:
        _log.error("cannot start", why=str(error), exc_info=error)
        return 2
    AsyncPGInstrumentor().instrument()
    HTTPXClientInstrumentor().instrument()
    known: tuple[type[Exception], ...] = (*speaking, OSError, ValueError)
    try:
        asyncio.run(_until_signal(settings, serve))
    except known as error:
        why = None if isinstance(error, ValueError) else str(error)
        _log.error("cannot start", why=why, exc_info=error)
        return 2
    finally:
        spans.shutdown()
    return 0


async def _until_signal(
    settings: Settings, serve: Callable[[Settings, asyncio.Event], Awaitable[None]]
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(settings, stop)
    _log.info("stopped")
