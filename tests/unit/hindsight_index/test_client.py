"""What the client makes of answers, right and wrong. Real ones are in the contract tests."""

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from devstack.issuer import SYNC_DAEMON_SIGNER, DevelopmentIssuer
from hindsight_index import (
    BANK_SETTINGS,
    BankMissing,
    BankTokenSigner,
    Document,
    HindsightError,
    HindsightIndex,
    HindsightProtocolError,
    HindsightRefused,
    HindsightUnavailable,
    Hit,
    IndexOperation,
    NothingToIndex,
)

BANK = "bank-0123456789"
SECRET = "what-nobody-may-read"

Answer = httpx.Response | Exception
Call = Callable[[HindsightIndex], Awaitable[object]]

CALLS: dict[str, Call] = {
    "recall": lambda index: index.recall(BANK, SECRET, max_tokens=9, timeout_s=5),
    "ensure_bank": lambda index: index.ensure_bank(BANK),
    "bank_exists": lambda index: index.bank_exists(BANK),
    "retain": lambda index: index.retain(BANK, "d", SECRET),
    "document": lambda index: index.document(BANK, "d"),
    "delete_document": lambda index: index.delete_document(BANK, "d"),
    "count_units": lambda index: index.count_units(BANK, "d"),
    "count_observations": lambda index: index.count_observations(BANK),
    "operations": lambda index: index.operations(BANK),
    "operation_payload_keys": lambda index: index.operation_payload_keys(BANK, "o"),
}


