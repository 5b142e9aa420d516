"""Callers and request sizes, before a server of this process and its real socket. Time is the test's own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf import wrappers_pb2
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from memory_api import allowance
from memory_api.interceptors import callers
from memory_api.interceptors.callers import Callers
from memory_api.interceptors.failures import Failures
from memory_api.interceptors.limits import Limits
from memory_api.interceptors.sizes import SIZE_OPTIONS
from memory_api.interceptors.unary import Malformed

ECHO = "/openbot.memory.v1.MemoryService/Recall"
HANG = "/openbot.memory.v1.MemoryService/Remember"
FAIL = "/openbot.memory.v1.MemoryService/GetMemory"
APPLY = "/openbot.memory.v1.AuthorityService/ApplyAuthority"

KIB = 1024


class Desk:
    """A server whose caller is whoever the test says, and how to call it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.who = ("bots", "acme")
        self.now_ns = 0
        self.hanging = 0
        self.changed = asyncio.Condition()
        self.let_go = asyncio.Event()
        monkeypatch.setattr(callers, "caller", lambda: self.who)
        self._monkeypatch = monkeypatch

    @asynccontextmanager
    async def opened(self, **limits: int) -> AsyncIterator[None]:
        def bound(tier: str) -> allowance.Allowance:
            return allowance.Allowance(
                limits.get(f"{tier}_at_once", 1000), limits.get(f"{tier}_per_second", 1000)
            )

        real = allowance.Allowances

        def timed(each: allowance.Allowance) -> allowance.Allowances[Any]:
            return real(each, lambda: self.now_ns)

        self._monkeypatch.setattr(callers, "Allowances", timed)
        self.interceptor = Callers(workload=bound("workload"), company=bound("company"))
        server = grpc.aio.server(
            interceptors=[
                Limits(max_call_s=30, max_concurrent_calls=1000),
                Failures(),
                self.interceptor,
            ],
            options=SIZE_OPTIONS,
        )
        for path, behave in ((ECHO, self._echo), (HANG, self._hang), (FAIL, self._fail), (APPLY, self._echo)):
            _, service, method = path.split("/")
            server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(service, {method: _handler(behave)}),)
            )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(
            f"127.0.0.1:{port}", options=(("grpc.max_receive_message_length", -1),)
        ) as self.channel:
            try:
                yield
            finally:
                self.let_go.set()
                await server.stop(0)

    def call(self, path: str = ECHO, request: bytes = b"", timeout: float = 60) -> Any:
        method: Any = self.channel.unary_unary(path)
        return method(request, timeout=timeout)

    async def reason(self, path: str = ECHO, request: bytes = b"") -> str:
        """The reason of a refusal, "" for an answer."""
        try:
            await self.call(path, request)
        except grpc.aio.AioRpcError as error:
            self.refusal = error
            return str(info_of(error).reason)
        return ""

    async def _echo(self, request: Any, context: Any) -> Any:
        return wrappers_pb2.BytesValue(value=b"malformed" if isinstance(request, Malformed) else b"")

    async def _hang(self, request: Any, context: Any) -> Any:
        await self._hangs(1)
        try:
            await self.let_go.wait()
        finally:
            await self._hangs(-1)
        return wrappers_pb2.BytesValue()

    async def _hangs(self, more: int) -> None:
        async with self.changed:
            self.hanging += more
            self.changed.notify_all()

    async def _fail(self, request: Any, context: Any) -> Any:
        raise RuntimeError


def _handler(behave: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        behave,
        request_deserializer=wrappers_pb2.BytesValue.FromString,
        response_serializer=wrappers_pb2.BytesValue.SerializeToString,
    )


def details_of(error: grpc.aio.AioRpcError) -> Any:
    assert error.code() is not None
    return rpc_status.from_call(error)  # type: ignore[arg-type]


def info_of(error: grpc.aio.AioRpcError) -> Any:
    info = error_details_pb2.ErrorInfo()
    status = details_of(error)
    if status is not None:
        status.details[0].Unpack(info)
    return info


def wait_ns(error: grpc.aio.AioRpcError) -> int:
    retry = error_details_pb2.RetryInfo()
    assert details_of(error).details[1].Unpack(retry)
    return int(retry.retry_delay.ToNanoseconds())


async def hangs(desk: Desk, count: int) -> None:
    async with desk.changed:
        await desk.changed.wait_for(lambda: desk.hanging == count)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


async def test_a_caller_that_is_too_fast_is_told_how_long_to_wait(desk: Desk) -> None:
    async with desk.opened(workload_per_second=10):
        assert [await desk.reason() for _ in range(10)] == [""] * 10
        assert await desk.reason() == "CALLER_TOO_FAST"
        assert desk.refusal.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert wait_ns(desk.refusal) == 100_000_000
        desk.now_ns += wait_ns(desk.refusal) - 1
        assert await desk.reason() == "CALLER_TOO_FAST"
        desk.now_ns += 1
        assert await desk.reason() == ""


