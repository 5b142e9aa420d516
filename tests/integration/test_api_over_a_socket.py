"""What callers see over a real socket: identity, rights, errors, limits, health."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, cast
from uuid import uuid4

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from devstack.client import Session
from devstack.control_plane import Company
from devstack.issuer import BOT_RUNTIME, CHANNEL_GATEWAY, CONTROL_PLANE, OPERATOR, SCHEDULED_BOTS
from devstack.paths import CHECKOUT, VENV_BIN
from devstack.stack import Stack
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from openbot.memory.v1 import memory_service_pb2 as contract
from openbot.memory.v1 import memory_service_pb2_grpc

from tests.authority import state_facts

pytestmark = pytest.mark.e2e

CANARY = f"canary-{uuid4().hex}"
Metadata = tuple[tuple[str, str], ...]


class Door:
    """The service as a caller with any metadata reaches it."""

    def __init__(self, stack: Stack, exits: ExitStack) -> None:
        self.stack = stack
        self.issuer = stack.issuer
        channel = exits.enter_context(grpc.insecure_channel(stack.address))
        self.stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        self.channel = channel

    def session(self, actor: str = CHANNEL_GATEWAY, **claims: Any) -> str:
        return self.issuer.session_token(
            **{"user": "lin", "company": "doorway", "bot": "assistant", "actor": actor, **claims}
        )

    def metadata(self, actor: str = CHANNEL_GATEWAY, **claims: Any) -> Metadata:
        return (
            ("authorization", f"Bearer {self.issuer.service_token(actor)}"),
            ("openbot-session", self.session(actor, **claims)),
        )


@pytest.fixture(scope="module")
def door(stack: Stack) -> Iterator[Door]:
    import asyncio  # noqa: PLC0415 - only to seed

    asyncio.run(
        state_facts(
            stack.dsns["authority_writer"],
            Company("doorway", members=("lin", "omar"), bots={"assistant": True}),
        )
    )
    with ExitStack() as exits:
        yield Door(stack, exits)


def refused(call: Callable[[], object]) -> tuple[grpc.StatusCode, str, list[tuple[str, str]], bytes]:
    """Status code, ErrorInfo reason, field violations and the raw details of a refusal."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    # Every error of a call is the call as well; the stubs do not know.
    error = cast(Any, caught.value)
    status = rpc_status.from_call(error)
    assert CANARY not in str(error)
    if status is None:
        return error.code(), "", [], b""
    raw = status.SerializeToString()
    assert CANARY.encode() not in raw
    reason, violations = "", []
    for detail in status.details:
        info, fields = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if detail.Unpack(info):
            assert info.domain == "memory.openbot"
            reason = info.reason
        if detail.Unpack(fields):
            violations = [(each.field, each.description) for each in fields.field_violations]
    return error.code(), reason, violations, raw


def wrong_tokens(door: Door) -> dict[str, tuple[Metadata, str]]:
    """Every kind of wrong identity and the reason that the caller is given."""
    issuer = door.issuer
    service = f"Bearer {issuer.service_token(BOT_RUNTIME)}"
    session = door.session(BOT_RUNTIME)
    stranger = Ed25519PrivateKey.generate()
    now = int(time.time())
    past = {"iat": now - 500, "exp": now - 200}
    public = issuer.service_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def of_service(token: str) -> Metadata:
        return (("authorization", f"Bearer {token}"), ("openbot-session", session))

    def of_session(token: str) -> Metadata:
        return (("authorization", service), ("openbot-session", token))

    invalid = "SERVICE_TOKEN_INVALID"
    return {
        "nothing": ((), "SERVICE_TOKEN_MISSING"),
        "no service token": ((("openbot-session", session),), "SERVICE_TOKEN_MISSING"),
        "not a bearer": (
            (("authorization", "Basic eA=="), ("openbot-session", session)),
            "SERVICE_TOKEN_MISSING",
        ),
        "twice": ((("authorization", service), *of_session(session)), "SERVICE_TOKEN_MISSING"),
        "no session": ((("authorization", service),), "SESSION_TOKEN_MISSING"),
        "garbage": (of_service("garbage"), invalid),
        "another key": (of_service(issuer.service_token(BOT_RUNTIME, key=stranger)), invalid),
        "unsigned": (
            of_service(issuer.service_token(BOT_RUNTIME, key=b"", headers={"alg": "none"})),
            invalid,
        ),
        "HS256 with the public key": (
            of_service(issuer.service_token(BOT_RUNTIME, key=public, headers={"alg": "HS256"})),
            invalid,
        ),
        "another audience": (of_service(issuer.service_token(BOT_RUNTIME, claims={"aud": "other"})), invalid),
        "expired": (
            of_service(issuer.service_token(BOT_RUNTIME, claims=past)),
            "SERVICE_TOKEN_EXPIRED",
        ),
        "unknown workload": (
            of_service(issuer.service_token("spiffe://openbot.example/nobody")),
            "SERVICE_UNKNOWN",
        ),
        "session as service": (of_service(session), invalid),
        "service as session": (of_session(issuer.service_token(BOT_RUNTIME)), "SESSION_TOKEN_INVALID"),
        "stolen session": (of_session(door.session(SCHEDULED_BOTS)), "SESSION_NOT_FOR_THIS_SERVICE"),
        "expired session": (
            of_session(door.session(BOT_RUNTIME, claims=past)),
            "SESSION_TOKEN_EXPIRED",
        ),
        "present on a schedule": (
            of_session(door.session(BOT_RUNTIME, entry="schedule", present=True)),
            "SESSION_TOKEN_INVALID",
        ),
    }


