"""Every route that the real Hindsight has, with every kind of credential: only what is allowed passes."""

import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devstack.bank_tokens import BankTokens
from hindsight_guard.operations import OPERATIONS
from hindsight_index import HindsightIndex

from tests.contract.inside import Inside

pytestmark = pytest.mark.hindsight

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OTHER_BANK = "bank-of-another"
NOBODYS_KEY = Ed25519PrivateKey.generate()

#: What anybody may ask.
OPEN = {("GET", "/health"), ("GET", "/health/live"), ("GET", "/health/ready")}

#: All else that is let through, as Hindsight writes its routes, and the operation that opens it. A new
#: version may not add to it by itself.
LISTED = {
    ("PUT", "/v1/default/banks/{bank_id}"): "bank.create",
    ("GET", "/v1/default/banks/{bank_id}/config"): "bank.read",
    ("PATCH", "/v1/default/banks/{bank_id}/config"): "bank.configure",
    ("POST", "/v1/default/banks/{bank_id}/memories"): "document.retain",
    ("POST", "/v1/default/banks/{bank_id}/memories/recall"): "recall",
    ("GET", "/v1/default/banks/{bank_id}/memories/list"): "units.list",
    ("GET", "/v1/default/banks/{bank_id}/documents/{document_id:path}"): "document.read",
    ("DELETE", "/v1/default/banks/{bank_id}/documents/{document_id:path}"): "document.delete",
    ("GET", "/v1/default/banks/{bank_id}/operations"): "operations.list",
    ("GET", "/v1/default/banks/{bank_id}/operations/{operation_id}"): "operations.read",
    ("DELETE", "/v1/default/banks/{bank_id}/operations/{operation_id}/delete"): "operations.delete",
}

#: Not among the routes of an application without MCP, or nowhere.
BESIDES = {
    "/docs",
    "/redoc",
    "/openapi.json",
    "/mcp",
    "/mcp/",
    "/mcp/{bank_id}/",
    "/metrics",
    "/version",
    "/",
}

BODIES: dict[str, object] = {
    "bank.configure": {"updates": {"retain_extraction_mode": "chunks"}},
    "document.retain": {"items": [{"content": "Ada drinks green tea.", "document_id": "d"}]},
    "recall": {"query": "tea", "types": ["world"], "max_tokens": 100},
}


@dataclass(frozen=True)
class Caller:
    """A bank, and the signer that may do what is asked and the one that may not."""

    bank: str
    operation: str | None
    signer: BankTokens
    other_signer: BankTokens

    @property
    def wanted(self) -> tuple[str, ...]:
        """What a token must say to be of any use: for a route that is not listed, everything."""
        return tuple(OPERATIONS) if self.operation is None else (self.operation,)


Credential = Callable[[Caller], str | None]


def _expired(caller: Caller) -> str:
    now = int(time.time())
    times = {"iat": now - 120, "exp": now - 60}
    return caller.signer.token(caller.bank, *caller.wanted, claims=times)


#: Credential and the status that a listed route answers it with; None: Hindsight answers.
CREDENTIALS: dict[str, tuple[Credential, int | None]] = {
    "none": (lambda caller: None, 401),
    "garbage": (lambda caller: "garbage", 401),
    "expired": (_expired, 401),
    "another key": (lambda c: c.signer.token(c.bank, *c.wanted, key=NOBODYS_KEY), 401),
    "alg none": (lambda c: c.signer.token(c.bank, *c.wanted, key=b"", headers={"alg": "none"}), 401),
    "another bank": (lambda c: c.signer.token(OTHER_BANK, *c.wanted), 403),
    "other operations": (lambda c: c.signer.token(c.bank, *sorted(OPERATIONS.keys() - {c.operation})), 403),
    "the other service's": (lambda c: c.other_signer.token(c.bank, *OPERATIONS), 403),
    "right": (lambda c: c.signer.token(c.bank, *c.wanted), None),
}


def target(path: str, bank: str) -> str:
    return re.sub(r"\{[^}]*\}", "00000000-0000-4000-8000-000000000000", path.replace("{bank_id}", bank))


def cells(inside: Inside) -> Iterator[tuple[str, str, str]]:
    routes = {(method, path) for path, methods in inside["routes"].items() for method in methods}
    besides = {(method, path) for path in BESIDES for method in ("GET", "POST")}
    for (method, path), credential in product(sorted(routes | besides), CREDENTIALS):
        yield method, path, credential


