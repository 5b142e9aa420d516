"""The only module that speaks HTTP to Hindsight."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from hindsight_index import answers
from hindsight_index.bank_settings import BANK_SETTINGS
from hindsight_index.bank_tokens import BankTokenSigner
from hindsight_index.errors import (
    BankMissing,
    HindsightProtocolError,
    HindsightRefused,
    HindsightUnavailable,
)

Shape = TypeVar("Shape", bound=BaseModel)

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Hit:
    """One document that matches, and its semantic score (cosine; None if only other arms found it)."""

    document_id: str
    semantic: float | None


@dataclass(frozen=True, slots=True)
class Document:
    """What the index holds under one document id."""

    text: str | None
    unit_count: int


@dataclass(frozen=True, slots=True)
class IndexOperation:
    """A background operation of the index."""

    id: str
    type: str
    status: str


class HindsightIndex:
    """Hindsight 1.1.0 behind our guard. Use as an async context manager.

    Every call signs a token for its bank and operation. Every method raises ``HindsightUnavailable``,
    ``HindsightRefused`` or ``HindsightProtocolError``; writing methods take ``expires_at``, after which
    the guard refuses them. Plain HTTP is accepted for loopback addresses only (``ValueError``).
    """

    def __init__(
        self,
        base_url: str,
        signer: BankTokenSigner,
        *,
        timeout_s: float = 30.0,
        ca_file: Path | None = None,
        max_connections: int = 20,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        url = httpx.URL(base_url)
        if url.scheme != "https" and not _is_loopback(url.host):
            raise ValueError("plain HTTP to the index is for loopback addresses only")
        self._signer = signer
        verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=str(ca_file)) if ca_file else True
        self._http = httpx.AsyncClient(
            base_url=url,
            timeout=timeout_s,
            verify=verify,
            trust_env=False,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=max_connections),
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def recall(self, bank: str, query: str, *, max_tokens: int, timeout_s: float) -> Sequence[Hit]:
        """Matching documents, best first as the index has it. Raises ``BankMissing``.

        Only ids and scores leave this method (I2).
        """
        answer = _parsed(
            answers.RecallAnswer,
            _found(
                await self._call(
                    "POST",
                    f"/v1/default/banks/{bank}/memories/recall",
                    bank,
                    "recall",
                    body={"query": query, "types": ["world"], "max_tokens": max_tokens},
                    timeout_s=timeout_s,
                )
            ),
        )
        return [
            Hit(each.document_id, each.scores.semantic if each.scores else None)
            for each in answer.results
            if each.document_id is not None
        ]

    async def ensure_bank(self, bank: str, *, expires_at: datetime | None = None) -> None:
        """Creates the bank if need be and sets it as ``BANK_SETTINGS`` says."""
        path = f"/v1/default/banks/{bank}"
        _ok(await self._call("PUT", path, bank, "bank.create", body={}, expires_at=expires_at))
        settings = {"updates": dict(BANK_SETTINGS)}
        _ok(
            await self._call(
                "PATCH", f"{path}/config", bank, "bank.configure", body=settings, expires_at=expires_at
            )
        )

    async def bank_exists(self, bank: str) -> bool:
        """Whether the index has the bank."""
        response = await self._call("GET", f"/v1/default/banks/{bank}/config", bank, "bank.read")
        if response.status_code == httpx.codes.NOT_FOUND:
            return False
        _ok(response)
        return True

    async def retain(
        self, bank: str, document_id: str, text: str, *, expires_at: datetime | None = None
    ) -> None:
        """Stores ``text`` under ``document_id``, replacing what is there; returns when it is stored.

        Success may be claimed without effect (an overtaken replace): read back.
        """
        item = {"content": text, "document_id": document_id}
        response = await self._call(
            "POST",
            f"/v1/default/banks/{bank}/memories",
            bank,
            "document.retain",
            body={"items": [item]},
            expires_at=expires_at,
        )
        if not _parsed(answers.RetainAnswer, _ok(response)).success:
            raise HindsightProtocolError

    async def document(self, bank: str, document_id: str) -> Document | None:
        """What the bank holds under ``document_id``, None if nothing."""
        path = f"/v1/default/banks/{bank}/documents/{document_id}"
        response = await self._call("GET", path, bank, "document.read")
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        answer = _parsed(answers.DocumentAnswer, _ok(response))
        if answer.id != document_id:
            raise HindsightProtocolError
        return Document(answer.original_text, answer.memory_unit_count)

    async def delete_document(
        self, bank: str, document_id: str, *, expires_at: datetime | None = None
    ) -> bool:
        """Deletes the document and its units. False if there was none."""
        path = f"/v1/default/banks/{bank}/documents/{document_id}"
        response = await self._call("DELETE", path, bank, "document.delete", expires_at=expires_at)
        if response.status_code == httpx.codes.NOT_FOUND:
            return False
        _ok(response)
        return True

    async def count_units(self, bank: str, document_id: str) -> int:
        """How many memory units of the bank come from the document."""
        response = await self._call(
            "GET",
            f"/v1/default/banks/{bank}/memories/list",
            bank,
            "units.list",
            query={"document_id": document_id, "limit": 1},
        )
        return _parsed(answers.UnitsAnswer, _ok(response)).total

    async def operations(self, bank: str) -> Sequence[IndexOperation]:
        """Every background operation that the index still lists for the bank."""
        found: dict[str, IndexOperation] = {}
        offset = 0
        while True:
            response = await self._call(
                "GET",
                f"/v1/default/banks/{bank}/operations",
                bank,
                "operations.list",
                query={"limit": _PAGE, "offset": offset},
            )
            page = _parsed(answers.OperationsAnswer, _found(response))
            found |= {
                each.id: IndexOperation(each.id, each.operation_type, each.status) for each in page.operations
            }
            offset += _PAGE
            if offset >= page.total or not page.operations:
                return list(found.values())

    async def operation_payload_keys(self, bank: str, operation_id: str) -> frozenset[str] | None:
        """The names in an operation's task payload, never the values; None if it has none any more."""
        response = await self._call(
            "GET",
            f"/v1/default/banks/{bank}/operations/{operation_id}",
            bank,
            "operations.read",
            query={"include_payload": "true"},
        )
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        payload = _parsed(answers.OperationPayloadAnswer, _ok(response)).task_payload
        return None if payload is None else frozenset(payload)

    async def _call(
        self,
        method: str,
        path: str,
        bank: str,
        operation: str,
        *,
        body: dict[str, Any] | None = None,
        query: dict[str, str | int] | None = None,
        timeout_s: float | None = None,
        expires_at: datetime | None = None,
    ) -> httpx.Response:
        token = self._signer.sign(bank, operation, expires_at=expires_at)
        try:
            response = await self._http.request(
                method,
                path,
                json=body,
                params=query,
                headers={"authorization": f"Bearer {token}"},
                timeout=httpx.USE_CLIENT_DEFAULT if timeout_s is None else timeout_s,
            )
        except httpx.DecodingError:
            raise HindsightProtocolError from None
        except httpx.HTTPError:
            raise HindsightUnavailable from None
        if response.status_code in {401, 403}:
            raise HindsightRefused
        if response.status_code >= 500 or response.status_code == 429:
            raise HindsightUnavailable(_retry_after(response))
        return response


def _ok(response: httpx.Response) -> httpx.Response:
    if not response.is_success:
        raise HindsightProtocolError
    return response


def _found(response: httpx.Response) -> httpx.Response:
    if response.status_code == httpx.codes.NOT_FOUND:
        raise BankMissing
    return _ok(response)


def _parsed(shape: type[Shape], response: httpx.Response) -> Shape:
    try:
        return shape.model_validate_json(response.content)
    except ValidationError:
        raise HindsightProtocolError from None


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
