"""memory_api as a process of its own whose index is away: bounds, busyness, an orderly end, and silence."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import pytest
from devstack.client import Session
from devstack.control_plane import Company
from devstack.issuer import MEMORY_API_SIGNER, DevelopmentIssuer
from devstack.ports import free_port
from devstack.postgres import EmbeddedPostgres
from devstack.process import ManagedProcess, base_environment
from devstack.template import ClonedDatabase, TemplateDatabase
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status
from openbot.memory.v1 import memory_service_pb2 as contract

from tests.authority import state_facts
from tests.eventually import until

pytestmark = pytest.mark.postgres

SERVING = health_pb2.HealthCheckResponse.SERVING
RECALL = "/openbot.memory.v1.MemoryService/Recall"


class Api:
    """The process, its database, and callers."""

    def __init__(self, directory: Path, postgres: EmbeddedPostgres, database: ClonedDatabase) -> None:
        self.issuer = DevelopmentIssuer(directory / "keys")
        self.log, self.spans = directory / "log", directory / "spans"
        self.database = database
        self._postgres = postgres
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.environment = {
            **base_environment(),
            "MEMORY_API_DATABASE_URL": database.dsn("memory_api"),
            "MEMORY_API_HOST": "127.0.0.1",
            "MEMORY_API_PORT": str(self.port),
            "MEMORY_API_INSECURE_LOOPBACK": "true",
            "MEMORY_API_REFLECTION": "true",
            "MEMORY_API_IDENTITY_FILE": str(self.issuer.identity_file),
            "MEMORY_API_AUDIENCE": self.issuer.audience,
            "MEMORY_API_INDEX_URL": f"http://127.0.0.1:{free_port()}",
            "MEMORY_API_BANK_TOKEN_KEY_FILE": str(self.issuer.bank_key_file(MEMORY_API_SIGNER)),
            "MEMORY_API_SPANS_FILE": str(self.spans),
            "MEMORY_API_MAX_CALL_S": "3",
            "MEMORY_API_MAX_CONCURRENT_CALLS": "2",
        }
        self.process = ManagedProcess(
            "memory_api", [sys.executable, "-m", "memory_api"], self.environment, self.log
        )

    def start(self) -> None:
        self.process.start()
        self.process.wait_ready(
            lambda: self.health("readiness") == health_pb2.HealthCheckResponse.SERVING, 60
        )

    def session(self, user: str = "lin") -> Session:
        return Session(self.address, self.issuer, user=user, company="acme", bot="assistant")

    def health(self, service: str) -> Any:
        with grpc.insecure_channel(self.address) as channel:
            check: Any = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                response_deserializer=health_pb2.HealthCheckResponse.FromString,
            )
            try:
                return check(health_pb2.HealthCheckRequest(service=service), timeout=2).status
            except grpc.RpcError as error:
                return error.code()

    def sql(self, statement: str) -> str:
        return self._postgres.execute(statement, self.database.name)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """While it lasts, whoever wants to record anything waits."""
        holder = subprocess.Popen(
            [sys.executable, "-c", _HOLD, self.database.admin_dsn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert holder.stdin is not None
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == b"held\n"
            yield
        finally:
            holder.stdin.close()
            holder.wait(10)
            holder.stdout.close()

    def waiting(self, count: int = 1) -> bool:
        """Whether so many calls wait in the database."""
        found = self.sql(
            "select count(*) from pg_stat_activity where datname = current_database()"
            " and application_name = 'memory_api' and wait_event_type = 'Lock'"
        )
        return int(found) == count


_HOLD = """
import asyncio, asyncpg, sys
async def hold():
    connection = await asyncpg.connect(sys.argv[1])
    async with connection.transaction():
        await connection.execute("lock table openbot.requests in access exclusive mode")
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.read)
    await connection.close()
asyncio.run(hold())
"""


@contextmanager
def opened(directory: Path, postgres: EmbeddedPostgres, template: TemplateDatabase) -> Iterator[Api]:
    import asyncio  # noqa: PLC0415 - only to seed

    with template.clone() as database:
        asyncio.run(
            state_facts(
                database.dsn("authority_writer"),
                Company("acme", members=("lin", "omar"), bots={"assistant": True}),
            )
        )
        api = Api(directory, postgres, database)
        try:
            api.start()
            yield api
        finally:
            api.process.terminate(10)


@pytest.fixture(scope="module")
def api(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: EmbeddedPostgres,
    template_database: TemplateDatabase,
) -> Iterator[Api]:
    with opened(tmp_path_factory.mktemp("api"), postgres_server, template_database) as running:
        yield running


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def refusal(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    """Status code and ErrorInfo reason."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error: Any = caught.value
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    if status is not None:
        status.details[0].Unpack(info)
    return error.code(), info.reason


def test_with_the_index_away_recall_answers_by_words_and_says_so(api: Api) -> None:
    with api.session() as lin:
        memory = lin.remember("周会改到周一上午")
        api.sql("update openbot.index_entries set state = 'indexed', indexed_version = 1")
        answer = lin.recall("周一的安排")
    assert [item.memory.name for item in answer.items] == [memory.name]
    assert answer.served_by == contract.RecallResponse.SERVED_BY_LEXICAL
    assert answer.degraded_reason == "INDEX_UNAVAILABLE"


