"""Keys from a URL: fetched before anything is served, again within bounds, and never believed for ever."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from authz import (
    AuthenticationFailed,
    ConfigurationError,
    IdentityVerifier,
    JwksLocation,
    JwksUrl,
    parse_issuers,
)
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devstack.issuer import MEMORY_AUDIENCE, DevelopmentIssuer, public_jwk

Answer = Callable[[], bytes]


class KeyServer:
    """Publishes what it is told to, on a loopback address, and counts who asks."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.answer: Answer = lambda: b""
        self.gate = asyncio.Event()
        self.gate.set()

    def publish(self, *keys: Ed25519PrivateKey) -> None:
        self.say(200, json.dumps({"keys": [public_jwk(key) for key in keys]}).encode())

    def say(self, status: int, body: bytes, *headers: str) -> None:
        lines = [
            f"HTTP/1.1 {status} X",
            f"content-length: {len(body)}",
            "connection: close",
            *headers,
            "",
            "",
        ]
        self.answer = lambda: "\r\n".join(lines).encode() + body

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        await self.gate.wait()
        writer.write(self.answer())
        await writer.drain()
        writer.close()


class Clock:
    """Seconds that pass when they are told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def server() -> AsyncIterator[KeyServer]:
    served = KeyServer()
    listening = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/jwks"  # type: ignore[attr-defined]
    yield served
    listening.close()


def source(server: Any, clock: Clock, **changes: Any) -> JwksUrl:
    return JwksUrl(JwksLocation(server.url), ("EdDSA",), clock=clock, **changes)


def kid(key: Ed25519PrivateKey) -> str:
    return public_jwk(key)["kid"]


OLD, NEW = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()


async def test_keys_rotate_with_an_overlap_and_a_new_one_is_fetched_when_it_is_missed(
    server: KeyServer,
) -> None:
    clock = Clock()
    server.publish(OLD)
    keys = source(server, clock)
    await keys.start()
    assert keys.key(kid(OLD)) is not None
    assert not await keys.refreshed(), "nothing was missed"
    clock.now += 11
    server.publish(OLD, NEW)
    assert keys.key(kid(NEW)) is None
    assert await keys.refreshed()
    assert None not in (keys.key(kid(OLD)), keys.key(kid(NEW)))
    clock.now += 11
    server.publish(NEW)
    assert keys.key("nobody's") is None
    assert await keys.refreshed()
    assert keys.key(kid(OLD)) is None, "removed: gone with the next fetch"
    await keys.aclose()


async def test_however_many_unknown_kids_are_sent_the_server_is_asked_once_in_a_while(
    server: KeyServer,
) -> None:
    clock = Clock()
    server.publish(OLD)
    keys = source(server, clock)
    await keys.start()

    async def attack(number: int) -> bool:
        keys.key(f"kid-{number}")
        return await keys.refreshed()

    for _ in range(3):
        await asyncio.gather(*(attack(number) for number in range(200)))
    assert len(server.requests) == 1, "the first fetch was a moment ago"
    clock.now += 10
    server.say(500, b"")  # the bound holds for failures too
    for _ in range(3):
        await asyncio.gather(*(attack(number) for number in range(200)))
    assert len(server.requests) == 2
    assert keys.key(kid(OLD)) is not None
    await keys.aclose()


async def test_those_who_wait_for_a_fetch_share_it(server: KeyServer) -> None:
    clock = Clock()
    server.publish(OLD)
    keys = source(server, clock)
    await keys.start()
    clock.now += 60
    server.publish(OLD, NEW)
    server.gate.clear()
    keys.key(kid(NEW))
    waiting = [asyncio.create_task(keys.refreshed()) for _ in range(8)]
    while len(server.requests) < 2:  # noqa: ASYNC110 - the server's doing
        await asyncio.sleep(0.01)
    assert not await keys.refreshed(), "no more wait than places may be held"
    waiting[0].cancel()  # a caller that hangs up takes nothing from the others
    server.gate.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert results[1] is True
    assert len(server.requests) == 2
    await keys.aclose()


@pytest.mark.parametrize(
    "broken",
    [
        (500, b""),
        (404, b"{}"),
        (302, b"", "location: http://127.0.0.1:1/"),
        (200, b"<html>"),
        (200, b"{}"),
        (200, b'{"keys": {}}'),
        (200, b'{"keys": [], "pad": "' + b"x" * 300_000 + b'"}'),
    ],
    ids=lambda value: str(value[0]) + str(value[1][:12]),
)
async def test_an_answer_that_is_no_key_set_changes_nothing(server: KeyServer, broken: Any) -> None:
    clock = Clock()
    server.publish(OLD)
    keys = source(server, clock)
    await keys.start()
    clock.now += 60
    server.say(*broken)
    keys.key("missing")
    assert not await keys.refreshed()
    assert keys.key(kid(OLD)) is not None
    await keys.aclose()
    with pytest.raises(ConfigurationError) as caught:
        await source(server, clock).start()
    assert caught.value.key == "jwks_url"


async def test_keys_that_are_not_for_us_are_left_out_and_take_no_other_along(server: KeyServer) -> None:
    foreign: list[object] = [
        "no key",
        {"kty": "oct", "kid": "secret", "k": "AAAA"},
        {"kty": "RSA", "use": "x509-svid", "n": "AQAB", "e": "AQAB"},
        public_jwk(ec.generate_private_key(ec.SECP256R1())),
        public_jwk(OLD) | {"kid": "private", "d": "AAAA"},
        public_jwk(OLD) | {"kid": "for others", "use": "enc"},
    ]
    server.say(200, json.dumps({"keys": [*foreign, public_jwk(NEW)]}).encode())
    keys = source(server, Clock())
    await keys.start()
    assert keys.key(kid(NEW)) is not None
    assert [keys.key(each) for each in ("secret", "private", "for others")] == [None] * 3
    await keys.aclose()
    server.say(200, json.dumps({"keys": foreign}).encode())
    with pytest.raises(ConfigurationError):
        await source(server, Clock()).start()


async def test_a_source_that_is_silent_for_too_long_is_no_longer_believed(server: KeyServer) -> None:
    clock = Clock()
    server.publish(OLD)
    keys = source(server, clock)
    await keys.start()
    server.say(503, b"")
    clock.now = 3600
    assert keys.key(kid(OLD)) is not None
    clock.now = 3601
    assert keys.key(kid(OLD)) is None
    server.publish(OLD)
    assert await keys.refreshed()
    assert keys.key(kid(OLD)) is not None
    await keys.aclose()


async def test_keys_are_fetched_again_without_anybody_asking(server: KeyServer) -> None:
    server.publish(OLD)
    keys = source(server, Clock(), refresh_s=0.01)
    await keys.start()
    server.publish(NEW)
    while keys.key(kid(NEW)) is None:  # noqa: ASYNC110 - bounded by the test's own patience
        await asyncio.sleep(0.01)
    assert keys.key(kid(OLD)) is None
    await keys.aclose()


async def test_nobody_there_is_no_start() -> None:
    keys = JwksUrl(JwksLocation("http://127.0.0.1:1/jwks"), ("EdDSA",))
    with pytest.raises(ConfigurationError):
        await keys.start()
    assert keys.key("any") is None


async def test_the_bearer_token_is_read_for_every_fetch(server: KeyServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    server.publish(OLD)
    clock = Clock()
    keys = JwksUrl(JwksLocation(server.url, token_file=token), ("EdDSA",), clock=clock)  # type: ignore[attr-defined]
    await keys.start()
    token.write_text("second\n")
    clock.now += 60
    keys.key("missing")
    await keys.refreshed()
    assert ["first" in server.requests[0], "second" in server.requests[1]] == [True, True]
    token.unlink()
    clock.now += 60
    keys.key("missing")
    assert not await keys.refreshed()
    await keys.aclose()


async def test_a_verifier_waits_for_its_keys_and_learns_new_ones(
    server: KeyServer, issuer: DevelopmentIssuer
) -> None:
    document = json.loads(issuer.identity_file.read_text())
    del document["issuers"][0]["jwks_file"]
    document["issuers"][0]["jwks_url"] = server.url  # type: ignore[attr-defined]
    config = parse_issuers(json.dumps(document))
    server.say(503, b"")
    with pytest.raises(ConfigurationError) as caught:
        async with IdentityVerifier(config, MEMORY_AUDIENCE):
            pass
    assert caught.value.key == "issuers[0].jwks_url"
    server.publish(issuer.service_key)
    async with IdentityVerifier(config, MEMORY_AUDIENCE) as verifier:
        verifier.verify_service(issuer.service_token())
        token = issuer.service_token(key=NEW, headers={"kid": kid(NEW)})
        with pytest.raises(AuthenticationFailed):
            verifier.verify_service(token)
        assert not await verifier.refreshed(), "the first fetch was a moment ago"