class Server:
    """Answers what it is told to and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def signer(tmp_path: Path) -> BankTokenSigner:
    issuer = DevelopmentIssuer(tmp_path / "issuer")
    return BankTokenSigner(issuer.bank_key_file(SYNC_DAEMON_SIGNER).read_bytes(), issuer=SYNC_DAEMON_SIGNER)


@pytest.fixture
async def index(server: Server, signer: BankTokenSigner) -> AsyncIterator[HindsightIndex]:
    transport = httpx.MockTransport(server)
    async with HindsightIndex("https://index.example", signer, timeout_s=5, transport=transport) as index:
        yield index


def answer(status: int, body: object, **headers: str) -> httpx.Response:
    return httpx.Response(status, json=body, headers=headers)


def claims(request: httpx.Request) -> dict[str, Any]:
    token = request.headers["authorization"].removeprefix("Bearer ")
    return jwt.decode(token, options={"verify_signature": False})


async def test_of_a_recall_only_ids_and_scores_stay(index: HindsightIndex, server: Server) -> None:
    server.answers = [
        answer(
            200,
            {
                "results": [
                    {"document_id": "b", "text": SECRET, "scores": {"semantic": 0.5, "final": 1.1}},
                    {"document_id": None, "text": SECRET, "scores": {"semantic": 0.9}},
                    {"document_id": "a", "text": SECRET, "scores": {"semantic": None}},
                    {"document_id": "c", "text": SECRET},
                ]
            },
        )
    ]
    hits = await index.recall(BANK, "q", max_tokens=77, timeout_s=5)
    assert hits == [Hit("b", 0.5), Hit("a", None), Hit("c", None)]
    asked = json.loads(server.requests[0].content)
    assert asked == {"query": "q", "types": ["world"], "max_tokens": 77}


async def test_each_call_presents_a_token_for_its_bank_and_operation_alone(
    index: HindsightIndex, server: Server
) -> None:
    server.answers = [answer(200, {})]
    for call in CALLS.values():
        with suppress(HindsightProtocolError):
            await call(index)
    assert {claims(request)["bank"] for request in server.requests} == {BANK}
    assert all(len(claims(request)["ops"]) == 1 for request in server.requests)


async def test_a_bank_is_made_and_then_set(index: HindsightIndex, server: Server) -> None:
    server.answers = [answer(200, {})]
    await index.ensure_bank(BANK)
    made, settled = server.requests
    assert (made.method, claims(made)["ops"]) == ("PUT", ["bank.create"])
    assert (settled.method, claims(settled)["ops"]) == ("PATCH", ["bank.configure"])
    assert json.loads(settled.content) == {"updates": dict(BANK_SETTINGS)}


async def test_writes_carry_the_expiry_that_the_caller_sets(index: HindsightIndex, server: Server) -> None:
    server.answers = [answer(200, {"success": True})]
    until = datetime.now(UTC) + timedelta(seconds=7)
    await index.retain(BANK, "d", "text", expires_at=until)
    await index.delete_document(BANK, "d", expires_at=until)
    await index.ensure_bank(BANK, expires_at=until)
    assert {claims(request)["exp"] for request in server.requests} == {int(until.timestamp())}


async def test_what_hindsight_says_is_missing_is_missing(index: HindsightIndex, server: Server) -> None:
    server.answers = [answer(404, {"detail": "Document not found"})]
    assert await index.document(BANK, "d") is None
    assert await index.delete_document(BANK, "d") is False
    server.answers = [answer(404, {"detail": f"Bank '{BANK}' not found"})]
    assert await index.bank_exists(BANK) is False
    for name in ("recall", "count_units", "count_observations", "operations"):
        with pytest.raises(BankMissing):
            await CALLS[name](index)


@pytest.mark.parametrize(
    "response",
    [
        answer(404, {"detail": "refused"}),
        answer(404, {"detail": "Not Found"}),
        answer(404, {"detail": "Bank 'bank-9876543210' not found"}),
        answer(404, {"detail": [SECRET]}),
        answer(404, {}),
        httpx.Response(404, text=f"<html>{SECRET}</html>"),
    ],
    ids=lambda response: response.text,
)
@pytest.mark.parametrize("name", CALLS)
async def test_any_other_404_is_never_taken_for_absence(
    index: HindsightIndex, server: Server, name: str, response: httpx.Response
) -> None:
    server.answers = [response]
    with pytest.raises(HindsightProtocolError):
        await CALLS[name](index)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("response", "error"),
    [
        (answer(401, {"detail": SECRET}), HindsightRefused),
        (answer(403, {"detail": SECRET}), HindsightRefused),
        (answer(500, {"detail": SECRET}), HindsightUnavailable),
        (answer(503, {"detail": SECRET}), HindsightUnavailable),
        (answer(429, {"detail": SECRET}), HindsightUnavailable),
        (answer(400, {"detail": SECRET}), HindsightProtocolError),
        (answer(302, {}, location="https://elsewhere.example"), HindsightProtocolError),
        (answer(410, {"detail": SECRET}), HindsightProtocolError),
        (httpx.ConnectError(SECRET), HindsightUnavailable),
        (httpx.ReadTimeout(SECRET), HindsightUnavailable),
        (httpx.RemoteProtocolError(SECRET), HindsightUnavailable),
        (httpx.DecodingError(SECRET), HindsightProtocolError),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_a_failure_is_named_and_never_quoted(
    index: HindsightIndex, server: Server, name: str, response: Answer, error: type[HindsightError]
) -> None:
    server.answers = [response]
    with pytest.raises(HindsightError) as caught:
        await CALLS[name](index)
    assert type(caught.value) is error
    assert SECRET not in repr(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"ensure_bank", "bank_exists", "delete_document"}))
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"results": [{"document_id": 7}], "total": -1, "operations": 1, "task_payload": []}',
        b'{"results": [{"document_id": "d", "scores": {"semantic": NaN}}], "total": "1"}',
        b'{"results": [{"document_id": "d", "scores": {"semantic": "0.5"}}], "total": 1.5}',
        b'{"success": false, "results": {}, "id": "another", "original_text": null, "memory_unit_count": 1}',
        b'{"results":' + b"[" * 100_000,
    ],
    ids=lambda body: repr(body[:60]),
)
async def test_an_answer_of_another_shape_makes_no_sense(
    index: HindsightIndex, server: Server, name: str, body: bytes
) -> None:
    server.answers = [httpx.Response(200, content=body)]
    with pytest.raises(HindsightProtocolError):
        await CALLS[name](index)


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [("7", 7.0), ("0", 0.0), ("-3", 0.0), ("9e99", 600.0), ("inf", None), ("nan", None), ("Tue, 01", None)],
)
async def test_the_wait_that_the_index_asks_for_is_passed_on_within_reason(
    index: HindsightIndex, server: Server, header: str, wait_s: float | None
) -> None:
    server.answers = [answer(503, {}, **{"retry-after": header})]
    with pytest.raises(HindsightUnavailable) as caught:
        await index.bank_exists(BANK)
    assert caught.value.retry_after == wait_s


async def test_a_call_ends_in_time_even_if_the_answer_drips(signer: BankTokenSigner) -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.01)
            yield b" "

    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=drip()))
    async with HindsightIndex("https://index.example", signer, transport=transport) as index:
        with pytest.raises(HindsightUnavailable):
            await index.recall(BANK, "q", max_tokens=9, timeout_s=0.1)


def operations_page(ids: range, total: int) -> httpx.Response:
    return answer(
        200,
        {
            "total": total,
            "operations": [
                {"id": str(each), "operation_type": "graph_maintenance", "status": "completed"}
                for each in ids
            ],
        },
    )


async def test_operations_are_read_to_the_last_page(index: HindsightIndex, server: Server) -> None:
    server.answers = [operations_page(range(100), 101), operations_page(range(100, 101), 101)]
    found = await index.operations(BANK)
    assert len(found) == 101
    assert found[0] == IndexOperation("0", "graph_maintenance", "completed")


async def test_a_list_that_moves_is_read_again_and_never_taken_as_whole(
    index: HindsightIndex, server: Server
) -> None:
    moved = [operations_page(range(100), 102), operations_page(range(101, 102), 102)]
    whole = [operations_page(range(100), 102), operations_page(range(100, 102), 102)]
    server.answers = [*moved, *whole]
    assert len(await index.operations(BANK)) == 102
    server.answers = [*moved, *moved, *moved]
    with pytest.raises(HindsightUnavailable):
        await index.operations(BANK)


async def test_of_a_payload_only_the_names_stay(index: HindsightIndex, server: Server) -> None:
    server.answers = [
        answer(200, {"status": "completed", "task_payload": {"bank_id": BANK, "items": [SECRET]}})
    ]
    assert await index.operation_payload_keys(BANK, "o") == frozenset({"bank_id", "items"})
    server.answers = [answer(200, {"status": "not_found", "task_payload": None})]
    assert await index.operation_payload_keys(BANK, "o") is None


async def test_a_document_is_its_text_and_its_units(index: HindsightIndex, server: Server) -> None:
    server.answers = [answer(200, {"id": "d", "original_text": "text", "memory_unit_count": 2, "tags": []})]
    assert await index.document(BANK, "d") == Document("text", 2)


async def test_units_are_counted_without_asking_for_them(index: HindsightIndex, server: Server) -> None:
    server.answers = [answer(200, {"items": [], "total": 3})]
    assert await index.count_units(BANK, "d") == 3
    assert await index.count_observations(BANK) == 3
    asked = [dict(request.url.params) for request in server.requests]
    assert asked == [{"document_id": "d", "limit": "0"}, {"type": "observation", "limit": "0"}]


@pytest.mark.parametrize("bank", ["", "short", "bank/../other-bank", "Bank-0123456789", "bank-0123456789?x"])
async def test_a_bank_of_another_name_is_not_even_asked_for(
    index: HindsightIndex, server: Server, bank: str
) -> None:
    with pytest.raises(ValueError, match="no bank of ours"):
        await index.bank_exists(bank)
    assert not server.requests


@pytest.mark.parametrize("document_id", ["", "..", "a/b", "a?b", "a%2Fb", "a#b", "-a"])
async def test_an_id_of_another_form_is_not_even_asked_for(
    index: HindsightIndex, server: Server, document_id: str
) -> None:
    for call in (index.document, index.delete_document, index.count_units, index.operation_payload_keys):
        with pytest.raises(ValueError, match="no such id"):
            await call(BANK, document_id)
    assert not server.requests


@pytest.mark.parametrize("url", ["http://index.example", "http://10.0.0.7:8888", "ftp://127.0.0.1", "index"])
def test_plain_http_is_for_this_machine_only(signer: BankTokenSigner, url: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        HindsightIndex(url, signer)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8888", "http://[::1]:8888", "http://localhost:8888"])
async def test_loopback_may_be_plain(signer: BankTokenSigner, url: str) -> None:
    async with HindsightIndex(url, signer):
        pass


async def test_proxies_of_the_environment_are_not_asked(
    signer: BankTokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def proxy(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        writer.close()

    async with await asyncio.start_server(proxy, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, address)
        async with HindsightIndex("http://127.0.0.1:9", signer, timeout_s=2) as index:
            with pytest.raises(HindsightUnavailable):
                await index.bank_exists(BANK)
    assert not asked.is_set()


async def test_a_text_that_is_not_unicode_is_refused_and_not_quoted(
    index: HindsightIndex, server: Server
) -> None:
    text = f"{SECRET} \ud800"
    for call in (index.retain(BANK, "d", text), index.recall(BANK, text, max_tokens=9, timeout_s=5)):
        with pytest.raises(ValueError, match="not Unicode") as caught:
            await call
        assert SECRET not in repr(caught.value)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert not server.requests


async def test_a_redirect_is_not_followed(index: HindsightIndex, server: Server) -> None:
    server.answers = [answer(307, {}, location="https://elsewhere.example/v1/default/banks")]
    for call in CALLS.values():
        server.requests.clear()
        with pytest.raises(HindsightProtocolError):
            await call(index)
        assert [request.url.host for request in server.requests] == ["index.example"]


@pytest.mark.parametrize("text", ["", " \n", "\x07", "⟦hs-att:0123456789ab⟧"])
async def test_a_text_of_which_nothing_would_stay_is_not_sent(
    index: HindsightIndex, server: Server, text: str
) -> None:
    with pytest.raises(NothingToIndex):
        await index.retain(BANK, "d", text)
    assert not server.requests
