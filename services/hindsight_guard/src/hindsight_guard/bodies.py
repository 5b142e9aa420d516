"""Which bodies our services send; the door refuses all others, such as an asynchronous retain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from hindsight_guard.operations import CONFIGURABLE, ID

_MOST_TOKENS = 32_768


def parsed(body: bytes) -> Any:
    """The body as JSON that every parser reads alike. Raises ``ValueError`` for anything that Hindsight's
    might read in another way: another encoding than UTF-8, a key given twice, numbers that JSON has not."""
    try:
        return json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is given twice")
    return members


def _refuse(_constant: str) -> NoReturn:
    raise ValueError("not a JSON number")


def body_allowed(operation: str, body: Any) -> bool:
    """Whether a JSON body is one that our services send. Anything else, such as ``async``, is refused:
    an asynchronous retain outlives a delete and leaves its text in a task payload (I7)."""
    if not isinstance(body, dict):
        return False
    match operation:
        case "recall":
            return _is_question(body)
        case "bank.create":
            return not body
        case "bank.configure":
            return body.keys() == {"updates"} and _are_settings(body["updates"])
        case "document.retain":
            items = body.get("items")
            return (
                body.keys() == {"items"}
                and isinstance(items, list)
                and bool(items)
                and all(_is_item(item) for item in items)
            )
    return False


def _is_question(body: Mapping[str, Any]) -> bool:
    return (
        body.keys() == {"query", "types", "max_tokens"}
        and isinstance(body["query"], str)
        and body["types"] == ["world"]
        and type(body["max_tokens"]) is int
        and 0 < body["max_tokens"] <= _MOST_TOKENS
    )


def _are_settings(updates: Any) -> bool:
    # The type as well, for 0 and 1 equal False and True.
    return isinstance(updates, dict) and all(
        any(type(value) is type(each) and value == each for each in CONFIGURABLE.get(name, ()))
        for name, value in updates.items()
    )


def _is_item(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.keys() == {"content", "document_id"}
        and all(isinstance(value, str) and value for value in item.values())
        and ID.fullmatch(item["document_id"]) is not None
    )