async def test_the_longer_wait_of_both_tiers_is_told(desk: Desk) -> None:
    async with desk.opened(workload_per_second=5, company_per_second=2):
        assert [await desk.reason() for _ in range(3)] == ["", "", "CALLER_TOO_FAST"]
        assert wait_ns(desk.refusal) == 500_000_000
        desk.who = ("bots", "globex")
        assert [await desk.reason() for _ in range(2)] == ["", ""]
        desk.who = ("bots", "initech")
        assert [await desk.reason() for _ in range(2)] == ["", "CALLER_TOO_FAST"]
        assert wait_ns(desk.refusal) == 200_000_000


async def test_a_noisy_caller_does_not_slow_a_quiet_one(desk: Desk) -> None:
    async with desk.opened(workload_per_second=3, workload_at_once=2):
        held = [asyncio.ensure_future(desk.call(HANG)) for _ in range(2)]
        await hangs(desk, 2)
        assert {await desk.reason() for _ in range(20)} == {"CALLER_TOO_MANY_CALLS"}
        desk.who = ("gateway", "acme")
        assert [await desk.reason() for _ in range(3)] == [""] * 3
        desk.let_go.set()
        await asyncio.gather(*held)


async def test_a_noisy_company_does_not_slow_another_of_the_same_workload(desk: Desk) -> None:
    async with desk.opened(
        workload_per_second=10, company_per_second=4, workload_at_once=3, company_at_once=2
    ):
        held = [asyncio.ensure_future(desk.call(HANG)) for _ in range(2)]
        await hangs(desk, 2)
        assert await desk.reason() == "CALLER_TOO_MANY_CALLS"
        desk.who = ("bots", "globex")
        assert await desk.reason() == ""
        desk.let_go.set()
        await asyncio.gather(*held)
        desk.who = ("bots", "acme")
        noise = [await desk.reason() for _ in range(50)]
        assert noise == [""] * 2 + ["CALLER_TOO_FAST"] * 48
        desk.who = ("bots", "globex")
        assert [await desk.reason() for _ in range(4)] == [""] * 3 + ["CALLER_TOO_FAST"]


async def test_a_company_is_bounded_for_each_workload_by_itself(desk: Desk) -> None:
    async with desk.opened(company_per_second=1):
        assert [await desk.reason() for _ in range(2)] == ["", "CALLER_TOO_FAST"]
        desk.who = ("gateway", "acme")
        assert await desk.reason() == ""


async def test_a_caller_for_no_company_has_its_workloads_allowance_only(desk: Desk) -> None:
    async with desk.opened(workload_per_second=3, company_per_second=1):
        desk.who = ("control-plane", "")
        assert [await desk.reason() for _ in range(4)] == [""] * 3 + ["CALLER_TOO_FAST"]


@pytest.mark.parametrize("how", ["cancelled", "deadline", "failed", "too large"])
async def test_room_is_given_back_however_a_call_ends(desk: Desk, how: str) -> None:
    async with desk.opened(workload_at_once=2, company_at_once=2):
        for _ in range(3):
            if how == "failed":
                assert await desk.reason(FAIL) == "INTERNAL"
                continue
            if how == "too large":
                assert await desk.reason(ECHO, bytes(300 * KIB)) == "REQUEST_TOO_LARGE"
                continue
            held = [
                asyncio.ensure_future(desk.call(HANG, timeout=1 if how == "deadline" else 60))
                for _ in range(2)
            ]
            if how == "deadline":
                await asyncio.gather(*held, return_exceptions=True)
            else:
                await hangs(desk, 2)
                assert await desk.reason() == "CALLER_TOO_MANY_CALLS"
                for each in held:
                    each.cancel()
                await asyncio.gather(*held, return_exceptions=True)
            await hangs(desk, 0)
        held = [asyncio.ensure_future(desk.call(HANG)) for _ in range(2)]
        await hangs(desk, 2)
        assert await desk.reason() == "CALLER_TOO_MANY_CALLS", "no more room than there was"


@pytest.mark.parametrize(
    ("path", "size", "reason"),
    [
        (ECHO, 256 * KIB, ""),
        (ECHO, 256 * KIB + 1, "REQUEST_TOO_LARGE"),
        (ECHO, 4096 * KIB, "REQUEST_TOO_LARGE"),
        (APPLY, 256 * KIB + 1, ""),
        (APPLY, 4096 * KIB, ""),
    ],
)
async def test_each_method_takes_requests_of_its_size(desk: Desk, path: str, size: int, reason: str) -> None:
    framing = wrappers_pb2.BytesValue(value=bytes(size)).ByteSize() - size
    request = wrappers_pb2.BytesValue(value=bytes(size - framing)).SerializeToString()
    assert len(request) == size
    async with desk.opened():
        assert await desk.reason(path, request) == reason
        if reason:
            assert desk.refusal.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert dict(info_of(desk.refusal).metadata) == {"max_bytes": str(256 * KIB)}


@pytest.mark.parametrize("compression", list(grpc.Compression))
async def test_no_method_takes_more_than_four_mebibytes_however_packed(
    desk: Desk, compression: grpc.Compression
) -> None:
    async with desk.opened():
        method: Any = desk.channel.unary_unary(APPLY)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await method(bytes(4096 * KIB + 1), compression=compression)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert details_of(refused.value) is None, "gRPC's own: it was not even read"
