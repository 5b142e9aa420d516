"""Whatever happens, a log line or a span carries no words of anybody's (I13)."""

import io
import json
import logging
import re
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from telemetry import ContentFreeExporter, configure_logs

CANARY = "the canary sings on Tuesdays"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    for module, hook in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        monkeypatch.setattr(module, hook, getattr(module, hook))  # to be put back
    configure_logs("test", "debug", stream)
    yield stream
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.handlers, root.level = handlers, level
    logging.captureWarnings(capture=False)


def only(log: io.StringIO) -> dict[str, object]:
    (line,) = log.getvalue().splitlines()
    assert CANARY not in line
    parsed: dict[str, object] = json.loads(line)
    return parsed


def test_an_exception_is_its_type_and_the_places_it_passed(log: io.StringIO) -> None:
    try:
        raise ValueError(CANARY)
    except ValueError:
        structlog.get_logger().exception("unexpected error")
    line = only(log)
    assert line["error_type"] == "ValueError"
    assert re.fullmatch(
        r"\['test_an_exception_is_its_type_and_the_places_it_passed:\d+'\]", str(line["error_at"])
    )
    assert line["service"] == "test"


def test_records_of_other_libraries_keep_logger_level_and_place(log: io.StringIO) -> None:
    try:
        raise KeyError(CANARY)
    except KeyError:
        logging.getLogger("asyncio").error("Task failed: %s", CANARY, exc_info=True)
    line = only(log)
    assert (line["logger"], line["level"], line["error_type"]) == ("asyncio", "error", "KeyError")


def test_warnings_keep_their_words_to_themselves(log: io.StringIO) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn(CANARY, UserWarning, stacklevel=1)
    assert only(log)["logger"] == "py.warnings"


def test_an_error_that_nobody_caught_has_no_words_either(log: io.StringIO) -> None:
    def fails() -> None:
        raise RuntimeError(CANARY)

    thread = threading.Thread(target=fails)
    thread.start()
    thread.join()
    line = only(log)
    assert (line["event"], line["error_type"], line["service"]) == ("uncaught error", "RuntimeError", "test")


def test_an_error_at_the_end_of_an_object_or_the_program_has_no_words(log: io.StringIO) -> None:
    class Fragile:
        def __del__(self) -> None:
            raise ValueError(CANARY)

    Fragile()
    sys.excepthook(KeyError, KeyError(CANARY), None)
    assert CANARY not in log.getvalue()
    assert [json.loads(line)["error_type"] for line in log.getvalue().splitlines()] == [
        "ValueError",
        "KeyError",
    ]


def test_a_group_of_errors_keeps_its_words_to_itself(log: io.StringIO) -> None:
    structlog.get_logger().error("several", exc_info=ExceptionGroup(CANARY, [ValueError(CANARY)]))
    assert only(log)["error_type"] == "ExceptionGroup"


def test_the_trace_state_of_a_caller_is_not_handed_on() -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ContentFreeExporter(kept)))
    caller = TraceContextTextMapPropagator().extract(
        {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "tracestate": "note=canary"}
    )
    with provider.get_tracer("test").start_as_current_span("Recall", context=caller) as span:
        assert span.get_span_context().trace_state
    provider.shutdown()
    (found,) = kept.get_finished_spans()
    context = found.get_span_context()
    assert context is not None
    assert found.parent is not None
    assert context.trace_id == int("a" * 32, 16)
    assert not context.trace_state
    assert found.parent.span_id == int("b" * 16, 16)
    assert not found.parent.trace_state


def test_spans_lose_everything_that_is_not_listed() -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ContentFreeExporter(kept)))
    with provider.get_tracer("test").start_as_current_span("Recall") as span:
        span.set_attribute("rpc.method", "Recall")
        span.set_attribute("openbot.items", 3)
        span.set_attribute("db.statement", CANARY)
        span.set_attribute("url.full", CANARY)
        span.add_event("exception", {"exception.type": "ValueError", "exception.message": CANARY})
        span.set_status(Status(StatusCode.ERROR, CANARY))
    provider.shutdown()

    (found,) = kept.get_finished_spans()

    assert dict(found.attributes or {}) == {"rpc.method": "Recall", "openbot.items": 3}
    assert [dict(event.attributes or {}) for event in found.events] == [{"exception.type": "ValueError"}]
    assert found.status.status_code is StatusCode.ERROR
    assert CANARY not in found.to_json()
