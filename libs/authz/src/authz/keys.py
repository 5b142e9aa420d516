"""The public keys of one issuer, read from a mounted JWKS file (RFC 7517) and read again when it changes.

Rotation is a matter of the file: publish the new key beside the old one, switch the signer, remove the old
key. A removed key stops verifying at the next look-up. A file that cannot be used is reported and changes
nothing, so a half-written mount never locks everybody out.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jwt

from authz.errors import ConfigurationError
from authz.strict_json import parse_object

_log = logging.getLogger(__name__)

_FILE_BYTES = 256 * 1024
_KEY_ID = re.compile(r"[\x21-\x7e]{1,256}")
_COORDINATE = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 bytes in base64url, the size both curves share
_PRIVATE_OR_SYMMETRIC = frozenset({"d", "k", "p", "q", "dp", "dq", "qi", "oth"})
# "sig" is RFC 7517's word, "jwt-svid" the SPIFFE bundle's; its "x509-svid" keys sign no token.
_SIGNATURE_USES = (None, "sig", "jwt-svid")


@dataclass(frozen=True, slots=True)
class _KeyShape:
    kty: str
    crv: str
    coordinates: tuple[str, ...]


_SHAPES: Mapping[str, _KeyShape] = {
    "EdDSA": _KeyShape("OKP", "Ed25519", ("x",)),  # RFC 8037
    "ES256": _KeyShape("EC", "P-256", ("x", "y")),  # RFC 7518, section 6.2
}

SUPPORTED_ALGORITHMS = frozenset(_SHAPES)
"""The signature algorithms an issuer can be pinned to in this version."""


class _KeySetRefused(ValueError):
    """The file is no usable key set; the text is a fixed sentence."""


class JwksFile:
    """The keys of one issuer by ``kid``.

    Construction reads the file and raises ``ConfigurationError`` if it holds no usable key. Afterwards each
    look-up costs one ``stat``, and a read only after a change of modification time, size or inode, which
    also covers the symbolic link that Kubernetes swaps under a mounted volume.
    """

    def __init__(self, path: Path, algorithms: tuple[str, ...]) -> None:
        if not algorithms or not SUPPORTED_ALGORITHMS.issuperset(algorithms):
            raise ConfigurationError("algorithms", "must list only EdDSA and ES256")
        self._path = path
        self._algorithms = algorithms
        self._seen = self._fingerprint()
        try:
            self._keys = self._read()
        except _KeySetRefused as refusal:
            raise ConfigurationError("jwks_file", str(refusal)) from None
        if not self._keys:
            raise ConfigurationError("jwks_file", "holds no key")

    def key(self, kid: str) -> jwt.PyJWK | None:
        """The key with this ``kid`` as the file stands now, or ``None``; never raises for the file.

        The key is bound to its algorithm. A well-formed file without keys withdraws all of them.
        """
        fingerprint = self._fingerprint()
        if fingerprint != self._seen:
            # Taken before reading: a swap in between looks like another change at the next look-up.
            self._seen = fingerprint
            self._reload()
        return self._keys.get(kid)

    def _reload(self) -> None:
        try:
            self._keys = self._read()
        except _KeySetRefused as refusal:
            _log.warning("JWKS file refused, the keys read before stay in use: %s", refusal)
            return
        if not self._keys:
            _log.warning("JWKS file holds no key, every token of its issuer is refused")

    def _fingerprint(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> dict[str, jwt.PyJWK]:
        try:
            with self._path.open("rb") as file:
                document = file.read(_FILE_BYTES + 1)
        except OSError:
            raise _KeySetRefused("cannot be read") from None
        if len(document) > _FILE_BYTES:
            raise _KeySetRefused("is larger than 256 KiB")
        return _key_set(document, self._algorithms)


def _key_set(document: bytes, algorithms: tuple[str, ...]) -> dict[str, jwt.PyJWK]:
    try:
        members = parse_object(document).get("keys")
    except ValueError:
        raise _KeySetRefused("is not a JSON object with unique names") from None
    if not isinstance(members, list):
        raise _KeySetRefused("has no list of keys")
    keys: dict[str, jwt.PyJWK] = {}
    for member in members:
        if not isinstance(member, dict):
            raise _KeySetRefused("lists something that is not a key")
        kid = member.get("kid")
        if not isinstance(kid, str) or _KEY_ID.fullmatch(kid) is None or kid in keys:
            raise _KeySetRefused("has a key without a unique, printable kid")
        keys[kid] = _public_key(member, algorithms)
    return keys


def _public_key(member: dict[str, object], algorithms: tuple[str, ...]) -> jwt.PyJWK:
    if member.get("kty") == "oct" or not _PRIVATE_OR_SYMMETRIC.isdisjoint(member):
        raise _KeySetRefused("holds a private or symmetric key")
    algorithm = _algorithm(member, algorithms)
    if member.get("use") not in _SIGNATURE_USES or member.get("key_ops", ["verify"]) != ["verify"]:
        raise _KeySetRefused("has a key that is not for verifying signatures")
    shape = _SHAPES[algorithm]
    coordinates = {name: member.get(name) for name in shape.coordinates}
    if not all(isinstance(value, str) and _COORDINATE.fullmatch(value) for value in coordinates.values()):
        raise _KeySetRefused("has a key whose coordinates are malformed")
    try:
        return jwt.PyJWK({"kty": shape.kty, "crv": shape.crv, **coordinates}, algorithm)
    except (jwt.PyJWTError, ValueError):
        raise _KeySetRefused("has a key that is not on its curve") from None


def _algorithm(member: dict[str, object], algorithms: tuple[str, ...]) -> str:
    for algorithm in algorithms:
        shape = _SHAPES[algorithm]
        if (member.get("kty"), member.get("crv")) == (shape.kty, shape.crv):
            if member.get("alg", algorithm) == algorithm:
                return algorithm
            break
    raise _KeySetRefused("has a key that does not fit the issuer's algorithms")
