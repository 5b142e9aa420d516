"""The token issuers of the development stack.

In production OpenBot's workload identity and its authorisation layer sign these tokens. Here one directory
plays both, with keys made on first use and kept across restarts:

With ``kubernetes`` there is a second issuer of service tokens, shaped as a cluster's.

* ``identity.json``: the configuration ``authz.parse_issuers`` reads;
* ``guard-issuers.json``: which bank-token signer may do what inside Hindsight;
* per signer ``<name>.pem``, its private key (PKCS 8, mode 0600), and ``<name>.jwks.json``, the public one.
"""

import base64
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256, Hash

SERVICE_ISSUER: Final = "https://workloads.openbot.example"
SESSION_ISSUER: Final = "https://sessions.openbot.example"
CLUSTER_ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
MEMORY_AUDIENCE: Final = "openbot-memory"

BOT_RUNTIME: Final = "spiffe://openbot.example/bot-runtime"
SCHEDULED_BOTS: Final = "spiffe://openbot.example/scheduled-bots"
CHANNEL_GATEWAY: Final = "spiffe://openbot.example/channel-gateway"
CONTROL_PLANE: Final = "spiffe://openbot.example/control-plane"
CONTROL_PLANE_EU: Final = "spiffe://openbot.example/control-plane-eu"
OPERATOR: Final = "spiffe://openbot.example/operator"

#: A bot runtime known by its Kubernetes service account.
CLUSTER_BOT_RUNTIME: Final = "system:serviceaccount:openbot:bot-runtime"

MEMORY_API_SIGNER: Final = "openbot-memory-api"
SYNC_DAEMON_SIGNER: Final = "openbot-sync-daemon"

SERVICE_ROLES: Final[Mapping[str, object]] = {
    BOT_RUNTIME: "bot-runtime",
    SCHEDULED_BOTS: "bot-runtime",
    CHANNEL_GATEWAY: "channel-gateway",
    CONTROL_PLANE: {"role": "control-plane", "companies": ["*"]},
    CONTROL_PLANE_EU: {"role": "control-plane", "companies": ["eu-*", "continental"]},
    OPERATOR: "operator",
}

BANK_OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    MEMORY_API_SIGNER: ("recall",),
    SYNC_DAEMON_SIGNER: (
        "bank.create",
        "bank.configure",
        "bank.read",
        "document.retain",
        "document.read",
        "document.delete",
        "units.list",
        "operations.list",
        "operations.read",
        "operations.delete",
    ),
}

OMIT: Final = object()
"""As the value of an overridden claim or header: leave it out of the token."""

SigningKey = Ed25519PrivateKey | EllipticCurvePrivateKey | RSAPrivateKey | bytes
"""What signs a token: EdDSA, ES256, RS256, or for forgeries an HS256 secret (empty: no signature at all)."""

_MAX_LIFETIME: Final = timedelta(hours=1)
_LIFETIME = timedelta(minutes=10)


