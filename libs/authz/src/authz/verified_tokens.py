"""Signatures that were found good, so that a token which is sent again costs no second verification.

Only that is remembered. Whether the key is still trusted is asked every time, and so are audience and times:
nothing here outlives an ``exp`` or the removal of a key.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import jwt


@dataclass(frozen=True, slots=True)
class SignedClaims:
    """What an issuer signed, and the key that shows it."""

    issuer: str
    kid: str
    key: jwt.PyJWK
    claims: Mapping[str, object]


class VerifiedTokens:
    """The ``most`` tokens that were used last, known by their SHA-256; 0 remembers none."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._signed: OrderedDict[bytes, SignedClaims] = OrderedDict()

    def __len__(self) -> int:
        return len(self._signed)

    def get(self, token: str) -> SignedClaims | None:
        """What was put for exactly this token."""
        name = _name(token)
        signed = self._signed.get(name)
        if signed is not None:
            self._signed.move_to_end(name)
        return signed

    def put(self, token: str, signed: SignedClaims) -> None:
        """Remembers a token whose signature was verified just now."""
        self._signed[_name(token)] = signed
        while len(self._signed) > self._most:
            self._signed.popitem(last=False)

    def drop(self, token: str) -> None:
        """Forgets a token whose key is no longer trusted."""
        self._signed.pop(_name(token), None)


def _name(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
