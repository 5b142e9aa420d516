"""Spans that carry only attributes known to hold no content (I13).

Instrumentation libraries attach what they find useful: URLs, statements, exception messages.
What leaves the process is therefore decided here, by an allow-list, not by each of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.propagators.textmap import CarrierT, Setter, default_setter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

#: Attributes that may leave the process: protocol facts, codes, counts and our own identifiers.
ALLOWED_ATTRIBUTES = frozenset(
    {
        "db.system",
        "db.system.name",
        "error.type",
        "exception.type",
        "http.method",
        "http.request.method",
        "http.response.status_code",
        "http.status_code",
        "rpc.grpc.status_code",
        "rpc.method",
        "rpc.service",
        "rpc.system",
    }
)
_OWN_PREFIX = "openbot."


class ContentFreeExporter(SpanExporter):
    """Hands spans on without events' words, status descriptions and unlisted attributes."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._inner.export([_reduced(span) for span in spans])

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)


def _reduced(span: ReadableSpan) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=_without_state(span.get_span_context()),
        parent=_without_state(span.parent),
        resource=span.resource,
        attributes=_allowed(span.attributes),
        events=[Event(event.name, _allowed(event.attributes), event.timestamp) for event in span.events],
        links=(),
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _without_state(context: SpanContext | None) -> SpanContext | None:
    # The trace state is the caller's to fill, with anything.
    return context and SpanContext(context.trace_id, context.span_id, context.is_remote, context.trace_flags)


def _allowed(attributes: object) -> dict[str, str | bool | int | float]:
    pairs = attributes.items() if hasattr(attributes, "items") else ()
    return {key: value for key, value in pairs if key in ALLOWED_ATTRIBUTES or key.startswith(_OWN_PREFIX)}


def configure_spans(
    service: str, *, otlp_endpoint: str | None = None, file: Path | None = None
) -> TracerProvider:
    """Starts tracing for the process and returns the provider, to be shut down at its end.

    ``otlp_endpoint`` is the collector's gRPC endpoint (URL); ``file`` receives spans as JSON for
    development. With neither, spans are made (so that context propagates) and dropped.
    """
    provider = TracerProvider(
        # Ours to decide: a caller must not be able to erase its own traces.
        sampler=ALWAYS_ON,
        resource=Resource.create({"service.name": service}),
    )
    if otlp_endpoint:
        exporter = OTLPSpanExporter(endpoint=otlp_endpoint)
        provider.add_span_processor(BatchSpanProcessor(ContentFreeExporter(exporter)))
    if file:
        out = os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8")
        provider.add_span_processor(SimpleSpanProcessor(ContentFreeExporter(ConsoleSpanExporter(out=out))))
    trace.set_tracer_provider(provider)
    # Not baggage: it would carry whatever a caller sends on to the index.
    propagate.set_global_textmap(_TraceParent())
    return provider


class _TraceParent(TraceContextTextMapPropagator):
    """Passes ids on and no trace state, which is the caller's to fill."""

    def inject(
        self,
        carrier: CarrierT,
        context: Context | None = None,
        setter: Setter[CarrierT] = default_setter,
    ) -> None:
        span = trace.get_current_span(context)
        bare = _without_state(span.get_span_context())
        if bare is not None:
            super().inject(carrier, trace.set_span_in_context(NonRecordingSpan(bare)), setter)
