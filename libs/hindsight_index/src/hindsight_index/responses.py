"""Reading Hindsight's responses: what each status means, and which 404 says that something is gone."""

from __future__ import annotations

import math
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from hindsight_index import answers
from hindsight_index.errors import BankMissing, HindsightProtocolError

Shape = TypeVar("Shape", bound=BaseModel)

_LONGEST_WAIT_S = 600.0


def ok(response: httpx.Response) -> httpx.Response:
    """The response itself if it is a success. Raises ``HindsightProtocolError``."""
    if not response.is_success:
        raise HindsightProtocolError
    return response


def of_bank(bank: str, response: httpx.Response) -> httpx.Response:
    """As ``ok``, but raises ``BankMissing`` if Hindsight says that it has no ``bank``."""
    if response.status_code == httpx.codes.NOT_FOUND and _detail(response) == f"Bank '{bank}' not found":
        raise BankMissing
    return ok(response)


def says_no_document(response: httpx.Response) -> bool:
    """Whether Hindsight says that there is no such document. Raises ``HindsightProtocolError`` for any
    other 404."""
    return response.status_code == httpx.codes.NOT_FOUND and _detail(response) == "Document not found"


def _detail(response: httpx.Response) -> str:
    return parsed(answers.NotFoundAnswer, response).detail


def parsed(shape: type[Shape], response: httpx.Response) -> Shape:
    """The body in its ``shape``. Raises ``HindsightProtocolError``."""
    try:
        return shape.model_validate_json(response.content)
    except ValidationError:
        raise HindsightProtocolError from None


def retry_after(response: httpx.Response) -> float | None:
    """The wait that the server asks for, at most ten minutes, in seconds; None if it names none, or a
    date (RFC 9110, 10.2.3)."""
    try:
        wait_s = float(response.headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return min(max(0.0, wait_s), _LONGEST_WAIT_S) if math.isfinite(wait_s) else None
