"""The door in front of Hindsight: what reaches the application behind it, and what is answered instead."""

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import unquote

import pytest
from devstack.bank_tokens import BankTokens
from hindsight_guard.asgi import Door
from hindsight_guard.operations import OPERATIONS
from hindsight_guard.tokens import TokenVerifier

BANK = "bank-0123456789"
BASE = f"/v1/default/banks/{BANK}"

Message = MutableMapping[str, Any]

#: One right request for each operation: method, path and query, body.
RIGHT: dict[str, tuple[str, str, object]] = {
    "recall": ("POST", "/memories/recall", {"query": "q", "types": ["world"], "max_tokens": 100}),
    "bank.create": ("PUT", "", {}),
    "bank.configure": ("PATCH", "/config", {"updates": {"retain_extraction_mode": "chunks"}}),
    "bank.read": ("GET", "/config", None),
    "document.retain": ("POST", "/memories", {"items": [{"content": "c", "document_id": "d"}]}),
    "document.read": ("GET", "/documents/d-1", None),
    "document.delete": ("DELETE", "/documents/d-1", None),
    "units.list": ("GET", "/memories/list?document_id=d&limit=0", None),
    "operations.list": ("GET", "/operations?limit=100&offset=0", None),
    "operations.read": ("GET", "/operations/o-1?include_payload=true", None),
    "operations.delete": ("DELETE", "/operations/o-1/delete", None),
}


class Behind:
    """The application behind the door: reads the body and answers 299."""

    def __init__(self) -> None:
        self.scopes: list[MutableMapping[str, Any]] = []
        self.body = b""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        if scope["type"] != "http":
            return
        while True:
            message = await receive()
            self.body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": b"behind"})


class Caller:
    """Sends raw requests, as uvicorn would hand them on."""

    def __init__(self, door: Door, behind: Behind, api: BankTokens, daemon: BankTokens) -> None:
        self._door = door
        self._api, self._daemon = api, daemon
        self.behind = behind

    def token(self, operation: str, bank: object = BANK) -> str:
        signer = self._api if operation == "recall" else self._daemon
        return signer.token(bank, operation)

    async def send(
        self,
        method: str,
        target: str,
        *,
        token: str | None = None,
        headers: list[tuple[bytes, bytes]] | None = None,
        chunks: list[bytes] | None = None,
        **scope: Any,
    ) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        if token is not None:
            headers = [*(headers or []), (b"authorization", f"Bearer {token}".encode())]
        full: MutableMapping[str, Any] = {
            "type": "http",
            "scheme": "http",
            "server": ("127.0.0.1", 8888),
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": headers or [],
        } | scope
        pieces = list(chunks or [b""])
        sent: list[Message] = []

        async def receive() -> Message:
            if not pieces:
                await asyncio.sleep(3600)
            body = pieces.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(pieces)}

        async def send(message: Message) -> None:
            sent.append(message)

        await self._door(full, receive, send)
        body = b"".join(message.get("body", b"") for message in sent)
        return sent[0]["status"], body

    async def right(self, operation: str, **changes: Any) -> int:
        """The right request for ``operation`` with its right token."""
        method, target, body = RIGHT[operation]
        arguments: dict[str, Any] = {"token": self.token(operation)} | changes
        if body is not None:
            arguments.setdefault("chunks", [json.dumps(body).encode()])
        status, _ = await self.send(method, f"{BASE}{target}", **arguments)
        return status


@pytest.fixture
def caller(verifier: TokenVerifier, api: BankTokens, daemon: BankTokens) -> Caller:
    behind = Behind()
    return Caller(Door(behind, verifier), behind, api, daemon)


def test_every_operation_has_a_right_request_here() -> None:
    assert RIGHT.keys() == OPERATIONS.keys()


@pytest.mark.parametrize("operation", RIGHT)
async def test_a_right_request_passes_with_its_body(caller: Caller, operation: str) -> None:
    assert await caller.right(operation) == 299
    body = RIGHT[operation][2]
    assert caller.behind.body == (b"" if body is None else json.dumps(body).encode())


@pytest.mark.parametrize("token_for", RIGHT)
@pytest.mark.parametrize("operation", RIGHT)
async def test_a_token_opens_its_own_operation_only(caller: Caller, operation: str, token_for: str) -> None:
    status = await caller.right(operation, token=caller.token(token_for))
    assert status == (299 if operation == token_for else 403)


@pytest.mark.parametrize("operation", RIGHT)
async def test_a_token_opens_its_own_bank_only(caller: Caller, operation: str) -> None:
    assert await caller.right(operation, token=caller.token(operation, "bank-9876543210")) == 403
    assert not caller.behind.scopes


