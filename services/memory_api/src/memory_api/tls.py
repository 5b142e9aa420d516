"""TLS whose files may change while the service runs: each handshake looks, and a change is read."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, cast

import grpc
import structlog
from authz import ConfigurationError

_log = structlog.get_logger()

_Look: TypeAlias = tuple[tuple[int, ...] | None, ...]


class TlsFiles:
    """Certificate chain, private key and, for mutual TLS, the authorities of clients: PEM files.

    Construction reads them: ``ConfigurationError`` names the setting whose file is no good, ``OSError`` the
    file that cannot be read. Afterwards files that cannot be used are reported and change nothing, so a
    renewal that is half-way through, or goes wrong, locks nobody out.
    """

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None) -> None:
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._lock = threading.Lock()
        self._seen = self._look()
        self._first = self._read()

    def credentials(self) -> grpc.ServerCredentials:
        """Server credentials that follow the files. Connections that exist keep what they began with."""
        return grpc.dynamic_ssl_server_credentials(
            self._first,
            # The stubs do not know that None stands for no change.
            cast(Callable[[], grpc.ServerCertificateConfiguration], self.changed),
            require_client_authentication=self._client_ca is not None,
        )

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """What to use from now on, or None for what was used so far. Never raises, for gRPC calls it
        before each handshake, on a thread of its own."""
        with self._lock:
            try:
                return self._changed()
            except Exception as error:  # noqa: BLE001 - gRPC's thread must not see it
                _log.error("unexpected error", exc_info=error)
                return None

    def _changed(self) -> grpc.ServerCertificateConfiguration | None:
        look = self._look()
        if look == self._seen:
            return None
        # From before reading: a change in between looks like another one at the next handshake.
        self._seen = look
        try:
            configuration = self._read()
        except ConfigurationError as error:
            _refused(f"{error.key} {error.problem}")
        except OSError:
            _refused("a file cannot be read")
        else:
            if self._look() == look:
                _log.info("TLS files were read again")
                return configuration
            # The parts may be of two generations. The next handshake will find them at rest.
        return None

    def _look(self) -> _Look:
        return tuple(_fingerprint(file) for file in (self._certificate, self._key, self._client_ca) if file)

    def _read(self) -> grpc.ServerCertificateConfiguration:
        # Read by OpenSSL first: gRPC would serve with a wrong pair, or refuse without a word.
        checked = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            checked.load_cert_chain(self._certificate, self._key, password="")
        except (ValueError, ssl.SSLError):
            raise ConfigurationError(
                "MEMORY_API_TLS_CERTIFICATE_FILE", "and MEMORY_API_TLS_KEY_FILE are no PEM pair"
            ) from None
        client_ca = None
        if self._client_ca is not None:
            try:
                checked.load_verify_locations(self._client_ca)
            except (ValueError, ssl.SSLError):
                raise ConfigurationError(
                    "MEMORY_API_TLS_CLIENT_CA_FILE", "holds no PEM certificate"
                ) from None
            client_ca = self._client_ca.read_bytes()
        return grpc.ssl_server_certificate_configuration(
            [(self._key.read_bytes(), self._certificate.read_bytes())], root_certificates=client_ca
        )


def _fingerprint(file: Path) -> tuple[int, ...] | None:
    # The inode is another after the swap of a symbolic link by which Kubernetes renews a mounted volume; the
    # time of the last change (ctime) tells of permissions put right.
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _refused(why: str) -> None:
    _log.warning("TLS files refused, those read before stay in use", why=why)