def refused(answer: httpx.Response, status: int) -> bool:
    """Whether it is the door's own answer, and this one."""
    body = b"" if answer.request.method == "HEAD" else b'{"detail":"refused"}'
    return answer.status_code == status and answer.content == body


def let_in(answer: httpx.Response) -> bool:
    """Whether Hindsight itself answered, and not to refuse."""
    return answer.status_code not in {401, 403, 405} and b"refused" not in answer.content


def test_hindsight_has_the_routes_that_are_listed_and_many_more(inside: Inside) -> None:
    routes = inside["routes"]
    assert {each for each in (*LISTED, *OPEN) if each[0] not in routes.get(each[1], [])} == set()
    assert len(routes) > 50
    assert {"/docs", "/openapi.json", "/metrics", "/version"} <= routes.keys()
    assert sorted(LISTED.values()) == sorted(OPERATIONS)
    documented = {path.replace(":path", "") for path in routes}
    assert inside["documented"].keys() <= documented


async def test_only_what_is_allowed_passes_the_door(
    *,
    http: httpx.AsyncClient,
    index: HindsightIndex,
    daemon: BankTokens,
    api: BankTokens,
    bank: str,
    inside: Inside,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await index.ensure_bank(bank)
    wrong: list[tuple[str, str, str, int, bytes]] = []
    count = 0
    for method, path, name in cells(inside):
        operation = LISTED.get((method, path))
        signers = (api, daemon) if operation == "recall" else (daemon, api)
        credential, status = CREDENTIALS[name]
        token = credential(Caller(bank, operation, *signers))
        answer = await http.request(
            method,
            target(path, bank),
            json=BODIES.get(operation or "", {}) if method in {"POST", "PUT", "PATCH"} else None,
            headers={} if token is None else {"authorization": f"Bearer {token}"},
        )
        count += 1
        if (method, path) in OPEN:
            right = (answer.status_code, answer.content) == (200, b"{}")
        elif operation is None:
            right = refused(answer, 404)
        else:
            right = let_in(answer) if status is None else refused(answer, status)
        if not right:
            wrong.append((method, path, name, answer.status_code, answer.content[:80]))
    with capsys.disabled():
        sys.stdout.write(f"\nguard matrix: {count} cells\n")
    assert wrong == []
    assert count > 900


async def test_no_other_method_of_any_route_is_found_with_the_strongest_tokens(
    http: httpx.AsyncClient, daemon: BankTokens, api: BankTokens, bank: str, inside: Inside
) -> None:
    let_through = set()
    tokens = [signer.token(bank, *OPERATIONS) for signer in (api, daemon)]
    for method, path in sorted(product(METHODS, {*inside["routes"], *BESIDES, "/nothing"})):
        if (method, path) in LISTED or (method, path) in OPEN or method in inside["routes"].get(path, []):
            continue
        for token in tokens:
            answer = await http.request(
                method, target(path, bank), headers={"authorization": f"Bearer {token}"}
            )
            if not refused(answer, 404):
                let_through.add((method, path, answer.status_code))
    assert let_through == set()


@pytest.mark.parametrize(
    ("operation", "method", "path", "body"),
    [
        ("document.retain", "POST", "/memories", {"async": True}),
        ("document.retain", "POST", "/memories", {"operation_id": "00000000-0000-4000-8000-000000000000"}),
        ("document.retain", "POST", "/memories", {"document_tags": ["t"]}),
        ("recall", "POST", "/memories/recall", {"include": {"chunks": {}}}),
        ("recall", "POST", "/memories/recall", {"types": ["world", "observation"]}),
        ("bank.create", "PUT", "", {"name": "n"}),
        ("bank.configure", "PATCH", "/config", {"updates": {"retain_extraction_mode": "concise"}}),
        ("bank.configure", "PATCH", "/config", {"updates": {"llm_model": "m"}}),
        ("bank.configure", "PATCH", "/config", {"updates": {"no_such_setting": True}}),
    ],
    ids=str,
)
async def test_a_right_token_does_not_open_what_we_never_send(
    *,
    http: httpx.AsyncClient,
    index: HindsightIndex,
    daemon: BankTokens,
    api: BankTokens,
    bank: str,
    operation: str,
    method: str,
    path: str,
    body: dict[str, object],
) -> None:
    await index.ensure_bank(bank)
    token = (api if operation == "recall" else daemon).token(bank, operation)
    right = BODIES.get(operation, {})
    assert isinstance(right, dict)
    answer = await http.request(
        method,
        f"/v1/default/banks/{bank}{path}",
        json=right | body,
        headers={"authorization": f"Bearer {token}"},
    )
    assert refused(answer, 400)
