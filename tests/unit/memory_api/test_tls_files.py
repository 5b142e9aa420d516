"""TLS files: what was refused changes nothing, is told once and without content, and never reaches gRPC."""

import datetime
import time
from pathlib import Path

import pytest
from authz import ConfigurationError
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID
from memory_api.tls import TlsFiles
from structlog.testing import capture_logs

WARNING = "TLS files refused, those read before stay in use"


def pair(encryption: KeySerializationEncryption | None = None) -> tuple[bytes, bytes]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "heron")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(Encoding.PEM), key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption()
    )


def replace(file: Path, content: bytes) -> None:
    """In one step and with another inode, for two writes may happen within one tick of the clock."""
    fresh = file.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.replace(file)


class Mount:
    """The three files, replaced the way a directory of secrets is."""

    def __init__(self, directory: Path) -> None:
        self.certificate, self.key, self.ca = (directory / name for name in ("tls.crt", "tls.key", "ca.crt"))
        self.put(*pair())
        replace(self.ca, pair()[0])

    def put(self, certificate: bytes, key: bytes) -> None:
        replace(self.certificate, certificate)
        replace(self.key, key)

    def files(self) -> TlsFiles:
        return TlsFiles(self.certificate, self.key, self.ca)


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path)


def test_files_that_rest_are_read_once(mount: Mount) -> None:
    files = mount.files()
    assert files.changed() is None
    assert files.changed() is None


@pytest.mark.parametrize("which", ["pair", "authorities"])
def test_a_change_is_read_once(mount: Mount, which: str) -> None:
    files = mount.files()
    if which == "pair":
        mount.put(*pair())
    else:
        replace(mount.ca, pair()[0])
    assert files.changed() is not None
    assert files.changed() is None


def broken(mount: Mount, how: str) -> None:
    certificate, key = pair()
    match how:
        case "the key of another certificate":
            mount.put(certificate, pair()[1])
        case "the old key":
            replace(mount.certificate, certificate)
        case "half a certificate":
            mount.put(certificate[:200], key)
        case "half a key":
            mount.put(certificate, key[:100])
        case "nothing":
            mount.put(b"", b"")
        case "an encrypted key":
            mount.put(*pair(BestAvailableEncryption(b"heron")))
        case "no file":
            mount.key.unlink()
        case "a directory":
            mount.key.unlink()
            mount.key.mkdir()
        case "no authority":
            replace(mount.ca, b"heron")
        case "no file of authorities":
            mount.ca.unlink()


WAYS = (
    "the key of another certificate",
    "the old key",
    "half a certificate",
    "half a key",
    "nothing",
    "an encrypted key",
    "no file",
    "a directory",
    "no authority",
    "no file of authorities",
)


@pytest.mark.parametrize("how", WAYS)
def test_what_cannot_be_used_is_told_once_and_what_follows_is_read(mount: Mount, how: str) -> None:
    files = mount.files()
    with capture_logs() as logs:
        broken(mount, how)
        assert files.changed() is None
        assert files.changed() is None
    assert [(line["log_level"], line["event"]) for line in logs] == [("warning", WARNING)]
    for word in ("heron", "BEGIN", str(mount.key.parent)):
        assert word not in str(logs)
    if mount.key.is_dir():
        mount.key.rmdir()
    mount.put(*pair())
    replace(mount.ca, pair()[0])
    assert files.changed() is not None


@pytest.mark.parametrize("how", WAYS)
def test_what_cannot_be_used_stops_the_start(mount: Mount, how: str) -> None:
    broken(mount, how)
    with pytest.raises((ConfigurationError, OSError)):
        mount.files()


def test_a_change_while_the_files_are_read_is_left_for_the_next_look(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = mount.files()
    mount.put(*pair())
    read = TlsFiles._read

    def meanwhile(self: TlsFiles) -> object:
        found = read(self)
        monkeypatch.undo()
        mount.put(*pair())
        return found

    monkeypatch.setattr(TlsFiles, "_read", meanwhile)
    assert files.changed() is None
    assert files.changed() is not None
    assert files.changed() is None


def test_permissions_put_right_count_as_a_change(mount: Mount) -> None:
    files = mount.files()
    time.sleep(0.05)  # more than a tick of the file system's clock
    mount.key.chmod(0o600)
    assert files.changed() is not None


def test_gRPCs_thread_never_sees_an_error(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: N802
    files = mount.files()

    def fails(_: TlsFiles) -> None:
        raise MemoryError

    monkeypatch.setattr(TlsFiles, "_look", fails)
    with capture_logs() as logs:
        assert files.changed() is None
    assert [line["event"] for line in logs] == ["unexpected error"]
