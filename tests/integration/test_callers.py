"""memory_api as a process of its own: what one caller may take, so that the others have theirs."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import grpc
import pytest
from devstack.client import Session
from devstack.control_plane import Company
from devstack.issuer import BOT_RUNTIME, CHANNEL_GATEWAY, CONTROL_PLANE
from devstack.postgres import EmbeddedPostgres
from devstack.process import ManagedProcess
from devstack.template import TemplateDatabase
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from openbot.memory.v1 import memory_service_pb2 as contract

from tests.authority import state_facts
from tests.eventually import until
from tests.integration.test_api_process import RECALL, SERVING, Api, refusal

pytestmark = pytest.mark.postgres

REMEMBER = "/openbot.memory.v1.MemoryService/Remember"
APPLY_AUTHORITY = "/openbot.memory.v1.AuthorityService/ApplyAuthority"

EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
KIB = 1024


class Building(Api):
    """Several companies and workloads before one process."""

    def limit(self, **settings: int) -> None:
        """Sets ``MEMORY_API_*``; before the start."""
        limits = {"max_call_s": 60, "max_concurrent_calls": 20} | settings
        environment = self.environment | {
            f"MEMORY_API_{name.upper()}": str(value) for name, value in limits.items()
        }
        self.process = ManagedProcess(
            "memory_api", [sys.executable, "-m", "memory_api"], environment, self.log
        )

    def of(self, company: str, workload: str = BOT_RUNTIME) -> Session:
        return Session(
            self.address, self.issuer, user="lin", company=company, bot="assistant", actor=workload
        )


@contextmanager
def building(
    directory: Path, postgres: EmbeddedPostgres, template: TemplateDatabase, **settings: int
) -> Iterator[Building]:
    with template.clone() as database:
        for name in ("acme", "globex", "initech"):
            company = Company(name, members=("lin",), bots={"assistant": True})
            asyncio.run(state_facts(database.dsn("authority_writer"), company))
        api = Building(directory, postgres, database)
        api.limit(**settings)
        try:
            api.start()
            yield api
        finally:
            api.process.terminate(10)


@pytest.fixture(scope="module")
def narrow(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: EmbeddedPostgres,
    template_database: TemplateDatabase,
) -> Iterator[Building]:
    """Three calls at once for a workload, two of them for one company."""
    with building(
        tmp_path_factory.mktemp("narrow"),
        postgres_server,
        template_database,
        caller_max_concurrent_calls=3,
        company_max_concurrent_calls=2,
    ) as running:
        yield running


@pytest.fixture(scope="module")
def slow(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: EmbeddedPostgres,
    template_database: TemplateDatabase,
) -> Iterator[Building]:
    """One call a second for a workload."""
    with building(
        tmp_path_factory.mktemp("slow"), postgres_server, template_database, caller_calls_per_second=1
    ) as running:
        yield running


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: EmbeddedPostgres,
    template_database: TemplateDatabase,
) -> Iterator[Building]:
    """One call a second for a company."""
    with building(
        tmp_path_factory.mktemp("shared"), postgres_server, template_database, company_calls_per_second=1
    ) as running:
        yield running


def detail_of(error: Any, detail: Any) -> Any:
    """The detail of this kind in a refusal of ours."""
    status = rpc_status.from_call(error)
    assert status is not None
    assert any(each.Unpack(detail) for each in status.details)
    return detail


def reason(call: Callable[[], object]) -> str:
    """Why it was refused, or "" for an answer."""
    try:
        call()
    except grpc.RpcError as error:
        return str(detail_of(error, error_details_pb2.ErrorInfo()).reason)
    return ""


def told_wait_s(call: Callable[[], object]) -> float | None:
    """The wait that a refusal asks for; None for an answer."""
    try:
        call()
    except grpc.RpcError as error:
        delay = detail_of(error, error_details_pb2.RetryInfo()).retry_delay
        return float(delay.ToNanoseconds() / 1e9)
    return None


@contextmanager
def noise(session: Session) -> Iterator[None]:
    """While it lasts, calls come from four threads as fast as they can; one was refused before it begins."""
    refused, quiet = Event(), Event()

    def call_on() -> set[str]:
        reasons = set()
        while not quiet.is_set():
            reasons.add(reason(lambda: session.recall("x")))
            if "CALLER_TOO_FAST" in reasons:
                refused.set()
        return reasons

    with ThreadPoolExecutor(4) as threads:
        calling = [threads.submit(call_on) for _ in range(4)]
        try:
            assert refused.wait(60)
            yield
        finally:
            quiet.set()
        for each in calling:
            assert each.result() <= {"", "CALLER_TOO_FAST"}


def held(session: Session, channel: grpc.Channel, count: int) -> list[Any]:
    """Calls that wait in the database until it lets go, or they are cancelled."""
    call: Any = channel.unary_unary(
        REMEMBER,
        request_serializer=contract.RememberRequest.SerializeToString,
        response_deserializer=contract.RememberResponse.FromString,
    )
    return [
        call.future(
            contract.RememberRequest(text="held", request_id=str(uuid4())),
            metadata=session.metadata,
            timeout=60,
        )
        for _ in range(count)
    ]


def test_a_noisy_workload_takes_nothing_from_a_quiet_one(slow: Building) -> None:
    with slow.of("acme") as noisy, slow.of("acme", CHANNEL_GATEWAY) as quiet, noise(noisy):
        assert reason(lambda: quiet.recall("x")) == ""


def test_a_noisy_company_takes_nothing_from_another_of_the_same_workload(shared: Building) -> None:
    with shared.of("acme") as noisy, shared.of("globex") as quiet, noise(noisy):
        assert reason(lambda: quiet.recall("x")) == ""


def test_who_waits_as_long_as_told_is_let_in(slow: Building) -> None:
    with slow.of("acme") as lin:
        for _ in range(3):
            waits: list[float] = []

            def refused(waits: list[float] = waits) -> bool:
                wait = told_wait_s(lambda: lin.recall("x"))
                waits += [] if wait is None else [wait]
                return bool(waits)

            assert until(refused)
            assert 0 < waits[0] <= 1
            time.sleep(waits[0])
            assert told_wait_s(lambda: lin.recall("x")) is None


def test_calls_at_once_are_bounded_for_a_company_and_for_its_workload(narrow: Building) -> None:
    with (
        narrow.of("acme") as acme,
        narrow.of("globex") as globex,
        narrow.of("initech") as initech,
        narrow.of("acme", CHANNEL_GATEWAY) as gateway,
        grpc.insecure_channel(narrow.address) as channel,
        narrow.stalled(),
    ):
        calls = held(acme, channel, 2)
        assert until(lambda: narrow.waiting(2))
        assert refusal(lambda: acme.recall("x")) == (EXHAUSTED, "CALLER_TOO_MANY_CALLS")
        wait = told_wait_s(lambda: acme.recall("x"))
        assert wait is not None
        assert wait > 0
        assert reason(lambda: globex.recall("x")) == ""
        calls += held(globex, channel, 1)
        assert until(lambda: narrow.waiting(3))
        assert reason(lambda: initech.recall("x")) == "CALLER_TOO_MANY_CALLS"
        assert reason(lambda: gateway.recall("x")) == ""
        for each in calls:
            each.cancel()
        assert until(lambda: narrow.waiting(0))


def test_room_comes_back_when_calls_are_cancelled(narrow: Building) -> None:
    with narrow.of("acme") as acme, grpc.insecure_channel(narrow.address) as channel, narrow.stalled():
        for _ in range(3):
            calls = held(acme, channel, 2)
            assert until(lambda: narrow.waiting(2)), "both were let in"
            assert reason(lambda: acme.recall("x")) == "CALLER_TOO_MANY_CALLS"
            for each in calls:
                each.cancel()
            assert until(lambda: narrow.waiting(0))
            assert until(lambda: reason(lambda: acme.recall("x")) == "")


def padded(size: int) -> bytes:
    """A right request of exactly so many bytes: what it says besides is unknown, and ignored."""
    request = contract.RecallRequest(query="x").SerializeToString()
    return request + contract.RecallRequest(query="").SerializeToString() + filler(size - len(request))


def filler(size: int) -> bytes:
    """Unknown fields of exactly so many bytes, two or more: field 15, a varint."""
    return b"\x78\x01" * (size // 2 - 1) + (b"\x78\x01" if size % 2 == 0 else b"\x78\x81\x00")


def test_each_method_takes_requests_of_its_own_size(narrow: Building) -> None:
    control_plane = (("authorization", f"Bearer {narrow.issuer.service_token(CONTROL_PLANE)}"),)
    with narrow.of("acme") as lin, grpc.insecure_channel(narrow.address) as channel:
        recall: Any = channel.unary_unary(RECALL)
        apply: Any = channel.unary_unary(APPLY_AUTHORITY)
        assert recall(padded(256 * KIB), metadata=lin.metadata, timeout=30)
        for size in (256 * KIB + 1, 4096 * KIB):
            with pytest.raises(grpc.RpcError) as refused:
                recall(padded(size), metadata=lin.metadata, timeout=30)
            assert refused.value.code() is EXHAUSTED
            info = detail_of(refused.value, error_details_pb2.ErrorInfo())
            assert (info.reason, dict(info.metadata)) == ("REQUEST_TOO_LARGE", {"max_bytes": "262144"})
        assert refusal(lambda: recall(padded(256 * KIB + 1), timeout=30)) == (
            grpc.StatusCode.UNAUTHENTICATED,
            "SERVICE_TOKEN_MISSING",
        ), "the caller is asked for first"
        assert refusal(lambda: recall(bytes(4096 * KIB + 1), metadata=lin.metadata, timeout=30)) == (
            EXHAUSTED,
            "",
        ), "gRPC's own"
        answer = refusal(lambda: apply(bytes(4096 * KIB), metadata=control_plane, timeout=30))
        assert answer[0] is not EXHAUSTED


def groups(depth: int, *, closed: bool = True) -> bytes:
    """So many groups in each other, of a field that nobody knows."""
    return b"\x7b" * depth + b"\x7c" * (depth if closed else 0)


@pytest.mark.parametrize(
    "unknown",
    [
        b"",
        filler(200 * KIB),
        b"\x7a\x03abc",
        groups(1),
        groups(50),
    ],
    ids=["none", "many", "bytes", "group", "groups"],
)
def test_fields_that_nobody_knows_are_ignored(narrow: Building, unknown: bytes) -> None:
    with narrow.of("acme") as lin, grpc.insecure_channel(narrow.address) as channel:
        recall: Any = channel.unary_unary(RECALL, response_deserializer=contract.RecallResponse.FromString)
        request = contract.RecallRequest(query="x").SerializeToString() + unknown
        answer = recall(request, metadata=lin.metadata, timeout=30)
        assert answer == recall(
            contract.RecallRequest(query="x").SerializeToString(), metadata=lin.metadata, timeout=30
        )


@pytest.mark.parametrize("depth", [101, 1000, 100_000])
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
def test_nesting_without_end_is_no_message_and_harms_nothing(
    narrow: Building, depth: int, closed: bool
) -> None:
    with narrow.of("acme") as lin, grpc.insecure_channel(narrow.address) as channel:
        recall: Any = channel.unary_unary(RECALL)
        request = contract.RecallRequest(query="x").SerializeToString() + groups(depth, closed=closed)
        assert refusal(lambda: recall(request, metadata=lin.metadata, timeout=30)) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_REQUEST",
        )
        assert narrow.health("liveness") == SERVING
