"""The only module that speaks HTTP to Hindsight."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from hindsight_index import answers
from hindsight_index.bank_settings import BANK_SETTINGS
from hindsight_index.bank_tokens import BankTokenSigner
from hindsight_index.errors import (
    BankMissing,
    HindsightProtocolError,
    HindsightRefused,
    HindsightUnavailable,
    NothingToIndex,
)
from hindsight_index.indexable_text import indexable
from hindsight_index.responses import of_bank, ok, parsed, retry_after, says_no_document

_PAGE = 100
_LISTINGS = 3

# What the guard lets through as a path segment. Anything else would be answered 404 for the wrong reason.
_BANK = re.compile(r"[a-z0-9][a-z0-9_-]{7,127}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", re.ASCII)


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

    def holds(self, text: str) -> bool:
        """Whether ``retain`` of ``text`` has had its effect: these words, and units to find them by."""
        return self.text == indexable(text) and self.unit_count > 0


@dataclass(frozen=True, slots=True)
class IndexOperation:
    """A background operation of the index."""

    id: str
    type: str
    status: str


class HindsightIndex:
    """Hindsight 1.1.0 behind our guard. Use as an async context manager.

    Every call signs a token for its bank and operation. Every method raises ``HindsightUnavailable``,
    ``HindsightRefused`` or ``HindsightProtocolError``, and ``ValueError`` for a bank or id that the guard
    would not let through and for a text that is not Unicode (lone surrogates); writing methods take
    ``expires_at``, after which the guard refuses them. ``timeout_s`` bounds a call as a whole. Plain HTTP
    is accepted for loopback addresses only (``ValueError``).

    Absence is only reported if Hindsight itself said so: a 404 with other words, such as one of the guard
    or of a proxy, is a ``HindsightProtocolError``, never evidence that something is gone (I8).
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
        if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(url.host)):
            raise ValueError("the index is reached by HTTPS; plain HTTP is for loopback addresses only")
        self._signer = signer
        self._timeout_s = timeout_s
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
        response = await self._call(
            "POST",
            "/memories/recall",
            bank,
            "recall",
            body={"query": query, "types": ["world"], "max_tokens": max_tokens},
            timeout_s=timeout_s,
        )
        answer = parsed(answers.RecallAnswer, of_bank(bank, response))
        return [
            Hit(each.document_id, each.scores.semantic if each.scores else None)
            for each in answer.results
            if each.document_id is not None
        ]

    async def ensure_bank(self, bank: str, *, expires_at: datetime | None = None) -> None:
        """Creates the bank if need be and sets it as ``BANK_SETTINGS`` says."""
        ok(await self._call("PUT", "", bank, "bank.create", body={}, expires_at=expires_at))
        body = {"updates": dict(BANK_SETTINGS)}
        ok(await self._call("PATCH", "/config", bank, "bank.configure", body=body, expires_at=expires_at))

    async def bank_exists(self, bank: str) -> bool:
        """Whether the index has the bank."""
        response = await self._call("GET", "/config", bank, "bank.read")
        try:
            of_bank(bank, response)
        except BankMissing:
            return False
        return True

    async def retain(
        self, bank: str, document_id: str, text: str, *, expires_at: datetime | None = None
    ) -> None:
        """Stores ``text`` under ``document_id``, replacing what is there; returns when it is stored.

        Success may be claimed without effect (an overtaken replace): read back and ask
        ``Document.holds``. What is stored is ``indexable(text)``; raises ``NothingToIndex`` if that is blank.
        """
        content = indexable(text)
        if not content.strip():
            raise NothingToIndex
        item = {"content": content, "document_id": document_id}
        response = await self._call(
            "POST",
            "/memories",
            bank,
            "document.retain",
            body={"items": [item]},
            expires_at=expires_at,
        )
        if not parsed(answers.RetainAnswer, ok(response)).success:
            raise HindsightProtocolError

    async def document(self, bank: str, document_id: str) -> Document | None:
        """What the bank holds under ``document_id``, None if nothing. Nothing is also what an unknown bank
        holds: ask ``bank_exists`` before you take it for a proof."""
        response = await self._call("GET", f"/documents/{_id(document_id)}", bank, "document.read")
        if says_no_document(response):
            return None
        answer = parsed(answers.DocumentAnswer, ok(response))
        if answer.id != document_id:
            raise HindsightProtocolError
        return Document(answer.original_text, answer.memory_unit_count)

    async def delete_document(
        self, bank: str, document_id: str, *, expires_at: datetime | None = None
    ) -> bool:
        """Deletes the document and its units. False if there was none."""
        path = f"/documents/{_id(document_id)}"
        response = await self._call("DELETE", path, bank, "document.delete", expires_at=expires_at)
        if says_no_document(response):
            return False
        ok(response)
        return True

    async def count_units(self, bank: str, document_id: str) -> int:
        """How many memory units of the bank come from the document. Raises ``BankMissing``.

        Observations are never among them, for they belong to no document: see ``count_observations``.
        """
        return await self._count(bank, {"document_id": _id(document_id)})

    async def count_observations(self, bank: str) -> int:
        """How many observations the bank holds; none unless somebody switched them on. Raises
        ``BankMissing``."""
        return await self._count(bank, {"type": "observation"})

    async def _count(self, bank: str, which: dict[str, str | int]) -> int:
        # With a limit of 0 the answer has the total and no text.
        query = {**which, "limit": 0}
        response = await self._call("GET", "/memories/list", bank, "units.list", query=query)
        return parsed(answers.UnitsAnswer, of_bank(bank, response)).total

    async def operations(self, bank: str) -> Sequence[IndexOperation]:
        """Every background operation that the index still lists for the bank. Raises ``BankMissing``.

        A list that moves while it is read page by page is read again, so that none is missed.
        """
        for _ in range(_LISTINGS):
            found, total = await self._list_operations(bank)
            if len(found) >= total:
                return list(found.values())
        raise HindsightUnavailable

    async def _list_operations(self, bank: str) -> tuple[dict[str, IndexOperation], int]:
        found: dict[str, IndexOperation] = {}
        offset = 0
        while True:
            query: dict[str, str | int] = {"limit": _PAGE, "offset": offset}
            response = await self._call("GET", "/operations", bank, "operations.list", query=query)
            page = parsed(answers.OperationsAnswer, of_bank(bank, response))
            found |= {
                each.id: IndexOperation(each.id, each.operation_type, each.status) for each in page.operations
            }
            offset += _PAGE
            if offset >= page.total or not page.operations:
                return found, page.total

    async def operation_payload_keys(self, bank: str, operation_id: str) -> frozenset[str] | None:
        """The names in an operation's task payload, never the values; None if it has none, or if there is
        no such operation (which Hindsight answers with 200 and the status ``not_found``)."""
        response = await self._call(
            "GET",
            f"/operations/{_id(operation_id)}",
            bank,
            "operations.read",
            query={"include_payload": "true"},
        )
        payload = parsed(answers.OperationPayloadAnswer, ok(response)).task_payload
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
        if not _BANK.fullmatch(bank):
            raise ValueError("no bank of ours has such a name")
        token = self._signer.sign(bank, operation, expires_at=expires_at)
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        headers = {"authorization": f"Bearer {token}"}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = _json(body)
        try:
            # httpx bounds each step of a call only, so a server that drips would hold it for ever.
            async with asyncio.timeout(timeout_s):
                response = await self._http.request(
                    method,
                    f"/v1/default/banks/{bank}{path}",
                    content=content,
                    params=query,
                    headers=headers,
                    timeout=timeout_s,
                )
        except httpx.DecodingError:
            raise HindsightProtocolError from None
        except (httpx.HTTPError, TimeoutError):
            raise HindsightUnavailable from None
        if response.status_code in {401, 403}:
            raise HindsightRefused
        if response.status_code >= 500 or response.status_code == 429:
            raise HindsightUnavailable(retry_after(response))
        return response


def _json(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        # The original would quote the whole text.
        raise ValueError("the text is not Unicode: it has half a surrogate pair") from None


def _id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise ValueError("the index has no such id")
    return value


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
