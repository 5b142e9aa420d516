"""The one table of what a token may let through: operation → route, body and Hindsight's own hooks.

Whatever is not here is closed, in front of Hindsight (asgi.py) and inside it (validator.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BANK = r"(?P<bank>[a-z0-9][a-z0-9_-]{7,127})"
_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}"

#: The bank settings that our services use; others cannot be set, even for a right bank.
CONFIGURABLE = frozenset(
    {
        "retain_extraction_mode",
        "enable_graph_retrieval",
        "enable_observations",
        "enable_auto_consolidation",
        "enable_temporal_retrieval",
    }
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a token can allow. ``path`` matches the raw request path as a whole; ``query`` lists the
    parameters that may be given; ``body`` says whether one is expected; ``hooks`` are the names of
    Hindsight's bank read and write operations that it needs."""

    method: str
    path: re.Pattern[str]
    query: frozenset[str] = frozenset()
    body: bool = False
    hooks: frozenset[str] = frozenset()


def _operation(
    method: str, path: str, *hooks: str, query: tuple[str, ...] = (), body: bool = False
) -> Operation:
    pattern = re.compile(f"/v1/default/banks/{_BANK}{path}", re.ASCII)
    return Operation(method, pattern, frozenset(query), body, frozenset(hooks))


OPERATIONS: Mapping[str, Operation] = {
    "recall": _operation("POST", "/memories/recall", "get_bank_profile", body=True),
    "bank.create": _operation("PUT", "", "get_bank_profile", "update_bank", body=True),
    "bank.configure": _operation("PATCH", "/config", "update_bank_config", "get_bank_config", body=True),
    "bank.read": _operation("GET", "/config", "get_bank_config"),
    "document.retain": _operation("POST", "/memories", "get_bank_profile", body=True),
    "document.read": _operation("GET", f"/documents/{_ID}", "get_document", "get_bank_profile"),
    "document.delete": _operation(
        "DELETE", f"/documents/{_ID}", "delete_document", "submit_async_graph_maintenance"
    ),
    "units.list": _operation(
        "GET",
        "/memories/list",
        "list_memory_units",
        "get_bank_profile",
        query=("document_id", "type", "limit"),
    ),
    "operations.list": _operation("GET", "/operations", "list_operations", query=("limit", "offset")),
    "operations.read": _operation(
        "GET", f"/operations/{_ID}", "get_operation_status", query=("include_payload",)
    ),
    "operations.delete": _operation("DELETE", f"/operations/{_ID}/delete", "delete_operation"),
}


def find(method: str, path: str) -> tuple[str, str] | None:
    """(operation, bank) of a request, None if there is no such route."""
    for name, operation in OPERATIONS.items():
        if operation.method == method and (match := operation.path.fullmatch(path)):
            return name, match["bank"]
    return None


def body_allowed(operation: str, body: Any) -> bool:
    """Whether a JSON body is one that our services send. Anything else, such as ``async``, is refused:
    an asynchronous retain outlives a delete and leaves its text in a task payload (I7)."""
    if not isinstance(body, dict):
        return False
    match operation:
        case "recall":
            return body.keys() <= {"query", "types", "max_tokens"} and body.get("types") == ["world"]
        case "bank.create":
            return not body
        case "bank.configure":
            updates = body.get("updates")
            return body.keys() == {"updates"} and isinstance(updates, dict) and updates.keys() <= CONFIGURABLE
        case "document.retain":
            items = body.get("items")
            return (
                body.keys() == {"items"}
                and isinstance(items, list)
                and bool(items)
                and all(_is_item(item) for item in items)
            )
    return False


def _is_item(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.keys() == {"content", "document_id"}
        and all(isinstance(value, str) and value for value in item.values())
    )