def test_a_call_ends_at_the_services_limit_and_leaves_nothing(api: Api) -> None:
    request_id = str(uuid4())
    with api.session() as lin:
        with api.stalled():
            late = refusal(lambda: lin.remember("too late", request_id=request_id))
            assert until(lambda: api.waiting(0)), "the statement is cancelled as well"
        assert late == (grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED")
        assert api.sql("select count(*) from openbot.memories where text = 'too late'") == "0"
        lin.remember("too late", request_id=request_id)
    assert api.sql("select count(*) from openbot.memories where text = 'too late'") == "1"


def test_a_callers_deadline_ends_the_work_too(api: Api) -> None:
    with grpc.insecure_channel(api.address) as channel, api.session() as lin, api.stalled():
        call: Any = channel.unary_unary(
            "/openbot.memory.v1.MemoryService/Remember",
            request_serializer=contract.RememberRequest.SerializeToString,
        )
        request = contract.RememberRequest(text="hurry", request_id=str(uuid4()))
        code, _ = refusal(lambda: call(request, metadata=lin.metadata, timeout=0.7))
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert until(lambda: api.waiting(0))
    assert api.sql("select count(*) from openbot.memories where text = 'hurry'") == "0"


def test_a_busy_service_refuses_more_calls_and_stays_alive(api: Api, threads: ThreadPoolExecutor) -> None:
    with api.session() as lin:
        with api.stalled():
            held = [threads.submit(lin.remember, f"held {number}") for number in range(2)]
            assert until(lambda: api.waiting(2))
            assert refusal(lambda: lin.recall("held")) == (
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "TOO_MANY_CALLS",
            )
            assert api.health("liveness") == SERVING
        assert {each.result(20).text for each in held} == {"held 0", "held 1"}
        assert len(lin.recall("held").items) == 2


def test_reflection_tells_the_contract_where_it_is_switched_on(api: Api) -> None:
    with grpc.insecure_channel(api.address) as channel:
        services = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert "openbot.memory.v1.MemoryService" in services


def test_a_second_process_does_not_take_a_share_of_the_port(api: Api) -> None:
    rival = subprocess.run(
        [sys.executable, "-m", "memory_api"],
        env=api.environment | {"MEMORY_API_SPANS_FILE": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert rival.returncode == 2
    assert "MEMORY_API_PORT" in rival.stderr


def test_nothing_that_a_caller_says_is_in_the_log_or_the_spans(api: Api) -> None:
    canary = f"heron{uuid4().hex}"
    with api.session() as lin, grpc.insecure_channel(api.address) as channel:
        memory = lin.remember(f"the {canary} nests 在湖边")
        lin.recall(f"where does the {canary} nest")
        lin.get(memory.name)
        lin.list()
        forget = lin.forget(memory.name)
        lin.get_forget(forget.name)
        failing: list[Callable[[], object]] = [
            lambda: lin.remember("x", source=canary),
            lambda: lin.remember("x", request_id=canary),
            lambda: lin.remember(f"{canary}\0"),
            lambda: lin.remember(canary * 1000),
            lambda: lin.get(f"memories/{canary}"),
            lambda: lin.list(page_token=canary),
        ]
        raw: Any = channel.unary_unary(RECALL)
        elsewhere: Any = channel.unary_unary(f"/openbot.memory.v1.MemoryService/{canary}")
        traced = (
            ("traceparent", f"00-{uuid4().hex}-{uuid4().hex[:16]}-01"),
            ("tracestate", f"a={canary}"),
            ("baggage", f"a={canary}"),
            ("x-note", canary),
        )
        query = contract.RecallRequest(query=canary).SerializeToString()
        raw(query, metadata=(*lin.metadata, *traced))
        failing += [
            lambda: raw(b"\xff" + canary.encode(), metadata=lin.metadata),
            lambda: elsewhere(b"", metadata=(*lin.metadata, *traced)),
            lambda: raw(query, metadata=(("authorization", f"Bearer {canary}"), *traced)),
            lambda: raw(query, metadata=(lin.metadata[0], ("openbot-session", canary))),
        ]
        for call in failing:
            refusal(call)
        api.sql("alter table openbot.memories rename column text to words")
        try:
            assert refusal(lambda: lin.remember(canary)) == (grpc.StatusCode.INTERNAL, "INTERNAL")
        finally:
            api.sql("alter table openbot.memories rename column words to text")
        secrets = [value.removeprefix("Bearer ") for _, value in lin.metadata]
    assert until(lambda: "unexpected error" in api.log.read_text())
    spans = api.spans.read_text()
    assert RECALL.removeprefix("/") in spans
    for line in api.log.read_text().splitlines():
        assert json.loads(line)["service"] == "memory_api"
    for written in (api.log.read_text(), spans):
        for word in (canary, "nests", "湖边", *secrets):
            assert word not in written


def test_a_running_call_is_finished_before_the_end(
    tmp_path: Path,
    postgres_server: EmbeddedPostgres,
    template_database: TemplateDatabase,
    threads: ThreadPoolExecutor,
) -> None:
    with opened(tmp_path, postgres_server, template_database) as api, api.session() as lin:
        with api.stalled():
            running: Future[Any] = threads.submit(lin.remember, "just in time")
            assert until(api.waiting)
            api.process.send(signal.SIGTERM)
            assert until(lambda: "draining" in api.log.read_text())
            time.sleep(0.2)
            assert not running.done()
        assert running.result(20).text == "just in time"
        assert api.process.wait(20) == 0
        assert api.sql("select count(*) from openbot.memories") == "1"
