"""Which tokens the guard takes for ours, and what they allow."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devstack.bank_tokens import BankTokens
from devstack.issuer import OMIT, SYNC_DAEMON_SIGNER, DevelopmentIssuer
from hindsight_guard.tokens import Grant, TokenInvalid, TokenVerifier, load_verifier
from hypothesis import given
from hypothesis import strategies as st

BANK = "bank-0123456789"
NOW = int(time.time())


def refused(verifier: TokenVerifier, token: str | None) -> bool:
    try:
        verifier.verify(token)
    except TokenInvalid:
        return True
    return False


def test_a_token_allows_its_bank_and_operations(verifier: TokenVerifier, daemon: BankTokens) -> None:
    grant = verifier.verify(daemon.token(BANK, "document.retain", "document.read"))
    assert grant == Grant(BANK, frozenset({"document.retain", "document.read"}))
    assert grant.allows(BANK, "document.read")
    assert not grant.allows(BANK, "document.delete")
    assert not grant.allows(BANK + "x", "document.read")


def test_a_signer_never_exceeds_what_it_is_configured_for(
    verifier: TokenVerifier, api: BankTokens, daemon: BankTokens
) -> None:
    asked = ("recall", "document.delete")
    assert verifier.verify(api.token(BANK, *asked)).operations == {"recall"}
    assert verifier.verify(daemon.token(BANK, *asked)).operations == {"document.delete"}


@pytest.mark.parametrize("token", [None, "", "garbage", "a.b.c", "....", "é.é.é", "\ud800", "a" * 5000])
def test_what_is_no_token_is_refused(verifier: TokenVerifier, token: str | None) -> None:
    assert refused(verifier, token)


def test_a_refusal_says_nothing_about_the_token(verifier: TokenVerifier) -> None:
    with pytest.raises(TokenInvalid) as caught:
        verifier.verify("secret.secret.secret")
    assert str(caught.value) == "the token is not valid"
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", ["iss", "aud", "bank", "ops", "iat", "exp", "jti"])
def test_every_claim_is_required(verifier: TokenVerifier, api: BankTokens, name: str) -> None:
    assert refused(verifier, api.token(BANK, "recall", claims={name: OMIT}))


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "openbot-memory"},
        {"aud": ["hindsight"]},
        {"iss": "https://somebody.example"},
        {"iss": SYNC_DAEMON_SIGNER},
        {"ops": []},
        {"ops": "recall"},
        {"ops": ["recall", "bank.delete"]},
        {"ops": ["*"]},
        {"ops": [["recall"]]},
        {"bank": "short"},
        {"bank": "Bank-0123456789"},
        {"bank": "bank/0123456789"},
        {"bank": "bank-0123456789\n"},
        {"bank": "b" * 129},
        {"bank": ["bank-0123456789"]},
        {"bank": "*"},
        {"exp": True},
        {"exp": str(NOW + 60)},
        {"exp": float("inf")},
        {"exp": float("nan")},
        {"exp": 10**400},
        {"exp": None},
        {"iat": False},
        {"iat": str(NOW)},
        {"iat": float("nan")},
        {"iat": -(10**400)},
        {"aud": None},
        {"aud": ["hindsight", "openbot-memory"]},
        {"aud": "HINDSIGHT"},
        {"iss": ["openbot-memory-api"]},
        {"iss": None},
        {"ops": {"recall": True}},
        {"ops": None},
        {"bank": None},
        {"jti": 7},
        {"nbf": NOW + 86_400},
    ],
    ids=str,
)
def test_wrong_claims_are_refused(
    verifier: TokenVerifier, api: BankTokens, claims: Mapping[str, object]
) -> None:
    assert refused(verifier, api.token(BANK, "recall", claims=claims))


@pytest.mark.parametrize(
    ("issued", "expires", "valid"),
    [
        (-60, -3, True),
        (-60, -30, False),
        (0, 300, True),
        (0, 301, False),
        (-200, 150, False),
        (3, 60, True),
        (60, 120, False),
        (0, 0, False),
    ],
)
def test_a_token_lives_five_minutes_at_most_and_clocks_may_differ_by_five_seconds(
    verifier: TokenVerifier, api: BankTokens, issued: int, expires: int, valid: bool
) -> None:
    now = int(time.time())
    token = api.token(BANK, "recall", claims={"iat": now + issued, "exp": now + expires})
    assert refused(verifier, token) is not valid


@pytest.mark.parametrize(
    "headers",
    [
        {"kid": OMIT},
        {"kid": "another"},
        {"kid": ["a"]},
        {"typ": OMIT},
        {"typ": "at+jwt"},
        {"alg": "none"},
        {"alg": "HS256"},
        {"jwk": {"kty": "OKP"}},
        {"jku": "https://keys.example"},
        {"crit": ["exp"]},
        {"b64": False},
    ],
    ids=str,
)
def test_wrong_headers_are_refused(
    verifier: TokenVerifier, api: BankTokens, headers: Mapping[str, object]
) -> None:
    assert refused(verifier, api.token(BANK, "recall", headers=headers))


def test_another_key_is_refused(verifier: TokenVerifier, api: BankTokens) -> None:
    assert refused(verifier, api.token(BANK, "recall", key=Ed25519PrivateKey.generate()))


def test_the_public_key_is_no_secret_to_sign_with(verifier: TokenVerifier, api: BankTokens) -> None:
    assert refused(verifier, api.token(BANK, "recall", key=api.public_bytes, headers={"alg": "HS256"}))


def test_a_token_without_a_signature_is_refused(verifier: TokenVerifier, api: BankTokens) -> None:
    assert refused(verifier, api.token(BANK, "recall", key=b"", headers={"alg": "none"}))
    assert refused(verifier, api.token(BANK, "recall", key=b""))


def test_a_signer_cannot_speak_for_another(
    verifier: TokenVerifier, api: BankTokens, daemon: BankTokens
) -> None:
    token = api.token(BANK, "document.delete", key=api.key, claims={"iss": daemon.signer})
    assert refused(verifier, token)


def test_a_token_that_is_too_long_is_refused(verifier: TokenVerifier, api: BankTokens) -> None:
    assert refused(verifier, api.token(BANK, "recall", claims={"jti": "j" * 4000}))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[TokenVerifier, BankTokens]:
    issuer = DevelopmentIssuer(tmp_path_factory.mktemp("issuer"))
    return load_verifier(issuer.guard_issuers_file, "hindsight", 300), BankTokens(issuer, SYNC_DAEMON_SIGNER)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([BANK, "hindsight", NOW, NOW + 60, 10**400, 1e308]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(
    claims=st.dictionaries(
        st.sampled_from(["iss", "aud", "bank", "ops", "iat", "exp", "jti", "nbf", "sub"]), json_values
    )
)
def test_signed_nonsense_is_refused_and_never_another_error(
    shared: tuple[TokenVerifier, BankTokens], claims: Mapping[str, object]
) -> None:
    verifier, daemon = shared
    try:
        grant = verifier.verify(daemon.token(BANK, "document.delete", claims=claims))
    except TokenInvalid:
        return
    assert grant.bank == claims.get("bank", BANK)
    assert "recall" not in grant.operations


@given(text=st.text())
def test_any_text_is_refused(shared: tuple[TokenVerifier, BankTokens], text: str) -> None:
    assert refused(shared[0], text)


def test_no_verifier_without_an_audience(issuer: DevelopmentIssuer, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="HINDSIGHT_GUARD_AUDIENCE"):
        load_verifier(issuer.guard_issuers_file, "", 300)
