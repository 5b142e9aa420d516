"""AuthorityService over a socket, as a control plane and as somebody who would like to be one."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any, cast
from uuid import uuid4

import grpc
import pytest
from devstack.client import Session
from devstack.control_plane import ControlPlane
from devstack.issuer import (
    BOT_RUNTIME,
    CHANNEL_GATEWAY,
    CLUSTER_BOT_RUNTIME,
    CONTROL_PLANE,
    CONTROL_PLANE_EU,
    OPERATOR,
)
from devstack.paths import CHECKOUT, VENV_BIN
from devstack.stack import Stack
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from openbot.memory.v1 import authority_service_pb2 as contract
from openbot.memory.v1 import authority_service_pb2_grpc

pytestmark = pytest.mark.e2e

APPLIED = contract.ApplyAuthorityResponse.OUTCOME_APPLIED
UNCHANGED = contract.ApplyAuthorityResponse.OUTCOME_UNCHANGED


@pytest.fixture
def plane(stack: Stack) -> Iterator[ControlPlane]:
    with ControlPlane(stack.address, stack.issuer) as control_plane:
        yield control_plane


@pytest.fixture
def company() -> str:
    return f"eu-{uuid4().hex[:12]}"


def refusal(call: Any) -> tuple[grpc.StatusCode, str, dict[str, str], list[str]]:
    """Status code, reason, metadata, and the fields that are wrong."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error = cast(Any, caught.value)
    status = cast(Any, rpc_status.from_call(error))
    info, fields = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    status.details[0].Unpack(info)
    for detail in status.details[1:]:
        detail.Unpack(fields)
    return error.code(), info.reason, dict(info.metadata), [each.field for each in fields.field_violations]


def apply(stack: Stack, request: contract.ApplyAuthorityRequest, workload: str = CONTROL_PLANE) -> Any:
    token = stack.issuer.service_token(workload)
    with grpc.insecure_channel(stack.address) as channel:
        stub = authority_service_pb2_grpc.AuthorityServiceStub(channel)
        return stub.ApplyAuthority(request, metadata=(("authorization", f"Bearer {token}"),), timeout=20)


def batch(company: str, base: int, revision: int, **upserts: Any) -> contract.ApplyAuthorityRequest:
    facts = contract.Facts(**upserts)
    return contract.ApplyAuthorityRequest(
        company_id=company, revision=revision, batch=contract.Batch(base_revision=base, upserts=facts)
    )


def test_revisions_only_grow_and_a_gap_says_where_to_start(stack: Stack, company: str) -> None:
    first = batch(company, 0, 10, user_ids=["lin"])
    done = apply(stack, first)
    assert (done.outcome, done.authority.revision, done.upserted_count) == (APPLIED, 10, 1)
    assert apply(stack, first).outcome == UNCHANGED
    assert apply(stack, batch(company, 0, 9, user_ids=["late"])).outcome == UNCHANGED
    assert refusal(lambda: apply(stack, batch(company, 0, 10, user_ids=["other"])))[:2] == (
        grpc.StatusCode.ALREADY_EXISTS,
        "REVISION_REUSED",
    )
    assert refusal(lambda: apply(stack, batch(company, 12, 13, user_ids=["early"])))[:3] == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "REVISION_GAP",
        {"current_revision": "10"},
    )
    team = batch(company, 10, 11, team_members=[contract.TeamMember(team_id="nowhere", user_id="lin")])
    assert refusal(lambda: apply(stack, team))[:2] == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "DANGLING_REFERENCE",
    )
    assert apply(stack, batch(company, 10, 11, team_ids=["product"])).authority.revision == 11


def test_a_control_plane_writes_and_reads_its_own_companies_only(stack: Stack, company: str) -> None:
    assert apply(stack, batch(company, 0, 1, user_ids=["lin"]), CONTROL_PLANE_EU).outcome == APPLIED
    apply(stack, batch(f"us-{company}", 0, 1, user_ids=["lin"]))
    known, unknown = f"us-{company}", f"us-{uuid4().hex}"
    answers = [
        refusal(lambda name=name: apply(stack, batch(name, 1, 2, user_ids=["eve"]), CONTROL_PLANE_EU))
        for name in (known, unknown, "continental-2", "EU-acme")
    ]
    assert answers == [(grpc.StatusCode.PERMISSION_DENIED, "COMPANY_NOT_YOURS", {}, [])] * 4
    with ControlPlane(stack.address, stack.issuer, workload=CONTROL_PLANE_EU) as eu:
        assert eu.revision(company) == 1
        assert refusal(lambda: eu.revision(known))[1] == "COMPANY_NOT_YOURS"


@pytest.mark.parametrize("workload", [BOT_RUNTIME, CHANNEL_GATEWAY, OPERATOR])
def test_nobody_else_states_facts(stack: Stack, company: str, workload: str) -> None:
    request = batch(company, 0, 1, user_ids=["eve"])
    assert refusal(lambda: apply(stack, request, workload))[:2] == (
        grpc.StatusCode.PERMISSION_DENIED,
        "ROLE_NOT_ALLOWED",
    )


