"""A JWKS document (RFC 7517) as public keys by ``kid``, each bound to one of its issuer's algorithms."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from authz.strict_json import parse_object

MAX_DOCUMENT_BYTES = 256 * 1024

_KEY_ID = re.compile(r"[\x21-\x7e]{1,256}")
_COORDINATE = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 bytes in base64url, the size both curves share
_INTEGER = re.compile(r"[A-Za-z0-9_-]{1,1400}")  # up to 8192 bits
_RSA_BITS = range(2048, 8192 + 1)
_LEAST_EXPONENT = 65537
_PRIVATE_OR_SYMMETRIC = frozenset({"d", "k", "p", "q", "dp", "dq", "qi", "oth"})
# "sig" is RFC 7517's word, "jwt-svid" the SPIFFE bundle's; its "x509-svid" keys sign no token.
_SIGNATURE_USES = (None, "sig", "jwt-svid")


@dataclass(frozen=True, slots=True)
class _KeyShape:
    kty: str
    crv: str | None
    numbers: tuple[str, ...]
    spelling: re.Pattern[str]


_SHAPES: Mapping[str, _KeyShape] = {
    "EdDSA": _KeyShape("OKP", "Ed25519", ("x",), _COORDINATE),  # RFC 8037
    "ES256": _KeyShape("EC", "P-256", ("x", "y"), _COORDINATE),  # RFC 7518, section 6.2
    "RS256": _KeyShape("RSA", None, ("n", "e"), _INTEGER),  # RFC 7518, section 6.3
}

SUPPORTED_ALGORITHMS = frozenset(_SHAPES)
"""The signature algorithms an issuer can be pinned to in this version."""


class KeySetRefused(ValueError):
    """The document is no usable key set; the text is a fixed sentence."""


class KeySource(Protocol):
    """Where the keys of one issuer come from."""

    def key(self, kid: str) -> jwt.PyJWK | None:
        """The key with this ``kid`` as the source stands now, bound to its algorithm, or ``None``."""


def key_set(
    document: bytes, algorithms: tuple[str, ...], *, leave_out_unfit: bool = False
) -> dict[str, jwt.PyJWK]:
    """The keys of a document of at most 256 KiB, none if it lists none; ``KeySetRefused`` if any is unfit.

    Unfit are a private or symmetric key, one for another use or algorithm, one without a ``kid`` of its own,
    and an RSA key outside 2048 to 8192 bits. In a file of ours somebody put what they did not mean. A set
    that others publish, for others too, may hold keys that are not for us: those are left out (RFC 7517,
    section 5).
    """
    if len(document) > MAX_DOCUMENT_BYTES:
        raise KeySetRefused("is larger than 256 KiB")
    try:
        members = parse_object(document).get("keys")
    except ValueError:
        raise KeySetRefused("is not a JSON object with unique names") from None
    if not isinstance(members, list):
        raise KeySetRefused("has no list of keys")
    keys: dict[str, jwt.PyJWK] = {}
    for member in members:
        try:
            kid, key = _named_key(member, algorithms)
            if kid in keys:
                raise KeySetRefused("has two keys of one kid")
        except KeySetRefused:
            if leave_out_unfit:
                continue
            raise
        keys[kid] = key
    return keys


def _named_key(member: object, algorithms: tuple[str, ...]) -> tuple[str, jwt.PyJWK]:
    if not isinstance(member, dict):
        raise KeySetRefused("lists something that is not a key")
    kid = member.get("kid")
    if not isinstance(kid, str) or _KEY_ID.fullmatch(kid) is None:
        raise KeySetRefused("has a key without a printable kid")
    return kid, _public_key(member, algorithms)


def _public_key(member: dict[str, object], algorithms: tuple[str, ...]) -> jwt.PyJWK:
    if member.get("kty") == "oct" or not _PRIVATE_OR_SYMMETRIC.isdisjoint(member):
        raise KeySetRefused("holds a private or symmetric key")
    algorithm = _algorithm(member, algorithms)
    if member.get("use") not in _SIGNATURE_USES or member.get("key_ops", ["verify"]) != ["verify"]:
        raise KeySetRefused("has a key that is not for verifying signatures")
    shape = _SHAPES[algorithm]
    numbers = {name: member.get(name) for name in shape.numbers}
    if not all(isinstance(value, str) and shape.spelling.fullmatch(value) for value in numbers.values()):
        raise KeySetRefused("has a key whose coordinates are malformed")
    curve = {} if shape.crv is None else {"crv": shape.crv}
    try:
        key = jwt.PyJWK({"kty": shape.kty, **curve, **numbers}, algorithm)
    except (jwt.PyJWTError, ValueError):
        raise KeySetRefused("has a key that is not on its curve") from None
    _check_strength(key)
    return key


def _check_strength(key: jwt.PyJWK) -> None:
    public = key.key
    if not isinstance(public, RSAPublicKey):
        return
    exponent = public.public_numbers().e
    if public.key_size not in _RSA_BITS or exponent < _LEAST_EXPONENT or exponent % 2 == 0:
        raise KeySetRefused("has an RSA key that is too weak or too large")


def _algorithm(member: dict[str, object], algorithms: tuple[str, ...]) -> str:
    for algorithm in algorithms:
        shape = _SHAPES[algorithm]
        if (member.get("kty"), member.get("crv")) == (shape.kty, shape.crv):
            if member.get("alg", algorithm) == algorithm:
                return algorithm
            break
    raise KeySetRefused("has a key that does not fit the issuer's algorithms")
