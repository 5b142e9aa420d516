"""One-bank tokens: what our services present to the guard inside Hindsight.

A JWT signed with Ed25519, for one bank, a few operations and a few minutes. The guard
(services/hindsight_guard) verifies them and holds the list of operations.
"""

from __future__ import annotations

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

#: Longest life of a token; the guard refuses longer ones.
MAX_LIFETIME = timedelta(minutes=5)


class BankTokenSigner:
    """Signs with one Ed25519 key (PEM, unencrypted). Its ``kid`` is the RFC 7638 thumbprint.

    Raises ``ValueError`` if the key is of another kind.
    """

    def __init__(
        self,
        private_key_pem: bytes,
        *,
        issuer: str,
        audience: str = "hindsight",
        lifetime: timedelta = timedelta(seconds=60),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        key = load_pem_private_key(private_key_pem, password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError("bank tokens are signed with Ed25519")  # noqa: TRY004 - a wrong value in a file
        if not timedelta(0) < lifetime <= MAX_LIFETIME:
            raise ValueError("bank tokens live at most five minutes")
        self._key = key
        self._kid = _thumbprint(key)
        self._issuer = issuer
        self._audience = audience
        self._lifetime = lifetime
        self._clock = clock

    def sign(self, bank: str, *operations: str, expires_at: datetime | None = None) -> str:
        """A token for ``operations`` on ``bank``, good until ``expires_at`` if that is sooner than usual."""
        now = self._clock()
        end = now + self._lifetime
        claims = {
            "iss": self._issuer,
            "aud": self._audience,
            "bank": bank,
            "ops": list(operations),
            "iat": int(now.timestamp()),
            "exp": int(min(end, expires_at or end).timestamp()),
            "jti": secrets.token_urlsafe(16),
        }
        return jwt.encode(claims, self._key, algorithm="EdDSA", headers={"kid": self._kid, "typ": "JWT"})


def _thumbprint(key: Ed25519PrivateKey) -> str:
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    x = urlsafe_b64encode(public).rstrip(b"=").decode()
    canonical = f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'
    return urlsafe_b64encode(hashlib.sha256(canonical.encode()).digest()).rstrip(b"=").decode()
