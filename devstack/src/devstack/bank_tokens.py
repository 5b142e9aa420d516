"""One-bank tokens for tests of the guard: right ones by default and any wrong one on request.

The services sign theirs with ``hindsight_index.BankTokenSigner``, which cannot make a wrong one.
"""

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from devstack.issuer import OMIT, DevelopmentIssuer, public_jwk


class BankTokens:
    """Tokens of one of the development stack's bank-token signers."""

    def __init__(self, issuer: DevelopmentIssuer, signer: str) -> None:
        key = load_pem_private_key(issuer.bank_key_file(signer).read_bytes(), password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise TypeError("bank tokens are signed with Ed25519")
        self.signer = signer
        self.key = key
        self.public_bytes = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def token(
        self,
        bank: object,
        *operations: object,
        key: Ed25519PrivateKey | bytes | None = None,
        headers: Mapping[str, object] | None = None,
        claims: Mapping[str, object] | None = None,
    ) -> str:
        """A token for one minute. ``claims`` and ``headers`` replace or, with ``OMIT``, remove members.
        ``key`` signs instead of the signer's own: bytes by HS256, no bytes not at all; the header's ``alg``
        stays ``EdDSA`` unless ``headers`` says otherwise."""
        now = int(time.time())
        body = {
            "iss": self.signer,
            "aud": "hindsight",
            "bank": bank,
            "ops": list(operations),
            "iat": now,
            "exp": now + 60,
            "jti": "development",
        } | dict(claims or {})
        head = {"alg": "EdDSA", "kid": public_jwk(self.key)["kid"], "typ": "JWT"} | dict(headers or {})
        signed = f"{_segment(head)}.{_segment(body)}"
        return f"{signed}.{_base64url(_signature(self.key if key is None else key, signed.encode()))}"


def _signature(key: Ed25519PrivateKey | bytes, message: bytes) -> bytes:
    if isinstance(key, bytes):
        return hmac.digest(key, message, "sha256") if key else b""
    return key.sign(message)


def _segment(members: Mapping[str, object]) -> str:
    kept = {name: value for name, value in members.items() if value is not OMIT}
    return _base64url(json.dumps(kept, separators=(",", ":")).encode())


def _base64url(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()
