"""An HTTP proxy of ours between a service and Hindsight that can do to it what networks do."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx
from devstack.ports import free_port


@dataclass
class Request:
    """One request as it came, and the way to its real answer."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    forward: Callable[[], Awaitable[bytes]]


class Kept:
    """A fault that keeps requests where they are: in the network, neither arrived nor refused."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> bytes:
        self.requests.append(request)
        self.arrived.set()
        await asyncio.sleep(120)
        raise CutConnection


class Held:
    """A fault that forwards the request, then keeps the answer back until it is let go."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self._let_go = threading.Event()

    async def __call__(self, request: Request) -> bytes:
        answer = await request.forward()
        self.arrived.set()
        while not self._let_go.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.02)
        return answer

    def let_go(self) -> None:
        """Lets the answers go."""
        self._let_go.set()


class CutConnection(Exception):
    """Ends the connection without another byte, after ``sent``."""

    def __init__(self, sent: bytes = b"") -> None:
        super().__init__()
        self.sent = sent


#: What a rule does with a request: returns the raw answer, or raises CutConnection.
Fault = Callable[[Request], Awaitable[bytes]]


@dataclass
class Rule:
    """A fault for requests whose ``METHOD path`` matches and whose body has ``words``, ``times`` times."""

    pattern: re.Pattern[str]
    fault: Fault
    times: int
    words: bytes
    met: threading.Event = field(default_factory=threading.Event)


class FaultyProxy:
    """Forwards everything to ``target`` but what a rule is for. Use as a context manager."""

    def __init__(self, target: str) -> None:
        self._target = target
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.seen: list[str] = []
        self._rules: list[Rule] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def on(self, pattern: str, fault: Fault, times: int = 1_000_000, words: str = "") -> Rule:
        """From now on, ``fault`` is what happens to requests matching ``pattern`` whose body holds
        ``words``; newest rule first."""
        rule = Rule(re.compile(pattern), fault, times, words.encode())
        self._rules.insert(0, rule)
        return rule

    def heal(self) -> None:
        """Forgets every rule."""
        self._rules.clear()

    def replay(self, request: Request) -> bytes:
        """Sends a request on that was kept back, and returns the raw answer."""

        async def run() -> bytes:
            return await request.forward()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(30)

    def count(self, pattern: str) -> int:
        """How many requests matching ``pattern`` came."""
        return sum(re.search(pattern, line) is not None for line in self.seen)

    def _do(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _open(self) -> None:
        self._client = httpx.AsyncClient(base_url=self._target, timeout=60, trust_env=False)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            while (request := await self._read(reader)) is not None:
                try:
                    writer.write(await self._answer(request))
                    await writer.drain()
                except CutConnection as cut:
                    writer.write(cut.sent)
                    await writer.drain()
                    break
        except (ConnectionError, asyncio.IncompleteReadError, httpx.HTTPError, asyncio.CancelledError):
            pass  # the end of the connection, or of the test
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Request | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return None
        line, *rest = head.rstrip("\r\n").split("\r\n")
        method, path, _ = line.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.seen.append(f"{method} {path}")

        async def forward() -> bytes:
            passed = {name: value for name, value in headers.items() if name not in {"host", "connection"}}
            answer = await self._client.request(method, path, headers=passed, content=body)
            return response(answer.status_code, answer.content)

        return Request(method, path, headers, body, forward)

    async def _answer(self, request: Request) -> bytes:
        for rule in self._rules:
            line = f"{request.method} {request.path}"
            if rule.times > 0 and rule.pattern.search(line) and rule.words in request.body:
                rule.times -= 1
                rule.met.set()
                return await rule.fault(request)
        return await request.forward()


def response(status: int, body: bytes, *headers: str) -> bytes:
    """A raw HTTP/1.1 answer."""
    lines = [
        f"HTTP/1.1 {status} X",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def overloaded(retry_after_s: int = 0) -> Fault:
    """503 with Retry-After, as Hindsight answers under load."""

    async def fault(_: Request) -> bytes:
        return response(503, b'{"detail":"overloaded"}', f"retry-after: {retry_after_s}")

    return fault


def says(body: bytes, status: int = 200) -> Fault:
    """Answers without asking Hindsight."""

    async def fault(_: Request) -> bytes:
        return response(status, body)

    return fault


def slow(seconds: float) -> Fault:
    """The real answer, late."""

    async def fault(request: Request) -> bytes:
        await asyncio.sleep(seconds)
        return await request.forward()

    return fault


async def bank_is_gone(request: Request) -> bytes:
    """What a Hindsight that lost its banks says, in its own words."""
    bank = request.path.split("/")[4]
    return response(404, f'{{"detail":"Bank \'{bank}\' not found"}}'.encode())


async def cut_before(_: Request) -> bytes:
    """The connection ends before Hindsight hears of the request."""
    raise CutConnection


async def cut_after(request: Request) -> bytes:
    """Hindsight did it; nobody is told."""
    await request.forward()
    raise CutConnection


async def cut_within(request: Request) -> bytes:
    """The connection ends in the middle of the answer."""
    answer = await request.forward()
    raise CutConnection(answer[:-5])