class DevelopmentIssuer:
    """Signs service and session tokens, right ones by default and any wrong one on request.

    ``claims`` and ``headers`` replace or, with ``OMIT``, remove single members; ``key`` signs instead of the
    issuer's own key. ``alg`` stays the issuer's own unless ``headers`` says otherwise.
    """

    def __init__(self, directory: Path, *, audience: str = MEMORY_AUDIENCE, kubernetes: bool = False) -> None:
        directory = directory.resolve()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self.audience = audience
        self.service_jwks_file = directory / "workloads.jwks.json"
        self.session_jwks_file = directory / "sessions.jwks.json"
        self.identity_file = directory / "identity.json"
        self.guard_issuers_file = directory / "guard-issuers.json"
        self.service_key = self._signer("workloads")
        self.session_key = self._signer("sessions")
        for signer in BANK_OPERATIONS:
            self._signer(signer)
        self.cluster_jwks_file = directory / "cluster.jwks.json"
        self.cluster_key = _kept_rsa_key(directory / "cluster.pem") if kubernetes else None
        if self.cluster_key is not None:
            write_json(self.cluster_jwks_file, {"keys": [public_jwk(self.cluster_key)]})
        write_json(self.identity_file, self._identity())
        write_json(self.guard_issuers_file, self._guard_issuers())

    def service_token(
        self,
        spiffe_id: str = BOT_RUNTIME,
        lifetime: timedelta = _LIFETIME,
        *,
        claims: Mapping[str, object] | None = None,
        headers: Mapping[str, object] | None = None,
        key: SigningKey | None = None,
    ) -> str:
        """A JWT-SVID of the workload ``spiffe_id``, issued now."""
        body = self._registered(SERVICE_ISSUER, spiffe_id, lifetime)
        return _signed(body, claims, headers, key, own_key=self.service_key)

    def cluster_token(
        self,
        service_account: str = CLUSTER_BOT_RUNTIME,
        lifetime: timedelta = _LIFETIME,
        *,
        claims: Mapping[str, object] | None = None,
        headers: Mapping[str, object] | None = None,
        key: SigningKey | None = None,
    ) -> str:
        """A projected service-account token as Kubernetes signs it, issued now. Needs ``kubernetes``."""
        if self.cluster_key is None:
            raise ValueError("this issuer was made without Kubernetes")
        _, _, namespace, name = service_account.split(":")
        body = self._registered(CLUSTER_ISSUER, service_account, lifetime)
        body |= {
            "nbf": body["iat"],
            "jti": str(uuid4()),
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": str(uuid4())},
                "pod": {"name": f"{name}-0", "uid": str(uuid4())},
            },
        }
        shaped = {"alg": "RS256", "kid": public_jwk(self.cluster_key)["kid"], "typ": OMIT} | dict(
            headers or {}
        )
        return _signed(body, claims, shaped, key or self.cluster_key, own_key=self.service_key)

    def session_token(
        self,
        *,
        user: str,
        company: str,
        bot: str,
        entry: str = "web",
        present: bool = True,
        sources: Iterable[str] = (),
        role: str | None = None,
        actor: str = BOT_RUNTIME,
        lifetime: timedelta = _LIFETIME,
        claims: Mapping[str, object] | None = None,
        headers: Mapping[str, object] | None = None,
        key: SigningKey | None = None,
    ) -> str:
        """A session of ``user`` with ``bot``, usable only by the workload ``actor`` (RFC 8693)."""
        body = self._registered(SESSION_ISSUER, user, lifetime) | {
            "company": company,
            "bot": bot,
            "entry": entry,
            "present": present,
            "sources": list(sources),
            "act": {"sub": actor},
        }
        if role is not None:
            body["role"] = role
        return _signed(body, claims, headers, key, own_key=self.session_key)

    def bank_key_file(self, signer: str) -> Path:
        """The private key of ``MEMORY_API_SIGNER`` or ``SYNC_DAEMON_SIGNER``, PEM, mode 0600."""
        return self.directory / f"{signer}.pem"

    def bank_jwks_file(self, signer: str) -> Path:
        """The public key that goes with ``bank_key_file``."""
        return self.directory / f"{signer}.jwks.json"

    def _signer(self, name: str) -> Ed25519PrivateKey:
        key = _kept_key(self.directory / f"{name}.pem")
        write_json(self.directory / f"{name}.jwks.json", {"keys": [public_jwk(key)]})
        return key

    def _registered(self, issuer: str, subject: str, lifetime: timedelta) -> dict[str, object]:
        now = int(time.time())
        expires = now + int(lifetime.total_seconds())
        return {"iss": issuer, "sub": subject, "aud": [self.audience], "iat": now, "exp": expires}

    def _identity(self) -> dict[str, object]:
        def entry(issuer: str, kind: str, jwks_file: Path, **more: object) -> dict[str, object]:
            return {
                "issuer": issuer,
                "kind": kind,
                "algorithms": ["EdDSA"],
                "jwks_file": str(jwks_file),
                "max_lifetime_seconds": int(_MAX_LIFETIME.total_seconds()),
                **more,
            }

        session = entry(SESSION_ISSUER, "session", self.session_jwks_file)
        service = entry(SERVICE_ISSUER, "service", self.service_jwks_file)
        if self.cluster_key is None:
            return {"issuers": [service, session], "services": dict(SERVICE_ROLES)}
        cluster = entry(
            CLUSTER_ISSUER,
            "service",
            self.cluster_jwks_file,
            algorithms=["RS256"],
            token_format="kubernetes",  # noqa: S106 - a format, not a secret
            subjects=[CLUSTER_BOT_RUNTIME],
        )
        return {
            "issuers": [service | {"subjects": list(SERVICE_ROLES)}, cluster, session],
            "services": {**SERVICE_ROLES, CLUSTER_BOT_RUNTIME: "bot-runtime"},
        }

    def _guard_issuers(self) -> list[dict[str, object]]:
        return [
            {"issuer": signer, "jwks_file": str(self.bank_jwks_file(signer)), "operations": list(operations)}
            for signer, operations in BANK_OPERATIONS.items()
        ]