@pytest.mark.parametrize("operation", RIGHT)
async def test_nothing_passes_without_a_token(caller: Caller, operation: str) -> None:
    assert await caller.right(operation, token=None) == 401
    assert await caller.right(operation, token="garbage") == 401
    token = caller.token(operation).encode()
    for wrong in ([(b"authorization", token)], [(b"authorization", b"Basic " + token)]):
        assert await caller.right(operation, token=None, headers=wrong) == 401
    twice = [(b"authorization", b"Bearer " + token)] * 2
    assert await caller.right(operation, token=None, headers=twice) == 401
    assert not caller.behind.scopes


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready"])
async def test_health_is_open_for_reading(caller: Caller, path: str) -> None:
    assert (await caller.send("GET", path))[0] == 299
    # How it is, not why: Hindsight quotes errors of its database there.
    assert (await caller.send("GET", path))[1] == b"{}"
    for method in ("HEAD", "POST", "OPTIONS", "DELETE"):
        assert (await caller.send(method, path))[0] == 404
    assert (await caller.send("GET", f"{path}?verbose=1"))[0] == 404
    assert (await caller.send("GET", f"{path}/"))[0] == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", ""),
        ("GET", "*"),
        ("OPTIONS", "*"),
        ("GET", "/docs"),
        ("GET", "/redoc"),
        ("GET", "/openapi.json"),
        ("GET", "/metrics"),
        ("GET", "/version"),
        ("GET", "/v1/version"),
        ("POST", "/mcp"),
        ("POST", f"/mcp/{BANK}/"),
        ("GET", "/v1/default/banks"),
        ("GET", BASE),
        ("POST", BASE),
        ("DELETE", BASE),
        ("HEAD", f"{BASE}/config"),
        ("OPTIONS", f"{BASE}/config"),
        ("DELETE", f"{BASE}/config"),
        ("get", f"{BASE}/config"),
        ("GET", f"{BASE}/config/"),
        ("GET", f"{BASE}/Config"),
        ("GET", f"{BASE}//config"),
        ("GET", f"/{BASE}/config"),
        ("GET", f"{BASE}/./config"),
        ("GET", f"{BASE}/x/../config"),
        ("GET", f"{BASE}/config%2F"),
        ("GET", f"{BASE}/%63onfig"),
        ("GET", f"{BASE}%2Fconfig"),
        ("GET", f"{BASE}/config%00"),
        ("GET", f"{BASE}/config%0A"),
        ("GET", f"{BASE}/config\n"),
        ("GET", f"{BASE};x/config"),
        ("GET", "/v1/default/banks/short/config"),
        ("GET", f"/v1/default/banks/{BANK.upper()}/config"),
        ("GET", f"/v1/default/banks/{BANK}é/config"),
        ("GET", f"/v1/other/banks/{BANK}/config"),
        ("GET", f"/v2/default/banks/{BANK}/config"),
        ("GET", f"http://hindsight{BASE}/config"),
        ("GET", f"{BASE}/documents"),
        ("GET", f"{BASE}/documents/"),
        ("GET", f"{BASE}/documents/d/history"),
        ("GET", f"{BASE}/documents/d%2Fhistory"),
        ("GET", f"{BASE}/documents/.."),
        ("GET", f"{BASE}/documents/-d"),
        ("PATCH", f"{BASE}/documents/d"),
        ("DELETE", f"{BASE}/documents/d/e"),
        ("DELETE", f"{BASE}/operations/o"),
        ("POST", f"{BASE}/operations/o/retry"),
        ("POST", f"{BASE}/reflect"),
        ("POST", f"{BASE}/consolidate"),
        ("DELETE", f"{BASE}/memories"),
        ("GET", f"{BASE}/memories/u-1"),
        ("GET", f"{BASE}/graph"),
        ("POST", f"{BASE}/files/retain"),
        ("GET", f"{BASE}/export"),
    ],
)
async def test_what_is_not_listed_is_not_found_whatever_the_token(
    caller: Caller, method: str, path: str, daemon: BankTokens, api: BankTokens
) -> None:
    everything = daemon.token(BANK, *OPERATIONS)
    answers = {await caller.send(method, path, token=token) for token in (None, "garbage", everything)}
    assert answers == {(404, b'{"detail":"refused"}')}
    assert not caller.behind.scopes


