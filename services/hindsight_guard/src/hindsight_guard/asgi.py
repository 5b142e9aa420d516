"""The door in front of Hindsight: an allow-list of routes, checked before Hindsight sees anything.

An operation list alone cannot do this: several routes of Hindsight act before its hooks are asked,
or ask only for what an ordinary recall needs as well. A new route of a new version starts closed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qsl

from hindsight_guard.bodies import body_allowed, parsed
from hindsight_guard.operations import OPERATIONS, find
from hindsight_guard.tokens import TokenInvalid, TokenVerifier

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_OPEN = frozenset({"/health", "/health/live", "/health/ready"})
_MAX_BODY_BYTES = 1024 * 1024


class Refusal(Exception):
    """An answer that the door gives itself."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Door:
    """Wraps an ASGI application. Lifespan passes; HTTP passes if a token allows it; nothing else does.

    Refusals: 404 for a route that is not on the list, whatever the token; 401 for no valid token; 403 for
    another bank or operation than its own; 400 and 413 for a body or a query that no service of ours sends.
    """

    def __init__(self, app: App, verifier: TokenVerifier) -> None:
        self._app = app
        self._verifier = verifier

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI 3."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        # The path as it was sent: an encoded slash or dot must not become another route later.
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        if scope["method"] == "GET" and path in _OPEN and not scope["query_string"]:
            await self._app(scope, receive, _status_only(send))
            return
        try:
            receive = await self._admit(scope, path, receive)
        except Refusal as refusal:
            await _answer(send, refusal.status)
            return
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope, path: str, receive: Receive) -> Receive:
        found = find(scope["method"], path)
        if found is None or path != scope["path"] or not _is_private(scope):
            raise Refusal(404)
        name, bank = found
        try:
            grant = self._verifier.verify(_bearer(scope))
        except TokenInvalid:
            raise Refusal(401) from None
        if not grant.allows(bank, name):
            raise Refusal(403)
        operation = OPERATIONS[name]
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if not {key for key, _ in query} <= operation.query:
            raise Refusal(400)
        if not operation.body:
            return receive
        body = await _read(receive)
        try:
            allowed = body_allowed(name, parsed(body))
        except ValueError:
            allowed = False
        if not allowed:
            raise Refusal(400)
        return _replay(body, receive)


def _is_private(scope: Scope) -> bool:
    """TLS, a loopback address of ours, or a Unix socket (which has no port)."""
    if scope["scheme"] == "https":
        return True
    host, port = scope.get("server") or ("", 0)
    try:
        return port is None or ip_address(host).is_loopback
    except ValueError:
        return False


def _bearer(scope: Scope) -> str | None:
    values = [value for key, value in scope["headers"] if key == b"authorization"]
    if len(values) != 1 or values[0][:7].lower() != b"bearer ":
        return None
    return str(values[0][7:].decode("latin-1"))


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refusal(400)
        body += message.get("body", b"")
        if len(body) > _MAX_BODY_BYTES:
            raise Refusal(413)
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        # After the body: Hindsight listens for the client's disconnect.
        return pending.pop() if pending else await receive()

    return again


def _status_only(send: Send) -> Send:
    """Health without a token says how it is, not why: Hindsight quotes errors of its database there."""

    async def bare(message: Message) -> None:
        if message["type"] == "http.response.start":
            await _answer(send, message["status"], b"{}")

    return bare


async def _answer(send: Send, status: int, body: bytes = b'{"detail":"refused"}') -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