def public_jwk(key: Ed25519PrivateKey | EllipticCurvePrivateKey | RSAPrivateKey) -> dict[str, str]:
    """The public half as a JWK for verifying; its ``kid`` is the thumbprint of RFC 7638, base64url."""
    if isinstance(key, Ed25519PrivateKey):
        algorithm, members = "EdDSA", jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    elif isinstance(key, RSAPrivateKey):
        algorithm, members = "RS256", jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        algorithm, members = "ES256", jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    required = {name: members[name] for name in ("crv", "e", "kty", "n", "x", "y") if name in members}
    digest = Hash(SHA256())
    digest.update(json.dumps(required, separators=(",", ":"), sort_keys=True).encode())
    return required | {"kid": _base64url(digest.finalize()), "use": "sig", "alg": algorithm}


def write_json(path: Path, document: object) -> None:
    """Put ``document`` at ``path`` in one step: a reader sees the old file or the new one, never a part."""
    temporary = _temporary(path, json.dumps(document, indent=2).encode() + b"\n", mode=0o644)
    temporary.replace(path)


def _kept_key(path: Path) -> Ed25519PrivateKey:
    key = _kept(path, Ed25519PrivateKey.generate)
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError("the kept key is not an Ed25519 key")
    return key


def _kept_rsa_key(path: Path) -> RSAPrivateKey:
    key = _kept(path, lambda: generate_private_key(public_exponent=65537, key_size=2048))
    if not isinstance(key, RSAPrivateKey):
        raise TypeError("the kept key is not an RSA key")
    return key


def _kept(path: Path, make: Callable[[], Ed25519PrivateKey | RSAPrivateKey]) -> object:
    if not path.exists():
        fresh = make().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        temporary = _temporary(path, fresh, mode=0o600)
        # A link, unlike a rename, fails when another process was first: then its key is the one that counts.
        with suppress(FileExistsError):
            path.hardlink_to(temporary)
        temporary.unlink()
    return serialization.load_pem_private_key(path.read_bytes(), password=None)


def _temporary(path: Path, content: bytes, *, mode: int) -> Path:
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:  # mode 0600
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
    return Path(file.name)


def _signed(
    body: Mapping[str, object],
    claims: Mapping[str, object] | None,
    headers: Mapping[str, object] | None,
    key: SigningKey | None,
    *,
    own_key: Ed25519PrivateKey,
) -> str:
    header = {"alg": "EdDSA", "kid": public_jwk(own_key)["kid"], "typ": "JWT"} | dict(headers or {})
    signing_input = f"{_segment(header)}.{_segment(dict(body) | dict(claims or {}))}"
    return (
        f"{signing_input}.{_base64url(_signature(own_key if key is None else key, signing_input.encode()))}"
    )


def _signature(key: SigningKey, message: bytes) -> bytes:
    """By hand and not by ``jwt.encode``, which rightly refuses to make the tokens a test must forge."""
    if isinstance(key, Ed25519PrivateKey):
        return key.sign(message)
    if isinstance(key, RSAPrivateKey):
        return jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).sign(message, key)
    if isinstance(key, EllipticCurvePrivateKey):
        return jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256).sign(message, key)
    return (
        jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(message, key) if key else b""
    )


def _segment(members: Mapping[str, object]) -> str:
    kept = {name: value for name, value in members.items() if value is not OMIT}
    return _base64url(json.dumps(kept, separators=(",", ":")).encode())


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
