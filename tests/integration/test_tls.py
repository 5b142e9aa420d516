"""memory_api goes on serving while its certificate, its key and the authorities of its clients change."""

import datetime
import ipaddress
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from devstack.issuer import MEMORY_API_SIGNER, DevelopmentIssuer
from devstack.ports import free_port
from devstack.process import ManagedProcess
from devstack.template import ClonedDatabase

from tests.eventually import until
from tests.integration.test_service_start import SERVING, health, service

pytestmark = pytest.mark.postgres

REFUSED = "TLS files refused, those read before stay in use"
AGAIN = "TLS files were read again"


class Authority:
    """One of several of the same name, told apart by their keys (RFC 5280, 4.2.1.1), as renewed ones are."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign(self._key.public_key(), ca=True)

    def issue(self, name: str, directory: Path) -> tuple[Path, Path]:
        """Certificate and key files for 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate_file, key_file = directory / f"{name}.pem", directory / f"{name}.key"
        certificate_file.write_bytes(self._sign(key.public_key(), ca=False))
        key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return certificate_file, key_file

    def _sign(self, key: ec.EllipticCurvePublicKey, *, ca: bool) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        own = self._key.public_key()
        authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(authority if ca else x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "leaf")]))
            .issuer_name(authority)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(Encoding.PEM)


class Mount:
    """Secrets as Kubernetes mounts them: links to ``..data``, itself a link that is swapped in one step."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._generation = 0
        directory.mkdir()
        self.certificate, self.key, self.ca = (directory / name for name in ("tls.crt", "tls.key", "ca.crt"))
        for file in (self.certificate, self.key, self.ca):
            file.symlink_to(Path("..data") / file.name)

    def put(self, pair: tuple[Path, Path], *authorities: Authority) -> None:
        """The next generation of all three."""
        self._generation += 1
        fresh = self._directory / f"..{self._generation}"
        fresh.mkdir()
        shutil.copy(pair[0], fresh / "tls.crt")
        shutil.copy(pair[1], fresh / "tls.key")
        (fresh / "ca.crt").write_bytes(b"".join(each.certificate for each in authorities))
        link = self._directory / "..data_tmp"
        link.symlink_to(fresh.name)
        link.replace(self._directory / "..data")


class Served:
    """The process behind mutual TLS, its files, and clients of their own connections."""

    def __init__(self, database: ClonedDatabase, directory: Path) -> None:
        issuer = DevelopmentIssuer(directory / "keys")
        self._directory = directory
        self.old, self.new = Authority(), Authority()
        self.mount = Mount(directory / "mount")
        self.mount.put(self.old.issue("server", directory), self.old)
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.log = directory / "log"
        self.process: ManagedProcess = service(
            "memory_api",
            {
                "MEMORY_API_DATABASE_URL": database.dsn("memory_api"),
                "MEMORY_API_HOST": "127.0.0.1",
                "MEMORY_API_PORT": str(port),
                "MEMORY_API_TLS_CERTIFICATE_FILE": str(self.mount.certificate),
                "MEMORY_API_TLS_KEY_FILE": str(self.mount.key),
                "MEMORY_API_TLS_CLIENT_CA_FILE": str(self.mount.ca),
                "MEMORY_API_IDENTITY_FILE": str(issuer.identity_file),
                "MEMORY_API_AUDIENCE": issuer.audience,
                "MEMORY_API_INDEX_URL": f"http://127.0.0.1:{free_port()}",
                "MEMORY_API_BANK_TOKEN_KEY_FILE": str(issuer.bank_key_file(MEMORY_API_SIGNER)),
            },
            self.log,
        )

    def issue(self, authority: Authority, name: str) -> tuple[Path, Path]:
        return authority.issue(name, self._directory)

    def channel(self, trusts: Authority, own: Authority) -> grpc.Channel:
        """A client with a new certificate of ``own`` and a connection that it shares with nobody."""
        certificate, key = self.issue(own, "client")
        return grpc.secure_channel(
            self.address,
            grpc.ssl_channel_credentials(trusts.certificate, key.read_bytes(), certificate.read_bytes()),
            options=(("grpc.use_local_subchannel_pool", 1),),
        )

    def answers(self, trusts: Authority, own: Authority) -> bool:
        """Whether such a client is served on a new connection."""
        with self.channel(trusts, own) as channel:
            return serves(channel)

    def told(self, event: str) -> int:
        return self.log.read_text().count(event)


def serves(channel: grpc.Channel) -> bool:
    found: Any = health(channel, "liveness")
    return bool(found == SERVING)


@pytest.fixture
def served(database: ClonedDatabase, tmp_path: Path) -> Iterator[Served]:
    running = Served(database, tmp_path)
    try:
        assert until(lambda: running.answers(running.old, running.old))
        yield running
    finally:
        running.process.terminate(10)


def test_a_renewed_certificate_is_served_to_the_next_connection(served: Served) -> None:
    with served.channel(served.old, served.old) as connected:
        assert serves(connected)
        served.mount.put(served.issue(served.new, "server"), served.old)
        assert served.answers(served.new, served.old)
        assert not served.answers(served.old, served.old), "who trusts the old authority only"
        assert serves(connected), "who was connected stays"
    assert served.told(AGAIN) == 1
    assert served.told(REFUSED) == 0
    served.process.send(signal.SIGTERM)
    assert served.process.wait(60) == 0


def test_clients_authorities_are_renewed_as_well(served: Served) -> None:
    server = served.issue(served.old, "server")
    with served.channel(served.old, served.old) as connected:
        assert serves(connected)
        assert not served.answers(served.old, served.new)
        served.mount.put(server, served.old, served.new)
        assert served.answers(served.old, served.new)
        assert served.answers(served.old, served.old), "both, while both are trusted"
        served.mount.put(server, served.new)
        assert served.answers(served.old, served.new)
        assert not served.answers(served.old, served.old), "not any longer"
        assert serves(connected)


@pytest.mark.parametrize("how", ["another key", "half a certificate", "half a key", "gone", "no authority"])
def test_files_that_cannot_be_used_change_nothing_until_they_can(served: Served, how: str) -> None:
    certificate, key = served.issue(served.new, "server")
    _, another = served.issue(served.new, "another")
    if how == "another key":
        served.mount.put((certificate, another), served.old)
    elif how == "half a certificate":
        served.mount.certificate.write_bytes(certificate.read_bytes()[:200])
    elif how == "half a key":
        served.mount.key.write_bytes(key.read_bytes()[:100])
    elif how == "gone":
        served.mount.key.unlink()
    else:
        served.mount.put((certificate, key))
    for _ in range(3):
        assert served.answers(served.old, served.old)
        assert not served.answers(served.new, served.old)
    assert served.told(REFUSED) == 1, "told once"
    assert served.told(AGAIN) == 0
    if how == "gone":
        served.mount.key.symlink_to("..data/tls.key")
    served.mount.put((certificate, key), served.old)
    assert served.answers(served.new, served.old)
    assert served.told(AGAIN) == 1
    log = served.log.read_text()
    assert "BEGIN" not in log
    assert "Traceback" not in log