async def test_the_path_as_sent_decides_and_not_as_decoded(caller: Caller) -> None:
    target = f"{BASE}/config"
    token = caller.token("bank.read")
    status, _ = await caller.send("GET", target, token=token, raw_path=f"{BASE}/%63onfig".encode())
    assert status == 404
    status, _ = await caller.send("GET", target, token=token, path=f"{BASE}/export")
    assert status == 404


async def test_websockets_are_closed_and_lifespan_passes(caller: Caller, verifier: TokenVerifier) -> None:
    behind = Behind()
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {}

    door = Door(behind, verifier)
    await door({"type": "websocket", "path": "/health"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert not behind.scopes
    await door({"type": "lifespan"}, receive, send)
    assert behind.scopes == [{"type": "lifespan"}]


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("document.retain", {"items": [{"content": "c", "document_id": "d"}], "async": True}),
        ("document.retain", {"items": [{"content": "c", "document_id": "d"}], "async": False}),
        ("document.retain", {"items": [{"content": "c", "document_id": "d"}], "operation_id": "o"}),
        ("document.retain", {"items": []}),
        ("document.retain", {"items": {"content": "c", "document_id": "d"}}),
        ("document.retain", {"items": [{"content": "c"}]}),
        ("document.retain", {"items": [{"content": "c", "document_id": ""}]}),
        ("document.retain", {"items": [{"content": "c", "document_id": "d/e"}]}),
        ("document.retain", {"items": [{"content": "c", "document_id": "d" * 129}]}),
        ("document.retain", {"items": [{"content": "c", "document_id": "d"}, 1]}),
        ("document.retain", {"items": [{"content": "c", "document_id": "d", "strategy": "s"}]}),
        ("document.retain", {"items": [{"content": "", "document_id": "d"}]}),
        ("document.retain", {"items": [{"content": ["c"], "document_id": "d"}]}),
        ("document.retain", {"items": [{"content": "c", "document_id": "d", "tags": ["t"]}]}),
        ("recall", {"query": "q", "max_tokens": 100}),
        ("recall", {"query": "q", "types": ["observation"], "max_tokens": 100}),
        ("recall", {"query": "q", "types": ["world"], "max_tokens": 100, "include": {"chunks": {}}}),
        ("recall", {"query": "q", "types": ["world"], "max_tokens": 100, "trace": True}),
        ("recall", {"query": "q", "types": ["world", "observation"], "max_tokens": 100}),
        ("recall", {"query": "q", "types": "world", "max_tokens": 100}),
        ("recall", {"query": ["q"], "types": ["world"], "max_tokens": 100}),
        ("recall", {"query": "q", "types": ["world"]}),
        ("recall", {"query": "q", "types": ["world"], "max_tokens": True}),
        ("recall", {"query": "q", "types": ["world"], "max_tokens": "100"}),
        ("recall", {"query": "q", "types": ["world"], "max_tokens": 1e3}),
        ("recall", {"query": "q", "types": ["world"], "max_tokens": 0}),
        ("recall", {"query": "q", "types": ["world"], "max_tokens": 10**40}),
        ("bank.create", {"mission": "m"}),
        ("bank.configure", {"updates": {"retain_extraction_mode": "concise"}}),
        ("bank.configure", {"updates": {"retain_extraction_mode": ["chunks"]}}),
        ("bank.configure", {"updates": {"enable_observations": "true"}}),
        ("bank.configure", {"updates": {"enable_observations": 1}}),
        ("bank.configure", {"updates": {"enable_observations": None}}),
        ("bank.configure", {"updates": {"retain_extraction_mode": "chunks"}, "bank_id": "other"}),
        ("bank.configure", {"updates": {"llm_model": "m"}}),
        ("bank.configure", {"updates": {"HINDSIGHT_API_RETAIN_EXTRACTION_MODE": "concise"}}),
        ("bank.configure", {"updates": []}),
        ("bank.configure", {}),
        ("bank.configure", []),
        ("bank.configure", None),
    ],
    ids=str,
)
async def test_a_body_that_we_never_send_is_refused(caller: Caller, operation: str, body: object) -> None:
    assert await caller.right(operation, chunks=[json.dumps(body).encode()]) == 400
    assert not caller.behind.scopes


