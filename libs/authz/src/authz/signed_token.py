"""From a compact JWT to claims that a trusted issuer signed (RFC 7515, RFC 7519, RFC 8725)."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

import jwt

from authz.issuers import Issuer
from authz.key_set import KeySource
from authz.strict_json import parse_object
from authz.verified_tokens import SignedClaims, VerifiedTokens

MAX_TOKEN_BYTES = 8 * 1024

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# JWT-SVID, section 2, allows these three and no other: nothing that carries a key (jwk, x5c), points at one
# (jku, x5u) or changes the processing (crit, b64, zip).
_HEADERS = frozenset({"alg", "kid", "typ"})
_TYPES = ("JWT", "JOSE")
_LAST_INSTANT = 253_402_300_799  # 9999-12-31T23:59:59Z, in seconds
_signatures = jwt.PyJWS()


class TokenInvalid(Exception):
    """The token proves nothing."""


class TokenExpired(Exception):
    """The token is right in every way but its expiry."""


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """An issuer and its keys as they stand now."""

    issuer: Issuer
    keys: KeySource


@dataclass(frozen=True, slots=True)
class Acceptance:
    """For whom and when a token must be good: this service's audience, now, and the clocks' tolerance."""

    audience: str
    now: datetime
    leeway: timedelta


def verified_claims(
    token: object, trusted: Mapping[str, TrustedIssuer], acceptance: Acceptance, verified: VerifiedTokens
) -> tuple[Issuer, Mapping[str, object]]:
    """The issuer and the claims of ``token``.

    What a caller may rely on: a trusted issuer (by ``iss``) signed it with one of its present keys and
    pinned algorithms; ``aud`` has this service; ``iat``, ``nbf`` and ``exp`` hold now and span no more than
    the issuer's maximum. Every other claim, ``sub`` too, is still of any JSON type. Raises ``TokenInvalid``,
    or ``TokenExpired`` when nothing else is wrong.
    """
    if not isinstance(token, str) or len(token) > MAX_TOKEN_BYTES or _COMPACT.fullmatch(token) is None:
        raise TokenInvalid
    signed = verified.get(token)
    if signed is None or not _still_trusted(signed, trusted):
        verified.drop(token)
        signed = _signed(token, trusted)
        verified.put(token, signed)
    issuer = trusted[signed.issuer].issuer
    _check_audience(signed.claims, acceptance.audience)
    _check_times(signed.claims, issuer.max_lifetime, acceptance)
    return issuer, signed.claims


def _still_trusted(signed: SignedClaims, trusted: Mapping[str, TrustedIssuer]) -> bool:
    signer = trusted.get(signed.issuer)
    return signer is not None and signer.keys.key(signed.kid) is signed.key


def _signed(token: str, trusted: Mapping[str, TrustedIssuer]) -> SignedClaims:
    header_segment, claims_segment, _ = token.split(".")
    header, claims = _segment(header_segment), _segment(claims_segment)
    name = claims.get("iss")
    signer = trusted.get(name) if isinstance(name, str) else None
    if signer is None:
        raise TokenInvalid
    key = _verified_key(token, header, signer)
    return SignedClaims(signer.issuer.issuer, str(header["kid"]), key, MappingProxyType(claims))


def _segment(segment: str) -> dict[str, object]:
    try:
        return parse_object(base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)))
    except ValueError:
        raise TokenInvalid from None


def _verified_key(token: str, header: Mapping[str, object], signer: TrustedIssuer) -> jwt.PyJWK:
    kid = header.get("kid")
    if not isinstance(kid, str) or not header.keys() <= _HEADERS or header.get("typ", "JWT") not in _TYPES:
        raise TokenInvalid
    key = signer.keys.key(kid)
    if key is None:
        raise TokenInvalid
    try:
        # The key is bound to one of the issuer's algorithms; the token's own "alg" may only agree with it.
        _signatures.decode(token, key, algorithms=[key.algorithm_name])
    except jwt.PyJWTError:
        raise TokenInvalid from None
    return key


def _check_audience(claims: Mapping[str, object], audience: str) -> None:
    claimed = claims.get("aud")
    audiences = claimed if isinstance(claimed, list) else [claimed]
    if not all(isinstance(item, str) for item in audiences) or audience not in audiences:
        raise TokenInvalid


def _check_times(claims: Mapping[str, object], max_lifetime: timedelta, acceptance: Acceptance) -> None:
    now, leeway = acceptance.now.timestamp(), acceptance.leeway.total_seconds()
    issued, expires = _instant(claims, "iat"), _instant(claims, "exp")
    if not 0 < expires - issued <= max_lifetime.total_seconds() or issued > now + leeway:
        raise TokenInvalid
    if "nbf" in claims and _instant(claims, "nbf") > now + leeway:
        raise TokenInvalid
    if expires <= now - leeway:
        raise TokenExpired


def _instant(claims: Mapping[str, object], name: str) -> float:
    """A NumericDate in seconds since 1970 (RFC 7519, section 2): a JSON number, so no string, no boolean."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenInvalid
    if not 0 <= value <= _LAST_INSTANT:
        raise TokenInvalid
    return value
