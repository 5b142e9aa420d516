"""Tokens that were verified before: a hit costs no signature, and outlives neither its time nor its key."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from authz import AuthenticationFailed, AuthenticationFailure, IdentityVerifier, parse_issuers, signed_token
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devstack.issuer import MEMORY_AUDIENCE, DevelopmentIssuer, public_jwk, write_json


class Counted:
    """Counts the signatures that are verified."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        real = signed_token._signatures.decode

        def decode(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(signed_token._signatures, "decode", decode)


class Clock:
    """The time of day, which can be put forward."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def signatures(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


def trusting(issuer: DevelopmentIssuer, clock: Clock | None = None, **more: Any) -> IdentityVerifier:
    config = parse_issuers(issuer.identity_file.read_text())
    return IdentityVerifier(config, MEMORY_AUDIENCE, clock=clock or Clock(), **more)


def reason(verifier: IdentityVerifier, token: str) -> AuthenticationFailure | None:
    try:
        verifier.verify_service(token)
    except AuthenticationFailed as failed:
        return failed.reason
    return None


INVALID = AuthenticationFailure.SERVICE_TOKEN_INVALID


def test_the_same_token_is_verified_once(issuer: DevelopmentIssuer, signatures: Counted) -> None:
    verifier, token = trusting(issuer), issuer.service_token()
    assert [reason(verifier, token) for _ in range(5)] == [None] * 5
    assert signatures.count == 1


def test_a_hit_ends_with_the_token(issuer: DevelopmentIssuer, signatures: Counted) -> None:
    clock = Clock()
    verifier, token = trusting(issuer, clock), issuer.service_token(lifetime=timedelta(minutes=5))
    assert reason(verifier, token) is None
    clock.ahead = timedelta(minutes=6)
    assert reason(verifier, token) is AuthenticationFailure.SERVICE_TOKEN_EXPIRED
    assert signatures.count == 1


@pytest.mark.parametrize("same_kid", [False, True])
def test_a_hit_ends_with_the_key(issuer: DevelopmentIssuer, *, same_kid: bool) -> None:
    verifier, token = trusting(issuer), issuer.service_token()
    assert reason(verifier, token) is None
    other = public_jwk(Ed25519PrivateKey.generate())
    if same_kid:
        other["kid"] = public_jwk(issuer.service_key)["kid"]
    write_json(issuer.service_jwks_file, {"keys": [other]})
    assert reason(verifier, token) is INVALID
    write_json(issuer.service_jwks_file, {"keys": [public_jwk(issuer.service_key)]})
    assert reason(verifier, token) is None


def test_another_signature_under_the_same_claims_is_another_token(issuer: DevelopmentIssuer) -> None:
    verifier, token = trusting(issuer), issuer.service_token()
    assert reason(verifier, token) is None
    head, _, signature = token.rpartition(".")
    forged = f"{head}.{signature[:-4]}{'AAAA' if signature[-4:] != 'AAAA' else 'BBBB'}"
    assert reason(verifier, forged) is INVALID


def test_failures_are_not_remembered(issuer: DevelopmentIssuer, signatures: Counted) -> None:
    verifier = trusting(issuer)
    forged = issuer.service_token(key=Ed25519PrivateKey.generate())
    assert [reason(verifier, forged) for _ in range(3)] == [INVALID] * 3
    assert signatures.count == 3


def test_a_token_of_one_kind_is_never_a_hit_for_the_other(
    issuer: DevelopmentIssuer, session_token: Callable[..., str]
) -> None:
    verifier, service, session = trusting(issuer), issuer.service_token(), session_token()
    verifier.verify(service, session)
    assert reason(verifier, session) is INVALID
    with pytest.raises(AuthenticationFailed):
        verifier.verify(service, service)


def test_as_many_are_remembered_as_is_said(issuer: DevelopmentIssuer, signatures: Counted) -> None:
    verifier = trusting(issuer, remembered=3)
    tokens = [issuer.service_token(claims={"jti": str(number)}) for number in range(5)]
    for token in tokens:
        assert reason(verifier, token) is None
    assert signatures.count == 5
    for token in tokens[2:]:
        assert reason(verifier, token) is None
    assert signatures.count == 5, "the last three are hits"
    assert reason(verifier, tokens[0]) is None
    assert signatures.count == 6


def test_nothing_is_remembered_if_told_so(issuer: DevelopmentIssuer, signatures: Counted) -> None:
    verifier, token = trusting(issuer, remembered=0), issuer.service_token()
    assert [reason(verifier, token) for _ in range(3)] == [None] * 3
    assert signatures.count == 3