def test_every_wrong_identity_is_unauthenticated_with_its_reason(door: Door) -> None:
    for kind, (metadata, reason) in wrong_tokens(door).items():
        found = refused(lambda m=metadata: door.stub.Recall(contract.RecallRequest(query=CANARY), metadata=m))  # type: ignore[misc]
        assert found[:2] == (grpc.StatusCode.UNAUTHENTICATED, reason), kind


def test_identity_comes_before_anything_of_the_request_is_looked_at(door: Door) -> None:
    code, _, violations, _ = refused(lambda: door.stub.Recall(contract.RecallRequest(), metadata=()))
    assert (code, violations) == (grpc.StatusCode.UNAUTHENTICATED, [])


@pytest.mark.parametrize(
    ("actor", "claims", "reason"),
    [
        (BOT_RUNTIME, {"entry": "schedule", "present": False}, "ENTRY_NOT_ALLOWED"),
        (BOT_RUNTIME, {"present": False}, "PRESENCE_REQUIRED"),
        (CHANNEL_GATEWAY, {"entry": "channel", "present": False}, "PRESENCE_REQUIRED"),
        (CONTROL_PLANE, {}, "ROLE_NOT_ALLOWED"),
        (OPERATOR, {}, "ROLE_NOT_ALLOWED"),
        (CHANNEL_GATEWAY, {"role": "company_admin"}, "COMPANY_ADMIN_SEES_NO_MEMORY"),
    ],
)
def test_who_may_not_remember_is_told_why(
    door: Door, actor: str, claims: dict[str, Any], reason: str
) -> None:
    request = contract.RememberRequest(text=CANARY, request_id=str(uuid4()))
    found = refused(lambda: door.stub.Remember(request, metadata=door.metadata(actor, **claims)))
    assert found[:2] == (grpc.StatusCode.PERMISSION_DENIED, reason)


def test_web_channel_and_schedule_recall_alike(door: Door) -> None:
    with Session(door.stack.address, door.issuer, user="lin", company="doorway", bot="assistant") as lin:
        memory = lin.remember("汇报先讲风险，再讲进展。")
    for entry, present in (("web", True), ("channel", True), ("schedule", False)):
        answer = door.stub.Recall(
            contract.RecallRequest(query="先讲风险"), metadata=door.metadata(entry=entry, present=present)
        )
        assert [item.memory.name for item in answer.items] == [memory.name], entry


NAME = f"memories/{uuid4()}"
TARGET = contract.ForgetMemoriesRequest.Target


