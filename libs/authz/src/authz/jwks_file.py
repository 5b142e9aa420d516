"""The public keys of one issuer, read from a mounted JWKS file (RFC 7517) and read again when it changes.

Rotation is a matter of the file: publish the new key beside the old one, switch the signer, remove the old
key. A removed key stops verifying at the next look-up. A file that cannot be used is reported and changes
nothing, so a half-written mount never locks everybody out.
"""

import logging
from pathlib import Path

import jwt

from authz.errors import ConfigurationError
from authz.key_set import MAX_DOCUMENT_BYTES, SUPPORTED_ALGORITHMS, KeySetRefused, key_set

_log = logging.getLogger(__name__)

_Fingerprint = tuple[int, int, int]
_NO_FILE_LOOKS_LIKE_THIS = (-1, -1, -1)


class JwksFile:
    """The keys of one issuer by ``kid``.

    Construction reads the file and raises ``ConfigurationError`` if it holds no usable key. Afterwards each
    look-up costs one ``stat``, and a read only after a change of modification time, size or inode, which
    also covers the symbolic link that Kubernetes swaps under a mounted volume.
    """

    def __init__(self, path: Path, algorithms: tuple[str, ...]) -> None:
        if not algorithms or not SUPPORTED_ALGORITHMS.issuperset(algorithms):
            raise ConfigurationError("algorithms", "must list supported algorithms only")
        self._path = path
        self._algorithms = algorithms
        self._seen = self._fingerprint()
        self._refused: _Fingerprint | None = _NO_FILE_LOOKS_LIKE_THIS
        try:
            self._keys = self._read()
        except KeySetRefused as refusal:
            raise ConfigurationError("jwks_file", str(refusal)) from None
        if not self._keys:
            raise ConfigurationError("jwks_file", "holds no key")

    def key(self, kid: str) -> jwt.PyJWK | None:
        """The key with this ``kid`` as the file stands now, or ``None``; never raises for the file.

        The key is bound to its algorithm. A well-formed file without keys withdraws all of them.
        """
        # Taken before reading: a swap in between looks like another change at the next look-up.
        fingerprint = self._fingerprint()
        if fingerprint != self._seen:
            self._reload(fingerprint)
        return self._keys.get(kid)

    def _reload(self, fingerprint: _Fingerprint | None) -> None:
        try:
            self._keys = self._read()
        except KeySetRefused as refusal:
            # Read again at the next look-up: a key that was removed must not live on because of one bad read.
            if fingerprint != self._refused:
                _log.warning("JWKS file refused, the keys read before stay in use: %s", refusal)
            self._refused = fingerprint
            return
        self._seen = fingerprint
        if not self._keys:
            _log.warning("JWKS file holds no key, every token of its issuer is refused")

    def _fingerprint(self) -> _Fingerprint | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> dict[str, jwt.PyJWK]:
        try:
            with self._path.open("rb") as file:
                document = file.read(MAX_DOCUMENT_BYTES + 1)
        except OSError:
            raise KeySetRefused("cannot be read") from None
        return key_set(document, self._algorithms)
