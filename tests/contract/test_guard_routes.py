"""Every route that the running Hindsight has, seen from outside."""

import json
import re
import subprocess
from itertools import product

import httpx
import pytest
from devstack.bank_tokens import BankTokens
from devstack.process import base_environment
from devstack.stack import Stack
from hindsight_guard.operations import OPERATIONS

pytestmark = pytest.mark.hindsight

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

#: All that is let through, as Hindsight writes its routes. A new version may not add to it by itself.
LISTED = {
    ("GET", "/health"),
    ("GET", "/health/live"),
    ("GET", "/health/ready"),
    ("PUT", "/v1/default/banks/{bank_id}"),
    ("GET", "/v1/default/banks/{bank_id}/config"),
    ("PATCH", "/v1/default/banks/{bank_id}/config"),
    ("POST", "/v1/default/banks/{bank_id}/memories"),
    ("POST", "/v1/default/banks/{bank_id}/memories/recall"),
    ("GET", "/v1/default/banks/{bank_id}/memories/list"),
    ("GET", "/v1/default/banks/{bank_id}/documents/{document_id:path}"),
    ("DELETE", "/v1/default/banks/{bank_id}/documents/{document_id:path}"),
    ("GET", "/v1/default/banks/{bank_id}/operations"),
    ("GET", "/v1/default/banks/{bank_id}/operations/{operation_id}"),
    ("DELETE", "/v1/default/banks/{bank_id}/operations/{operation_id}/delete"),
}

_ASK = """
import json
from hindsight_api.server import app
routes = [(route.path, sorted(getattr(route, "methods", None) or [])) for route in app.routes]
print("ROUTES " + json.dumps(routes))
"""


@pytest.fixture(scope="module")
def routes(stack: Stack) -> dict[str, set[str]]:
    """Path → methods, asked of Hindsight's own application, without the guard and with MCP."""
    assert stack.hindsight_config is not None
    environment = stack.hindsight_config.environment() | {"HINDSIGHT_API_MCP_ENABLED": "true"}
    done = subprocess.run(
        [stack.hindsight_config.venv / "bin" / "python", "-c", _ASK],
        env=base_environment() | environment,
        cwd=stack.directory,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("ROUTES "))
    found: dict[str, set[str]] = {}
    for path, methods in json.loads(line.removeprefix("ROUTES ")):
        found.setdefault(path, set()).update(methods)
    return found


def test_hindsight_has_the_routes_that_are_listed_and_many_more(routes: dict[str, set[str]]) -> None:
    assert {(method, path) for method, path in LISTED if method not in routes.get(path, set())} == set()
    assert len(routes) > 50
    assert {"/docs", "/openapi.json", "/metrics", "/version"} <= routes.keys()


async def test_every_other_route_of_hindsight_is_not_found(
    http: httpx.AsyncClient, daemon: BankTokens, api: BankTokens, bank: str, routes: dict[str, set[str]]
) -> None:
    paths = {*routes, "/mcp", "/mcp/", "/mcp/{bank_id}/", "/", "/nothing"}
    let_through = set()
    for method, path in sorted(product(METHODS, paths)):
        if (method, path) in LISTED:
            continue
        target = re.sub(r"\{[^}]*\}", "00000000-0000-4000-8000-000000000000", path.replace("{bank_id}", bank))
        for signer in (api, daemon):
            answer = await http.request(
                method,
                target,
                headers={"authorization": f"Bearer {signer.token(bank, *OPERATIONS)}"},
            )
            refused = answer.status_code == 404 and (
                method == "HEAD" or answer.json() == {"detail": "refused"}
            )
            if not refused:
                let_through.add((method, path, answer.status_code))
    assert let_through == set()


async def test_paths_in_disguise_are_not_found(
    http: httpx.AsyncClient, daemon: BankTokens, bank: str
) -> None:
    token = {"authorization": f"Bearer {daemon.token(bank, *OPERATIONS)}"}
    base = f"/v1/default/banks/{bank}"
    for path in (
        f"{base}/config/",
        f"{base}//config",
        f"{base}/%63onfig",
        f"{base}%2fconfig",
        f"{base}/documents/..%2f..%2fexport",
        f"{base}/documents/d%2fhistory",
        f"{base}/CONFIG",
        f"{base}/config%0a",
        f"/%2e{base}/config",
    ):
        request = http.build_request("GET", "/", headers=token)
        request.url = http.base_url.copy_with(raw_path=path.encode())
        answer = await http.send(request)
        assert (path, answer.status_code, answer.json()) == (path, 404, {"detail": "refused"})


async def test_health_is_open(http: httpx.AsyncClient) -> None:
    for path in ("/health", "/health/live", "/health/ready"):
        assert (await http.get(path)).status_code == 200


async def test_a_websocket_is_not_opened(http: httpx.AsyncClient, daemon: BankTokens, bank: str) -> None:
    answer = await http.get(
        f"/v1/default/banks/{bank}/config",
        headers={
            "authorization": f"Bearer {daemon.token(bank, 'bank.read')}",
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
        },
    )
    assert answer.status_code == 403