ITEM = '{"content": "c", "document_id": "d"}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"items": ' + b"[" * 100_000,
        b"\x1f\x8b\x08\x00",
        f'{{"items": [{ITEM}]}}'.encode("utf-16"),
        f'\ufeff{{"items": [{ITEM}]}}'.encode(),
        f'{{"items": [{ITEM}]}} {{}}'.encode(),
        f'{{"items": [{ITEM}], "items": [{ITEM}]}}'.encode(),
        f'{{"async": true, "items": [{ITEM}], "async": false}}'.encode(),
        b'{"items": [{"content": "c", "document_id": "d", "document_id": "e"}]}',
        b'{"items": [{"content": "c", "document_id": NaN}]}',
        b'{"items": -Infinity}',
        b'{"items": ' + b"9" * 5000 + b"}",
    ],
    ids=lambda body: repr(body[:60]),
)
async def test_a_body_that_is_no_json_or_not_for_every_parser_the_same_is_refused(
    caller: Caller, body: bytes
) -> None:
    assert await caller.right("document.retain", chunks=[body]) == 400
    assert not caller.behind.scopes


async def test_a_caller_that_leaves_before_its_body_is_whole_reaches_nothing(
    verifier: TokenVerifier, daemon: BankTokens
) -> None:
    behind = Behind()
    token = daemon.token(BANK, "document.retain")
    messages: list[Message] = [
        {"type": "http.request", "body": f'{{"items": [{ITEM}]}}'.encode(), "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await Door(behind, verifier)(
        {
            "type": "http",
            "scheme": "http",
            "server": ("127.0.0.1", 8888),
            "method": "POST",
            "path": f"{BASE}/memories",
            "raw_path": f"{BASE}/memories".encode(),
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {token}".encode())],
        },
        receive,
        send,
    )
    assert sent[0]["status"] == 400
    assert not behind.scopes


async def test_after_the_body_the_application_still_learns_that_its_caller_left(
    verifier: TokenVerifier, daemon: BankTokens
) -> None:
    received: list[str] = []

    async def behind(_scope: Any, receive: Any, _send: Any) -> None:
        received.extend([(await receive())["type"], (await receive())["type"]])

    messages: list[Message] = [
        {"type": "http.request", "body": f'{{"items": [{ITEM}]}}'.encode()},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return messages.pop(0)

    async def send(_message: Message) -> None:
        raise AssertionError

    token = daemon.token(BANK, "document.retain")
    await Door(behind, verifier)(
        {
            "type": "http",
            "scheme": "http",
            "server": ("127.0.0.1", 8888),
            "method": "POST",
            "path": f"{BASE}/memories",
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {token}".encode())],
        },
        receive,
        send,
    )
    assert received == ["http.request", "http.disconnect"]


async def test_the_token_is_asked_for_before_a_body_is_read(caller: Caller, verifier: TokenVerifier) -> None:
    # No chunk at all: reading would wait for ever.
    async with asyncio.timeout(5):
        assert await caller.right("document.retain", token="garbage", chunks=[]) == 401


async def test_a_body_has_a_largest_size_however_it_is_cut(caller: Caller) -> None:
    assert await caller.right("document.retain", chunks=[b" " * 65536] * 17) == 413
    assert not caller.behind.scopes
    body = json.dumps(RIGHT["document.retain"][2]).encode()
    assert await caller.right("document.retain", chunks=[body[:9], body[9:], b""]) == 299
    assert caller.behind.body == body


@pytest.mark.parametrize(
    ("operation", "query"),
    [
        ("bank.read", "x=1"),
        ("document.read", "x="),
        ("units.list", "q=word"),
        ("units.list", "document_id=d&%71=word"),
        ("operations.read", "include_payload=true&x"),
        ("units.list", "document_id=d&%00=1"),
        ("units.list", "document%5fid=d&document_id=d&tags=x"),
        ("recall", "trace=true"),
    ],
)
async def test_a_query_that_we_never_send_is_refused(caller: Caller, operation: str, query: str) -> None:
    method, target, body = RIGHT[operation]
    status, _ = await caller.send(
        method,
        f"{BASE}{target.partition('?')[0]}?{query}",
        token=caller.token(operation),
        chunks=[json.dumps(body).encode()],
    )
    assert status == 400
    assert not caller.behind.scopes


@pytest.mark.parametrize(
    ("scheme", "server", "status"),
    [
        ("http", ("127.0.0.1", 8888), 299),
        ("http", ("::1", 8888), 299),
        ("http", ("/run/hindsight.sock", None), 299),
        ("https", ("10.0.0.7", 8888), 299),
        ("http", ("10.0.0.7", 8888), 404),
        ("http", ("hindsight.example", 8888), 404),
        ("http", None, 404),
    ],
)
async def test_plain_http_is_for_this_machine_only(
    caller: Caller, scheme: str, server: tuple[str, int | None] | None, status: int
) -> None:
    assert await caller.right("bank.read", scheme=scheme, server=server) == status
