"""Which service tokens prove a workload, and which prove nothing."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from authz import (
    AuthenticationFailed,
    AuthenticationFailure,
    IdentityVerifier,
    Service,
    ServiceRole,
    parse_issuers,
)
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devstack.issuer import (
    BOT_RUNTIME,
    CHANNEL_GATEWAY,
    MEMORY_AUDIENCE,
    OMIT,
    SESSION_ISSUER,
    DevelopmentIssuer,
    public_jwk,
    write_json,
)


def failure(verifier: IdentityVerifier, token: object) -> AuthenticationFailure:
    with pytest.raises(AuthenticationFailed) as caught:
        verifier.verify_service(token)  # type: ignore[arg-type]
    return caught.value.reason


def test_a_signed_token_proves_the_workload_and_the_table_gives_it_a_role(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    service = verifier.verify_service(issuer.service_token(CHANNEL_GATEWAY))
    assert service == Service("spiffe://openbot.example/channel-gateway", ServiceRole.CHANNEL_GATEWAY)


@pytest.mark.parametrize("audience", [MEMORY_AUDIENCE, ["elsewhere", MEMORY_AUDIENCE]])
def test_the_audience_may_be_one_name_or_a_list_with_it(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, audience: object
) -> None:
    assert verifier.verify_service(issuer.service_token(claims={"aud": audience})).workload_id == BOT_RUNTIME


@pytest.mark.parametrize("token", [None, ""])
def test_no_token_is_told_apart_from_a_wrong_one(verifier: IdentityVerifier, token: str | None) -> None:
    assert failure(verifier, token) is AuthenticationFailure.SERVICE_TOKEN_MISSING


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "exp", "iat"])
def test_every_required_claim_is_required(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, claim: str
) -> None:
    token = issuer.service_token(claims={claim: OMIT})
    assert failure(verifier, token) is AuthenticationFailure.SERVICE_TOKEN_INVALID


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "elsewhere"},
        {"aud": ["elsewhere"]},
        {"aud": []},
        {"aud": ""},
        {"aud": f"{MEMORY_AUDIENCE}-admin"},
        {"aud": [MEMORY_AUDIENCE, 7]},
        {"aud": {MEMORY_AUDIENCE: True}},
        {"iss": "https://workloads.evil.example"},
        {"iss": "https://workloads.openbot.example/"},
        {"iss": SESSION_ISSUER},
        {"iss": ["https://workloads.openbot.example"]},
        {"exp": "4102444800"},
        {"exp": True},
        {"exp": 10**400},
        {"iat": None},
        {"iat": -1},
        {"nbf": "now"},
        {"nbf": None},
        {"nbf": True},
    ],
    ids=str,
)
def test_a_claim_that_is_not_for_here_makes_the_token_invalid(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, claims: dict[str, object]
) -> None:
    token = issuer.service_token(claims=claims)
    assert failure(verifier, token) is AuthenticationFailure.SERVICE_TOKEN_INVALID


@pytest.mark.parametrize(
    "subject",
    [
        "bot-runtime",
        "https://openbot.example/bot-runtime",
        "SPIFFE://openbot.example/bot-runtime",
        "spiffe://openbot.example",
        "spiffe://openbot.example/",
        "spiffe:///bot-runtime",
        "spiffe://openbot.example/bot-runtime/",
        "spiffe://openbot.example//bot-runtime",
        "spiffe://openbot.example/../bot-runtime",
        "spiffe://openbot.example/./bot-runtime",
        "spiffe://OpenBot.example/bot-runtime",
        "spiffe://openbot.example:443/bot-runtime",
        "spiffe://me@openbot.example/bot-runtime",
        "spiffe://openbot.example/bot-runtime?x=1",
        "spiffe://openbot.example/bot-runtime#x",
        "spiffe://openbot.example/bot%2Druntime",
        "spiffe://openbot.example/bot-runtime\n",
        "spiffe://openbot.example/bot-runtime\u202e",
        "spiffe://openbot.example/" + "a" * 2048,
        "",
        7,
        None,
        ["spiffe://openbot.example/bot-runtime"],
    ],
)
def test_a_subject_that_is_no_spiffe_id_makes_the_token_invalid(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, subject: object
) -> None:
    token = issuer.service_token(claims={"sub": subject})
    assert failure(verifier, token) is AuthenticationFailure.SERVICE_TOKEN_INVALID


def test_a_workload_without_a_role_here_is_unknown(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    token = issuer.service_token("spiffe://openbot.example/billing")
    assert failure(verifier, token) is AuthenticationFailure.SERVICE_UNKNOWN


def test_a_session_token_is_no_service_token(
    verifier: IdentityVerifier, session_token: Callable[..., str]
) -> None:
    posing = session_token(claims={"sub": BOT_RUNTIME})
    assert failure(verifier, posing) is AuthenticationFailure.SERVICE_TOKEN_INVALID


def test_an_expired_token_is_accepted_within_the_leeway_and_not_after(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    now = int(time.time())
    late = issuer.service_token(claims={"iat": now - 600, "exp": now - 10})
    assert verifier.verify_service(late).workload_id == BOT_RUNTIME
    too_late = issuer.service_token(claims={"iat": now - 600, "exp": now - 60})
    assert failure(verifier, too_late) is AuthenticationFailure.SERVICE_TOKEN_EXPIRED


def test_expiry_is_told_only_about_a_token_that_is_otherwise_right(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    now = int(time.time())
    expired = {"iat": now - 600, "exp": now - 60}
    forged = issuer.service_token(claims=expired, key=Ed25519PrivateKey.generate())
    assert failure(verifier, forged) is AuthenticationFailure.SERVICE_TOKEN_INVALID
    elsewhere = issuer.service_token(claims=expired | {"aud": "elsewhere"})
    assert failure(verifier, elsewhere) is AuthenticationFailure.SERVICE_TOKEN_INVALID


def test_a_token_from_the_future_waits_for_its_time(issuer: DevelopmentIssuer) -> None:
    config = parse_issuers(issuer.identity_file.read_text())
    now = int(time.time())
    instant = datetime.fromtimestamp(now, UTC)
    verifier = IdentityVerifier(config, MEMORY_AUDIENCE, clock=lambda: instant)
    later = IdentityVerifier(config, MEMORY_AUDIENCE, clock=lambda: instant + timedelta(minutes=2))
    for claims in ({"iat": now + 60, "exp": now + 600}, {"nbf": now + 60}):
        token = issuer.service_token(claims=claims)
        assert failure(verifier, token) is AuthenticationFailure.SERVICE_TOKEN_INVALID
        assert later.verify_service(token).workload_id == BOT_RUNTIME
    for claims in ({"iat": now + 20, "exp": now + 600}, {"nbf": now + 20}):
        assert verifier.verify_service(issuer.service_token(claims=claims)).workload_id == BOT_RUNTIME


def test_an_issuer_cannot_sign_for_longer_than_it_may(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    assert verifier.verify_service(issuer.service_token(lifetime=timedelta(hours=1)))
    for lifetime in (timedelta(hours=1, seconds=1), timedelta(0), timedelta(minutes=-5)):
        token = issuer.service_token(lifetime=lifetime)
        assert failure(verifier, token) is AuthenticationFailure.SERVICE_TOKEN_INVALID


@pytest.mark.parametrize(
    "headers",
    [
        {"kid": OMIT},
        {"kid": "another-key"},
        {"kid": None},
        {"kid": ["a"]},
        {"alg": OMIT},
        {"alg": "none"},
        {"alg": "None"},
        {"alg": "ES256"},
        {"alg": "RS256"},
        {"alg": ["EdDSA"]},
        {"crit": ["exp"], "exp": 1},
        {"crit": []},
        {"b64": False},
        {"b64": True},
        {"zip": "DEF"},
        {"typ": "at+jwt"},
        {"typ": None},
    ],
    ids=str,
)
def test_a_header_that_would_change_the_verification_is_refused(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, headers: dict[str, object]
) -> None:
    token = issuer.service_token(headers=headers)
    assert failure(verifier, token) is AuthenticationFailure.SERVICE_TOKEN_INVALID


def test_a_token_cannot_bring_or_point_at_its_own_key(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    own = Ed25519PrivateKey.generate()
    for headers in (
        {},
        {"jwk": public_jwk(own)},
        {"jku": "https://evil.example/jwks.json"},
        {"x5u": "https://evil.example/chain.pem"},
        {"x5c": ["AAAA"]},
        {"kid": public_jwk(own)["kid"], "jwk": public_jwk(own)},
    ):
        token = issuer.service_token(headers=headers, key=own)
        assert failure(verifier, token) is AuthenticationFailure.SERVICE_TOKEN_INVALID


def test_an_unsigned_token_proves_nothing(issuer: DevelopmentIssuer, verifier: IdentityVerifier) -> None:
    for algorithm in ("none", "None", "NONE", "EdDSA"):
        unsigned = issuer.service_token(headers={"alg": algorithm}, key=b"")
        assert failure(verifier, unsigned) is AuthenticationFailure.SERVICE_TOKEN_INVALID
        assert failure(verifier, unsigned + "AA") is AuthenticationFailure.SERVICE_TOKEN_INVALID
        assert failure(verifier, unsigned.rstrip(".")) is AuthenticationFailure.SERVICE_TOKEN_INVALID


def test_the_public_key_is_no_shared_secret(issuer: DevelopmentIssuer, verifier: IdentityVerifier) -> None:
    public = issuer.service_key.public_key()
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    for secret in (
        public.public_bytes(serialization.Encoding.PEM, info),
        public.public_bytes(serialization.Encoding.DER, info),
        public.public_bytes_raw(),
        public_jwk(issuer.service_key)["x"].encode(),
    ):
        token = issuer.service_token(headers={"alg": "HS256"}, key=secret)
        assert failure(verifier, token) is AuthenticationFailure.SERVICE_TOKEN_INVALID


def test_an_issuer_pinned_to_one_algorithm_verifies_no_other(issuer: DevelopmentIssuer) -> None:
    curve_key = ec.generate_private_key(ec.SECP256R1())
    kid = public_jwk(curve_key)["kid"]
    es256 = issuer.service_token(headers={"alg": "ES256", "kid": kid}, key=curve_key)
    pinned = IdentityVerifier(parse_issuers(issuer.identity_file.read_text()), MEMORY_AUDIENCE)
    assert failure(pinned, es256) is AuthenticationFailure.SERVICE_TOKEN_INVALID
    # The same key passed off under the known key id.
    posing = issuer.service_token(headers={"alg": "ES256"}, key=curve_key)
    assert failure(pinned, posing) is AuthenticationFailure.SERVICE_TOKEN_INVALID

    write_json(issuer.service_jwks_file, {"keys": [public_jwk(curve_key)]})
    text = issuer.identity_file.read_text().replace('"EdDSA"', '"ES256"', 1)
    declared = IdentityVerifier(parse_issuers(text), MEMORY_AUDIENCE)
    assert declared.verify_service(es256).workload_id == BOT_RUNTIME


def test_a_changed_byte_anywhere_breaks_the_signature(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    token = issuer.service_token()
    assert verifier.verify_service(token)
    for position in range(0, len(token), 7):
        if token[position] == ".":
            continue
        replacement = "A" if token[position] != "A" else "B"
        changed = token[:position] + replacement + token[position + 1 :]
        assert failure(verifier, changed) is AuthenticationFailure.SERVICE_TOKEN_INVALID


def test_a_token_larger_than_8_kib_is_not_even_parsed(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    assert verifier.verify_service(issuer.service_token(claims={"padding": "a" * 4000}))
    large = issuer.service_token(claims={"padding": "a" * 8000})
    assert failure(verifier, large) is AuthenticationFailure.SERVICE_TOKEN_INVALID


def test_an_issuer_speaks_only_for_its_own_subjects(tmp_path: Path) -> None:
    ours, theirs = DevelopmentIssuer(tmp_path / "ours"), DevelopmentIssuer(tmp_path / "theirs")
    document = {
        "issuers": [
            _issuer_entry("https://workloads.openbot.example", ours.service_jwks_file, BOT_RUNTIME),
            _issuer_entry("https://gateways.openbot.example", theirs.service_jwks_file, CHANNEL_GATEWAY),
            _issuer_entry(SESSION_ISSUER, ours.session_jwks_file),
        ],
        "services": {BOT_RUNTIME: "bot-runtime", CHANNEL_GATEWAY: "channel-gateway"},
    }
    path = tmp_path / "identity.json"
    write_json(path, document)
    verifier = IdentityVerifier(parse_issuers(path.read_text()), MEMORY_AUDIENCE)
    gateways = {"iss": "https://gateways.openbot.example"}
    assert verifier.verify_service(theirs.service_token(CHANNEL_GATEWAY, claims=gateways))
    posing = theirs.service_token(BOT_RUNTIME, claims=gateways)
    assert failure(verifier, posing) is AuthenticationFailure.SERVICE_UNKNOWN
    # A key of one issuer proves nothing about another issuer's tokens.
    assert failure(verifier, theirs.service_token()) is AuthenticationFailure.SERVICE_TOKEN_INVALID


def _issuer_entry(issuer: str, jwks_file: Path, *subjects: str) -> dict[str, object]:
    entry: dict[str, object] = {
        "issuer": issuer,
        "kind": "service" if subjects else "session",
        "algorithms": ["EdDSA"],
        "jwks_file": str(jwks_file),
        "max_lifetime_seconds": 600,
    }
    return entry | {"subjects": list(subjects)} if subjects else entry
