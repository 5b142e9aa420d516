"""One-bank tokens: who signed them, for which bank, for which operations, until when."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt

from hindsight_guard.operations import BANK, OPERATIONS

_log = logging.getLogger(__name__)

_MAX_TOKEN_CHARACTERS = 4096
_LEEWAY_S = 5
_REQUIRED = ["iss", "aud", "bank", "ops", "iat", "exp", "jti"]
_HEADER = frozenset({"alg", "kid", "typ"})


class GuardMisconfigured(Exception):
    """The guard must not start. The text names the setting."""


class TokenInvalid(Exception):
    """The token is not one that we signed, or not any more. Says no more than that."""

    def __init__(self) -> None:
        super().__init__("the token is not valid")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a valid token allows."""

    bank: str
    operations: frozenset[str]

    def allows(self, bank: str, operation: str) -> bool:
        """Whether it is for this bank and operation."""
        return bank == self.bank and operation in self.operations


class KeyFile:
    """The public keys of one signer: a JWKS file of Ed25519 keys, read again when it changes.

    A file that cannot be read keeps the keys as they were; a key that left the file is gone at once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: tuple[int, ...] | None = None
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._load_if_changed()
        if not self._keys:
            raise GuardMisconfigured("an issuer's jwks_file holds no usable keys")

    def key(self, kid: str) -> jwt.PyJWK | None:
        """The key of this id, None if there is none now."""
        self._load_if_changed()
        return self._keys.get(kid)

    def _load_if_changed(self) -> None:
        try:
            found = self._path.stat()
        except OSError:
            return
        mark = (found.st_mtime_ns, found.st_size, found.st_ino)
        if mark == self._mark:
            return
        try:
            content = self._path.read_bytes()
        except OSError:
            # Not marked as seen: a key that was taken out must not live on because of one failed read.
            _log.warning("a changed JWKS file cannot be read; the keys stay as they were")
            return
        self._mark = mark
        try:
            self._keys = _parse_keys(content.decode())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, jwt.PyJWTError):
            _log.warning("a changed JWKS file cannot be used; the keys stay as they were")


def _parse_keys(text: str) -> Mapping[str, jwt.PyJWK]:
    keys: dict[str, jwt.PyJWK] = {}
    for each in json.loads(text)["keys"]:
        if each.get("kty") != "OKP" or each.get("crv") != "Ed25519" or "d" in each or not each.get("kid"):
            raise ValueError
        if each["kid"] in keys:
            raise ValueError
        keys[each["kid"]] = jwt.PyJWK(each, algorithm="EdDSA")
    return keys


@dataclass(frozen=True, slots=True)
class Signer:
    """One issuer of tokens and the most that its tokens may allow."""

    issuer: str
    keys: KeyFile
    operations: frozenset[str]


@dataclass(frozen=True)
class TokenVerifier:
    """Verifies tokens of the configured signers for one audience."""

    audience: str
    signers: Mapping[str, Signer]
    max_lifetime_s: int = 300
    _decoder: jwt.PyJWT = field(default_factory=jwt.PyJWT, repr=False)

    def verify(self, token: str | None) -> Grant:
        """What ``token`` allows, never more than its signer may. Raises ``TokenInvalid`` for all else."""
        if not token or len(token) > _MAX_TOKEN_CHARACTERS:
            raise TokenInvalid
        try:
            return self._verify(token)
        except (
            jwt.PyJWTError,
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            OverflowError,
            RecursionError,
        ):
            raise TokenInvalid from None

    def _verify(self, token: str) -> Grant:
        header = jwt.get_unverified_header(token)
        if header.keys() != _HEADER or header["alg"] != "EdDSA" or header["typ"] != "JWT":
            raise TokenInvalid
        claimed = self._decoder.decode(token, options={"verify_signature": False})
        signer = self.signers[claimed["iss"]]
        key = signer.keys.key(header["kid"])
        if key is None:
            raise TokenInvalid
        claims: dict[str, Any] = self._decoder.decode(
            token,
            key.key,
            algorithms=["EdDSA"],
            audience=self.audience,
            issuer=signer.issuer,
            leeway=_LEEWAY_S,
            options={"require": _REQUIRED, "strict_aud": True},
        )
        if not 0 < claims["exp"] - claims["iat"] <= self.max_lifetime_s:
            raise TokenInvalid
        bank, operations = claims["bank"], claims["ops"]
        if not isinstance(bank, str) or not BANK.fullmatch(bank):
            raise TokenInvalid
        if not isinstance(operations, list) or not operations or not set(operations) <= OPERATIONS.keys():
            raise TokenInvalid
        return Grant(bank, frozenset(operations) & signer.operations)


def load_verifier(issuers_file: Path, audience: str, max_lifetime_s: int) -> TokenVerifier:
    """The verifier for ``[{"issuer", "jwks_file", "operations"}, …]``. Raises ``GuardMisconfigured``."""
    if not audience:
        raise GuardMisconfigured("HINDSIGHT_GUARD_AUDIENCE is empty")
    try:
        entries = json.loads(issuers_file.read_text(encoding="utf-8"))
        signers: dict[str, Signer] = {}
        for entry in entries:
            operations = frozenset(entry["operations"])
            if entry.keys() != {"issuer", "jwks_file", "operations"} or entry["issuer"] in signers:
                raise GuardMisconfigured("the issuers file has an unknown key or names an issuer twice")
            if not operations or not operations <= OPERATIONS.keys():
                raise GuardMisconfigured("the issuers file has no or unknown operations for an issuer")
            issuer = entry["issuer"]
            if not isinstance(issuer, str) or not issuer:
                raise GuardMisconfigured("the issuers file has an entry without an issuer's name")
            signers[issuer] = Signer(issuer, KeyFile(Path(entry["jwks_file"])), operations)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise GuardMisconfigured("HINDSIGHT_GUARD_ISSUERS_FILE cannot be used") from None
    if not signers:
        raise GuardMisconfigured("the issuers file names no issuer")
    return TokenVerifier(audience, signers, max_lifetime_s)
