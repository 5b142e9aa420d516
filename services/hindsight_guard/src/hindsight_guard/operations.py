"""The one table of what a token may let through: operation → route, body and Hindsight's own hooks.

Whatever is not here is closed, in front of Hindsight (asgi.py) and inside it (validator.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_BANK = r"[a-z0-9][a-z0-9_-]{7,127}"
_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}"

#: The only banks and ids that exist for us. What has another form could never be deleted through the door.
BANK = re.compile(_BANK, re.ASCII)
ID = re.compile(_ID, re.ASCII)

#: The bank settings that our services use and the values they may have; no other can be set, even for a
#: right bank. In any mode but ``chunks`` a model would rewrite what a person confirmed (I2).
CONFIGURABLE: Mapping[str, tuple[str | bool, ...]] = {
    "retain_extraction_mode": ("chunks",),
    "enable_graph_retrieval": (True, False),
    "enable_observations": (True, False),
    "enable_auto_consolidation": (True, False),
    "enable_temporal_retrieval": (True, False),
}


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
    pattern = re.compile(f"/v1/default/banks/(?P<bank>{_BANK}){path}", re.ASCII)
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
