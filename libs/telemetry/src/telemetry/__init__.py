"""Logs and spans that carry states, counts and identifiers, never content (I13)."""

from telemetry.logs import configure_logs
from telemetry.spans import ContentFreeExporter, configure_spans

__all__ = ["ContentFreeExporter", "configure_logs", "configure_spans"]
