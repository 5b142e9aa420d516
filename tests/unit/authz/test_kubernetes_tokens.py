"""Projected service-account tokens of a Kubernetes cluster as service identity, beside SPIFFE JWT-SVIDs."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from authz import (
    AuthenticationFailed,
    AuthenticationFailure,
    ConfigurationError,
    IdentityVerifier,
    JwksFile,
    ServiceRole,
    parse_issuers,
)
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from devstack.issuer import (
    BOT_RUNTIME,
    CLUSTER_BOT_RUNTIME,
    CLUSTER_ISSUER,
    MEMORY_AUDIENCE,
    OMIT,
    SERVICE_ISSUER,
    SESSION_ISSUER,
    DevelopmentIssuer,
    public_jwk,
    write_json,
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> DevelopmentIssuer:
    """Kept for the module: RSA keys take time to make."""
    return DevelopmentIssuer(tmp_path_factory.mktemp("issuer"), kubernetes=True)


@pytest.fixture
def verifier(cluster: DevelopmentIssuer) -> IdentityVerifier:
    return IdentityVerifier(parse_issuers(cluster.identity_file.read_text()), MEMORY_AUDIENCE)


def refusal(verifier: IdentityVerifier, token: str) -> AuthenticationFailure:
    with pytest.raises(AuthenticationFailed) as caught:
        verifier.verify_service(token)
    return caught.value.reason


def test_a_service_account_is_a_workload_with_a_role(
    cluster: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    service = verifier.verify_service(cluster.cluster_token())
    assert (service.workload_id, service.role) == (CLUSTER_BOT_RUNTIME, ServiceRole.BOT_RUNTIME)
    assert verifier.verify_service(cluster.service_token()).workload_id == BOT_RUNTIME


def test_a_session_belongs_to_the_service_account_it_names(
    cluster: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    session = cluster.session_token(user="ada", company="acme", bot="muse", actor=CLUSTER_BOT_RUNTIME)
    assert verifier.verify(cluster.cluster_token(), session).user == "ada"
    with pytest.raises(AuthenticationFailed) as caught:
        verifier.verify(cluster.service_token(), session)
    assert caught.value.reason is AuthenticationFailure.SESSION_NOT_FOR_THIS_SERVICE


INVALID, UNKNOWN = AuthenticationFailure.SERVICE_TOKEN_INVALID, AuthenticationFailure.SERVICE_UNKNOWN


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"sub": BOT_RUNTIME}, INVALID),
        ({"sub": "system:serviceaccount:openbot:other"}, UNKNOWN),
        ({"sub": "system:serviceaccount:other:bot-runtime"}, UNKNOWN),
        ({"sub": "system:serviceaccount:openbot:bot-runtime:x"}, INVALID),
        ({"sub": "system:serviceaccount:openbot"}, INVALID),
        ({"sub": "system:serviceaccount:Open Bot:bot-runtime"}, INVALID),
        ({"sub": "system:serviceaccount:-openbot:bot-runtime"}, INVALID),
        ({"sub": "system:serviceaccount:" + "a" * 64 + ":bot-runtime"}, INVALID),
        ({"sub": "system:serviceaccount:openbot:" + "a." * 127 + "a"}, INVALID),
        ({"sub": "system:admin"}, INVALID),
        ({"aud": ["https://kubernetes.default.svc"]}, INVALID),
        ({"iss": SESSION_ISSUER}, INVALID),
        ({"iss": SERVICE_ISSUER}, INVALID),
        ({"exp": OMIT}, INVALID),
    ],
    ids=str,
)
def test_what_is_not_a_configured_service_account_is_nobody(
    cluster: DevelopmentIssuer,
    verifier: IdentityVerifier,
    claims: Mapping[str, object],
    reason: AuthenticationFailure,
) -> None:
    assert refusal(verifier, cluster.cluster_token(claims=claims)) is reason


def test_the_other_issuer_cannot_speak_for_a_service_account(
    cluster: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    assert refusal(verifier, cluster.service_token(CLUSTER_BOT_RUNTIME)) is INVALID


def test_algorithms_are_not_confused(cluster: DevelopmentIssuer, verifier: IdentityVerifier) -> None:
    assert cluster.cluster_key is not None
    public = cluster.cluster_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    forged = (
        cluster.cluster_token(key=public, headers={"alg": "HS256"}),
        cluster.cluster_token(key=b"", headers={"alg": "none"}),
        cluster.cluster_token(headers={"alg": "PS256"}),
        cluster.cluster_token(headers={"alg": "RS512"}),
        cluster.cluster_token(key=Ed25519PrivateKey.generate(), headers={"alg": "EdDSA"}),
        cluster.cluster_token(
            key=cluster.service_key, headers={"kid": public_jwk(cluster.service_key)["kid"]}
        ),
        cluster.service_token(key=cluster.cluster_key, headers={"alg": "RS256"}),
        cluster.cluster_token(headers={"kid": OMIT}),
        cluster.cluster_token(headers={"jku": "https://attacker.example/jwks"}),
        cluster.cluster_token(key=rsa.generate_private_key(public_exponent=65537, key_size=2048)),
    )
    assert [refusal(verifier, token) for token in forged] == [INVALID] * len(forged)


def test_a_session_signed_by_the_cluster_is_no_session(
    cluster: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    session = cluster.cluster_token(
        claims={
            "company": "acme",
            "bot": "muse",
            "entry": "web",
            "present": True,
            "act": {"sub": BOT_RUNTIME},
        }
    )
    with pytest.raises(AuthenticationFailed) as caught:
        verifier.verify(cluster.service_token(), session)
    assert caught.value.reason is AuthenticationFailure.SESSION_TOKEN_INVALID


def rsa_jwk(bits: int, exponent: int = 65537) -> dict[str, str]:
    return public_jwk(rsa.generate_private_key(public_exponent=exponent, key_size=bits))


def test_a_cluster_publishes_keys_as_kubernetes_does(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    write_json(file, {"keys": [rsa_jwk(2048)]})
    JwksFile(file, ("RS256", "ES256"))
    with pytest.raises(ConfigurationError):
        JwksFile(file, ("EdDSA", "ES256"))


@pytest.mark.parametrize(
    "weak",
    [
        lambda: rsa_jwk(1024),
        lambda: rsa_jwk(2048, exponent=3),
        lambda: rsa_jwk(2048) | {"e": "AQAC"},
        lambda: rsa_jwk(2048) | {"n": "AA"},
        lambda: rsa_jwk(2048) | {"n": 7},
        lambda: rsa_jwk(2048) | {"n": "!"},
        lambda: rsa_jwk(2048) | {"d": "AA"},
        lambda: rsa_jwk(2048) | {"alg": "RS512"},
        lambda: rsa_jwk(2048) | {"use": "enc"},
    ],
)
def test_weak_malformed_and_private_rsa_keys_are_refused(tmp_path: Path, weak: object) -> None:
    file = tmp_path / "jwks.json"
    write_json(file, {"keys": [weak()]})  # type: ignore[operator]
    with pytest.raises(ConfigurationError):
        JwksFile(file, ("RS256",))


def test_the_cluster_is_configured_with_its_own_name(cluster: DevelopmentIssuer) -> None:
    assert CLUSTER_ISSUER in cluster.identity_file.read_text()
