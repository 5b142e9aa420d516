"""JSON objects in which every name occurs once.

RFC 8259 leaves repeated names open and RFC 7519 section 4 lets a verifier refuse them. Two readers of one
document must never see two different values, so this one refuses, and refuses NaN and Infinity too.
"""

import json
from typing import NoReturn


def parse_object(document: str | bytes) -> dict[str, object]:
    """Parse a document whose top level is an object.

    Bytes must be UTF-8. Raises ``ValueError`` with a fixed text that repeats nothing of the document.
    """
    try:
        text = document.decode("utf-8") if isinstance(document, bytes) else document
        parsed = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError("not a JSON document with unique names") from None
    if not isinstance(parsed, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004  (a malformed document, not a wrong argument)
    return parsed


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("repeated name")
    return members


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError("not a JSON number")
