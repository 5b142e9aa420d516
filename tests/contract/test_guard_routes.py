"""Ways around the list of routes, tried on the running Hindsight."""

import json

import httpx
import pytest
from devstack.bank_tokens import BankTokens
from hindsight_guard.operations import OPERATIONS

from tests.contract.inside import Inside

pytestmark = pytest.mark.hindsight


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


def test_a_route_of_a_newer_hindsight_starts_closed(inside: Inside) -> None:
    answers = inside["novel_routes"]
    routes = {each["route"] for each in answers}
    assert len(routes) >= 7
    for each in answers:
        status, body = each["answer"]
        if each["asked"] == "behind":
            assert (status, "novelty" in body) == (200, True), each
        else:
            assert (status, json.loads(body)) == (404, {"detail": "refused"}), each


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
