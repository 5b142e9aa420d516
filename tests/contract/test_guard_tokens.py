"""Who gets into the real Hindsight, and with what."""

import time
from collections.abc import Callable
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devstack.bank_tokens import BankTokens
from devstack.issuer import MEMORY_AUDIENCE, OMIT
from devstack.stack import Stack
from hindsight_index import HindsightIndex

pytestmark = pytest.mark.hindsight

Forge = Callable[[BankTokens, str], str | None]

SECRET = "not-a-number-but-a-secret"
NOBODYS_KEY = Ed25519PrivateKey.generate()


def claims(**changes: object) -> Forge:
    return lambda api, bank: api.token(bank, "recall", claims=changes)


def times(issued_s: int, expires_s: int) -> Forge:
    def forge(api: BankTokens, bank: str) -> str:
        now = int(time.time())
        return api.token(bank, "recall", claims={"iat": now + issued_s, "exp": now + expires_s})

    return forge


UNAUTHENTICATED: dict[str, Forge] = {
    "no token": lambda api, bank: None,
    "garbage": lambda api, bank: "garbage",
    "alg none": lambda api, bank: api.token(bank, "recall", key=b"", headers={"alg": "none"}),
    "no signature": lambda api, bank: api.token(bank, "recall", key=b""),
    "the public key as a secret": lambda api, bank: api.token(
        bank, "recall", key=api.public_bytes, headers={"alg": "HS256"}
    ),
    "another key": lambda api, bank: api.token(bank, "recall", key=NOBODYS_KEY),
    "no kid": lambda api, bank: api.token(bank, "recall", headers={"kid": OMIT}),
    "another type": lambda api, bank: api.token(bank, "recall", headers={"typ": "at+jwt"}),
    "own jwk": lambda api, bank: api.token(bank, "recall", headers={"jwk": {}}),
    "expired": times(-120, -60),
    "from the future": times(60, 120),
    "too long a life": times(0, 301),
    "no expiry": claims(exp=OMIT),
    "another audience": claims(aud=MEMORY_AUDIENCE),
    "no audience": claims(aud=OMIT),
    "an unknown issuer": claims(iss="somebody"),
    "no bank": claims(bank=OMIT),
    "every bank": claims(bank="*"),
    "no operations": claims(ops=[]),
    "unknown operations": claims(ops=["recall", "bank.delete"]),
    "no id": claims(jti=OMIT),
    "too long": claims(jti="j" * 4000),
}


@pytest.fixture
async def existing_bank(index: HindsightIndex, bank: str) -> str:
    await index.ensure_bank(bank)
    await index.retain(bank, "d", "Ada drinks green tea.")
    return bank


async def recall(http: httpx.AsyncClient, bank: str, token: str | None) -> httpx.Response:
    return await http.post(
        f"/v1/default/banks/{bank}/memories/recall",
        json={"query": "tea", "types": ["world"], "max_tokens": 100},
        headers={} if token is None else {"authorization": f"Bearer {token}"},
    )


async def delete(http: httpx.AsyncClient, bank: str, token: str) -> httpx.Response:
    return await http.delete(
        f"/v1/default/banks/{bank}/documents/d", headers={"authorization": f"Bearer {token}"}
    )


async def test_a_right_token_is_let_in(http: httpx.AsyncClient, api: BankTokens, existing_bank: str) -> None:
    answer = await recall(http, existing_bank, api.token(existing_bank, "recall"))
    assert answer.status_code == 200
    assert len(answer.json()["results"]) == 1


@pytest.mark.parametrize("forge", UNAUTHENTICATED.values(), ids=UNAUTHENTICATED.keys())
async def test_whoever_has_no_token_of_ours_is_not_let_in(
    http: httpx.AsyncClient, api: BankTokens, bank: str, forge: Forge
) -> None:
    answer = await recall(http, bank, forge(api, bank))
    assert (answer.status_code, answer.json()) == (401, {"detail": "refused"})


async def test_a_token_is_for_one_bank(
    http: httpx.AsyncClient, api: BankTokens, daemon: BankTokens, existing_bank: str
) -> None:
    assert (await recall(http, existing_bank, api.token("bank-of-another", "recall"))).status_code == 403
    wrong = daemon.token("bank-of-another", "document.delete")
    assert (await delete(http, existing_bank, wrong)).status_code == 403


async def test_a_token_is_for_the_operations_it_names(
    http: httpx.AsyncClient, daemon: BankTokens, existing_bank: str
) -> None:
    wrong = daemon.token(existing_bank, "document.read", "document.retain")
    assert (await delete(http, existing_bank, wrong)).status_code == 403


async def test_the_api_cannot_delete_and_the_daemon_cannot_recall_whatever_their_tokens_claim(
    http: httpx.AsyncClient, api: BankTokens, daemon: BankTokens, existing_bank: str
) -> None:
    claimed = ("recall", "document.delete")
    assert (await delete(http, existing_bank, api.token(existing_bank, *claimed))).status_code == 403
    assert (await recall(http, existing_bank, daemon.token(existing_bank, *claimed))).status_code == 403
    assert (await delete(http, existing_bank, daemon.token(existing_bank, *claimed))).status_code == 200


async def test_a_session_token_of_openbot_is_no_bank_token(
    http: httpx.AsyncClient, stack: Stack, existing_bank: str
) -> None:
    session = stack.issuer.session_token(user="ada", company="acme", bot="muse")
    assert jwt.decode(session, options={"verify_signature": False})["sub"] == "ada"
    assert (await recall(http, existing_bank, session)).status_code == 401


async def test_nothing_of_a_refused_request_is_logged(
    http: httpx.AsyncClient, stack: Stack, api: BankTokens, existing_bank: str
) -> None:
    token = api.token(existing_bank, "recall", key=NOBODYS_KEY)
    body: dict[str, Any] = {"query": "a-question-of-ada", "types": ["world"], "max_tokens": 100}
    path = f"/v1/default/banks/{existing_bank}/memories/recall"
    for each in (token, api.token(existing_bank, "recall")):
        await http.post(path, json=body, headers={"authorization": f"Bearer {each}"})
        await http.post(path, json=body | {"max_tokens": SECRET}, headers={"authorization": f"Bearer {each}"})
    log = (stack.logs / "hindsight.log").read_text()
    assert "a-question-of-ada" not in log
    assert SECRET not in log
    assert token not in log