def test_a_session_does_not_make_a_control_plane(stack: Stack, company: str) -> None:
    token = stack.issuer.session_token(user="lin", company=company, bot="b", actor=CONTROL_PLANE)
    with grpc.insecure_channel(stack.address) as channel:
        stub = authority_service_pb2_grpc.AuthorityServiceStub(channel)
        request = contract.GetAuthorityRequest(company_id=company)
        for metadata in ((("openbot-session", token),), (("authorization", f"Bearer {token}"),)):
            found = refusal(lambda m=metadata: stub.GetAuthority(request, metadata=m, timeout=10))
            assert found[0] is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"company_id": ""}, "company_id"),
        ({"company_id": "a b"}, "company_id"),
        ({"revision": 0}, "revision"),
        ({"revision": -1}, "revision"),
        ({"batch": contract.Batch(base_revision=-1)}, "batch.base_revision"),
        (
            {"batch": contract.Batch(upserts=contract.Facts(user_ids=["ok", "\u202enil"]))},
            "batch.upserts.user_ids[1]",
        ),
        (
            {
                "batch": contract.Batch(
                    upserts=contract.Facts(sources=[contract.Source(source_id="s", team_id="t")])
                )
            },
            "batch.upserts.sources[0].kind",
        ),
        ({"batch": contract.Batch(upserts=contract.Facts(user_ids=["a", "a"]))}, "batch.upserts.user_ids"),
        ({"batch": None}, "content"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_request_names_its_field(stack: Stack, company: str, change: Any, field: str) -> None:
    fields = {"company_id": company, "revision": 1, "batch": contract.Batch()} | change
    code, reason, _, wrong = refusal(lambda: apply(stack, contract.ApplyAuthorityRequest(**fields)))
    assert (code, reason, wrong) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST", [field])


def test_a_large_company_fits_into_a_snapshot_and_a_larger_one_is_told(
    stack: Stack, company: str, plane: ControlPlane
) -> None:
    def snapshot(people: int) -> contract.ApplyAuthorityRequest:
        names = [f"person-{number:06}" for number in range(people)]
        facts = contract.Facts(
            user_ids=names,
            team_ids=["all"],
            team_members=[contract.TeamMember(team_id="all", user_id=name) for name in names],
            sources=[
                contract.Source(
                    source_id="wiki", team_id="all", kind=contract.Source.KIND_CONNECTOR, enabled=True
                )
            ],
            source_user_grants=[contract.SourceUserGrant(source_id="wiki", user_id=name) for name in names],
        )
        return contract.ApplyAuthorityRequest(
            company_id=company, revision=people, snapshot=contract.Snapshot(facts=facts)
        )

    assert apply(stack, snapshot(15_000)).upserted_count == 45_002
    assert plane.revision(company) == 15_000
    code, reason, _, _ = refusal(lambda: apply(stack, snapshot(51_000)))
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    with pytest.raises(grpc.RpcError) as caught:
        apply(stack, snapshot(100_000))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert plane.revision(company) == 15_000


def test_a_snapshot_says_that_it_revokes_and_can_be_tried_first(stack: Stack, company: str) -> None:
    source = contract.Source(source_id="s", team_id="t", kind=contract.Source.KIND_CONVERSATION, enabled=True)
    apply(stack, batch(company, 0, 1, team_ids=["t"], sources=[source]))

    def snapshot(**fields: Any) -> contract.ApplyAuthorityRequest:
        content = contract.Snapshot(revoke_missing_sources=fields.pop("revoke", False))
        return contract.ApplyAuthorityRequest(company_id=company, revision=2, snapshot=content, **fields)

    assert refusal(lambda: apply(stack, snapshot()))[1:3] == (
        "SNAPSHOT_REVOKES_SOURCES",
        {"source_count": "1"},
    )
    tried = apply(stack, snapshot(revoke=True, validate_only=True))
    assert (tried.outcome, tried.revoked_source_count, tried.authority.revision) == (APPLIED, 1, 1)
    done = apply(stack, snapshot(revoke=True))
    assert (done.outcome, done.revoked_source_count, done.authority.revision) == (APPLIED, 1, 2)


def test_a_client_that_is_not_ours_states_facts(stack: Stack, company: str) -> None:
    request = {
        "companyId": company,
        "revision": "1",
        "snapshot": {
            "facts": {"userIds": ["lin"], "bots": [{"botId": "assistant", "generalPreferences": True}]}
        },
    }
    done = subprocess.run(
        [
            str(VENV_BIN / "buf"), "curl", "--protocol", "grpc", "--http2-prior-knowledge",
            "-H", f"authorization: Bearer {stack.issuer.service_token(CONTROL_PLANE)}",
            "--schema", ".", "-d", json.dumps(request),
            f"http://{stack.address}/openbot.memory.v1.AuthorityService/ApplyAuthority",
        ],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["upsertedCount"] == 2


def test_a_service_account_of_a_cluster_recalls_like_any_bot_runtime(stack: Stack, company: str) -> None:
    apply(
        stack,
        batch(company, 0, 1, user_ids=["lin"], bots=[contract.Bot(bot_id="b", general_preferences=True)]),
    )
    with Session(stack.address, stack.issuer, user="lin", company=company, bot="b") as lin:
        lin.remember("green tea")
    with Session(
        stack.address, stack.issuer, user="lin", company=company, bot="b", actor=CLUSTER_BOT_RUNTIME
    ) as account:
        account.metadata = (
            ("authorization", f"Bearer {stack.issuer.cluster_token()}"),
            account.metadata[1],
        )
        assert [item.memory.text for item in account.recall("tea").items] == ["green tea"]