@pytest.mark.parametrize(
    ("rpc", "request_", "fields"),
    [
        ("Remember", contract.RememberRequest(text="", request_id=str(uuid4())), {"text"}),
        ("Remember", contract.RememberRequest(text="\u200b \n", request_id=str(uuid4())), {"text"}),
        ("Remember", contract.RememberRequest(text=f"{CANARY}\0", request_id=str(uuid4())), {"text"}),
        ("Remember", contract.RememberRequest(text=CANARY * 200, request_id=str(uuid4())), {"text"}),
        ("Remember", contract.RememberRequest(text="x", request_id=CANARY), {"request_id"}),
        ("Remember", contract.RememberRequest(text="x", request_id=str(uuid4()), source=CANARY), {"source"}),
        (
            "Remember",
            contract.RememberRequest(text="x", request_id=str(uuid4()), source="sources/../x"),
            {"source"},
        ),
        ("Recall", contract.RecallRequest(query=""), {"query"}),
        ("Recall", contract.RecallRequest(query="x", limit=51), {"limit"}),
        ("Recall", contract.RecallRequest(query="x", limit=-1), {"limit"}),
        ("GetMemory", contract.GetMemoryRequest(name=f"memories/{CANARY}"), {"name"}),
        ("GetMemory", contract.GetMemoryRequest(name=NAME.upper()), {"name"}),
        ("GetForget", contract.GetForgetRequest(name=NAME), {"name"}),
        ("ListMemories", contract.ListMemoriesRequest(page_size=-1), {"page_size"}),
        ("ListMemories", contract.ListMemoriesRequest(page_token=CANARY), {"page_token"}),
        ("ForgetMemories", contract.ForgetMemoriesRequest(request_id=str(uuid4())), {"targets"}),
        (
            "ForgetMemories",
            contract.ForgetMemoriesRequest(targets=[TARGET(name=NAME)] * 2, request_id=str(uuid4())),
            {"targets"},
        ),
        (
            "ForgetMemories",
            contract.ForgetMemoriesRequest(
                targets=[TARGET(name=NAME), TARGET(name=CANARY)], request_id=str(uuid4())
            ),
            {"targets[1].name"},
        ),
        (
            "ForgetMemories",
            contract.ForgetMemoriesRequest(
                targets=[TARGET(name=f"memories/{uuid4()}") for _ in range(1001)], request_id=str(uuid4())
            ),
            {"targets"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_request_that_breaks_the_contract_names_its_fields(
    door: Door, rpc: str, request_: Any, fields: set[str]
) -> None:
    code, reason, violations, _ = refused(lambda: getattr(door.stub, rpc)(request_, metadata=door.metadata()))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert reason in {"INVALID_REQUEST", "PAGE_TOKEN_INVALID"}
    assert {field for field, _ in violations} == fields


@pytest.mark.parametrize("raw", [b"\xff\xff\xff", b"\x0a\x02\xc3\x28", b"\x0a\x7fshort"])
def test_bytes_that_are_no_message_are_refused_like_any_wrong_field(door: Door, raw: bytes) -> None:
    call: Any = door.channel.unary_unary("/openbot.memory.v1.MemoryService/Recall")
    assert refused(lambda: call(raw))[:2] == (grpc.StatusCode.UNAUTHENTICATED, "SERVICE_TOKEN_MISSING")
    code, reason, violations, _ = refused(lambda: call(raw, metadata=door.metadata()))
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert violations == [("", "is not a message of this method")]


def test_anothers_memory_and_none_at_all_get_the_same_bytes(door: Door) -> None:
    with Session(door.stack.address, door.issuer, user="omar", company="doorway", bot="assistant") as omar:
        theirs = omar.remember("Omar's own")
        forget = omar.forget(omar.remember("Omar's other").name)

    def of(rpc: str, request: Any) -> tuple[Any, ...]:
        return refused(lambda: getattr(door.stub, rpc)(request, metadata=door.metadata()))

    for name in (theirs.name, NAME):
        assert of("GetMemory", contract.GetMemoryRequest(name=name)) == of(
            "GetMemory", contract.GetMemoryRequest(name=NAME)
        )
        one = contract.ForgetMemoriesRequest(targets=[TARGET(name=name)], request_id=str(uuid4()))
        none = contract.ForgetMemoriesRequest(targets=[TARGET(name=NAME)], request_id=str(uuid4()))
        assert of("ForgetMemories", one) == of("ForgetMemories", none)
    unknown = contract.GetForgetRequest(name=f"forgets/{uuid4()}")
    assert of("GetForget", contract.GetForgetRequest(name=forget.name)) == of("GetForget", unknown)


def test_oversized_unknown_and_late_calls_are_refused(door: Door) -> None:
    large = contract.RememberRequest(text=CANARY * 10_000, request_id=str(uuid4()))
    assert refused(lambda: door.stub.Remember(large, metadata=door.metadata()))[0] is (
        grpc.StatusCode.RESOURCE_EXHAUSTED
    )
    unknown: Any = door.channel.unary_unary("/openbot.memory.v1.MemoryService/Reveal")
    assert refused(lambda: unknown(b"", metadata=door.metadata()))[0] is grpc.StatusCode.UNIMPLEMENTED
    late = refused(
        lambda: door.stub.Recall(contract.RecallRequest(query="x"), metadata=door.metadata(), timeout=0.001)
    )
    assert late[0] is grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_client_that_is_not_ours_can_call_it(door: Door) -> None:
    def curl(**claims: Any) -> subprocess.CompletedProcess[str]:
        headers = [part for name, value in door.metadata(**claims) for part in ("-H", f"{name}: {value}")]
        return subprocess.run(
            [
                str(VENV_BIN / "buf"), "curl", "--protocol", "grpc", "--http2-prior-knowledge", *headers,
                "--schema", ".", "-d", '{"query": "先讲风险"}',
                f"http://{door.stack.address}/openbot.memory.v1.MemoryService/Recall",
            ],
            cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    with Session(door.stack.address, door.issuer, user="lin", company="doorway", bot="assistant") as lin:
        lin.remember("汇报先讲风险，再讲进展。")
    own, foreign = curl(), curl(company="elsewhere")
    assert own.returncode == 0
    assert "汇报先讲风险" in own.stdout
    assert foreign.returncode == 0, "an empty answer, not an error that tells the memory exists"
    assert "items" not in foreign.stdout
