"""How the services start, refuse to start, tell their health, and stop."""

import datetime
import ipaddress
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from devstack.issuer import MEMORY_API_SIGNER, SYNC_DAEMON_SIGNER, DevelopmentIssuer
from devstack.ports import free_port
from devstack.postgres import EmbeddedPostgres
from devstack.process import ManagedProcess, base_environment
from devstack.template import ClonedDatabase
from grpc_health.v1 import health_pb2

from tests.eventually import until

pytestmark = pytest.mark.postgres

HEALTH = "/grpc.health.v1.Health/Check"
SERVING = health_pb2.HealthCheckResponse.SERVING


@pytest.fixture
def issuer(tmp_path: Path) -> DevelopmentIssuer:
    return DevelopmentIssuer(tmp_path / "keys")


@pytest.fixture
def api_environment(database: ClonedDatabase, issuer: DevelopmentIssuer) -> dict[str, str]:
    """Settings with which memory_api starts on a free loopback port; nobody listens at the index."""
    return {
        "MEMORY_API_DATABASE_URL": database.dsn("memory_api"),
        "MEMORY_API_HOST": "127.0.0.1",
        "MEMORY_API_PORT": str(free_port()),
        "MEMORY_API_INSECURE_LOOPBACK": "true",
        "MEMORY_API_IDENTITY_FILE": str(issuer.identity_file),
        "MEMORY_API_AUDIENCE": issuer.audience,
        "MEMORY_API_INDEX_URL": f"http://127.0.0.1:{free_port()}",
        "MEMORY_API_BANK_TOKEN_KEY_FILE": str(issuer.bank_key_file(MEMORY_API_SIGNER)),
    }


@pytest.fixture
def daemon_environment(database: ClonedDatabase, issuer: DevelopmentIssuer) -> dict[str, str]:
    return {
        "SYNC_DAEMON_DATABASE_URL": database.dsn("sync_daemon"),
        "SYNC_DAEMON_INDEX_URL": f"http://127.0.0.1:{free_port()}",
        "SYNC_DAEMON_BANK_TOKEN_KEY_FILE": str(issuer.bank_key_file(SYNC_DAEMON_SIGNER)),
    }


def run(module: str, environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit status and output of a service that is expected not to start."""
    done = subprocess.run(
        [sys.executable, "-m", module],
        env={**base_environment(), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def service(module: str, environment: Mapping[str, str], log: Path) -> ManagedProcess:
    process = ManagedProcess(
        module, [sys.executable, "-m", module], {**base_environment(), **environment}, log
    )
    process.start()
    return process


def health(channel: grpc.Channel, name: str) -> Any:
    """The status that gRPC health gives, or the code of the failure."""
    check: Any = channel.unary_unary(
        HEALTH,
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    try:
        return check(health_pb2.HealthCheckRequest(service=name), timeout=2).status
    except grpc.RpcError as error:
        return error.code()


#: TLS with files that are there and hold no PEM.
TLS = {
    "MEMORY_API_INSECURE_LOOPBACK": "false",
    "MEMORY_API_TLS_CERTIFICATE_FILE": __file__,
    "MEMORY_API_TLS_KEY_FILE": __file__,
}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"MEMORY_API_AUDIENCE": ""}, "MEMORY_API_AUDIENCE"),
        (TLS, "MEMORY_API_TLS_CERTIFICATE_FILE"),
        ({"MEMORY_API_BANK_TOKEN_KEY_FILE": __file__}, "MEMORY_API_BANK_TOKEN_KEY_FILE"),
        ({"MEMORY_API_INDEX_URL": "http://192.0.2.1"}, "MEMORY_API_INDEX_URL"),
        ({"MEMORY_API_DATABASE_URL": "postgresql://a:b@127.0.0.1:9/c"}, "MEMORY_API_DATABASE_URL"),
        ({"MEMORY_API_SPANS_FILE": "/nowhere/spans"}, "/nowhere/spans"),
    ],
)
def test_memory_api_refuses_wrong_settings_by_name(
    api_environment: dict[str, str], change: dict[str, str], named: str
) -> None:
    status, output = run("memory_api", api_environment | change)
    assert status == 2
    assert named in output
    assert "Traceback" not in output
    assert api_environment["MEMORY_API_DATABASE_URL"] not in output


def test_memory_api_refuses_to_start_without_keys(
    api_environment: dict[str, str], issuer: DevelopmentIssuer
) -> None:
    issuer.session_jwks_file.write_text('{"keys": []}', encoding="utf-8")
    status, output = run("memory_api", api_environment)
    assert status == 2
    assert "cannot start" in output


@pytest.mark.parametrize("module", ["memory_api", "sync_daemon"])
def test_a_service_refuses_a_login_that_could_see_everything(
    database: ClonedDatabase,
    api_environment: dict[str, str],
    daemon_environment: dict[str, str],
    module: str,
) -> None:
    environment = api_environment if module == "memory_api" else daemon_environment
    environment |= {f"{module.upper()}_DATABASE_URL": database.admin_dsn}
    status, output = run(module, environment)
    assert status == 2
    assert "could bypass row-level security" in output


def test_sync_daemon_refuses_a_lease_that_a_write_could_outlive(daemon_environment: dict[str, str]) -> None:
    status, output = run("sync_daemon", daemon_environment | {"SYNC_DAEMON_LEASE_S": "60"})
    assert status == 2
    assert "lease_s must be at least twice" in output


def test_readiness_follows_the_database_and_liveness_does_not(
    postgres_server: EmbeddedPostgres,
    database: ClonedDatabase,
    api_environment: dict[str, str],
    tmp_path: Path,
) -> None:
    api = service("memory_api", api_environment, tmp_path / "log")
    try:
        with grpc.insecure_channel(f"127.0.0.1:{api_environment['MEMORY_API_PORT']}") as channel:
            assert until(lambda: health(channel, "readiness") == SERVING)
            assert health(channel, "") == health(channel, "openbot.memory.v1.MemoryService") == SERVING

            postgres_server.execute(f"alter database {database.name} allow_connections false")
            postgres_server.execute(
                f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{database.name}'"
            )
            assert until(lambda: health(channel, "readiness") != SERVING)
            assert health(channel, "liveness") == SERVING

            postgres_server.execute(f"alter database {database.name} allow_connections true")
            assert until(lambda: health(channel, "readiness") == SERVING)
            off: Any = channel.unary_unary("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
            with pytest.raises(grpc.RpcError) as refused:
                off(b"", timeout=5)
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED, "off unless switched on"
    finally:
        api.terminate(10)
    assert api.exit_status == 0


@pytest.mark.parametrize("module", ["memory_api", "sync_daemon"])
def test_a_service_stops_cleanly_when_asked(
    api_environment: dict[str, str], daemon_environment: dict[str, str], tmp_path: Path, module: str
) -> None:
    environment = api_environment if module == "memory_api" else daemon_environment
    running = service(module, environment, tmp_path / "log")
    assert until(lambda: any(word in running.tail() for word in ("serving", "draining the outbox")))
    running.send(signal.SIGTERM)
    assert running.wait(20) == 0
    assert '"stopped"' in running.tail()


class Authority:
    """A certificate authority of the test's own."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign("authority", self._key, ca=True)

    def issue(self, name: str, directory: Path) -> tuple[Path, Path]:
        """Certificate and key files for 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate_file, key_file = directory / f"{name}.pem", directory / f"{name}.key"
        certificate_file.write_bytes(self._sign(name, key, ca=False))
        key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return certificate_file, key_file

    def _sign(self, name: str, key: ec.EllipticCurvePrivateKey, *, ca: bool) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(Encoding.PEM)


@pytest.mark.parametrize("mutual", [False, True], ids=["tls", "mutual tls"])
def test_tls_lets_in_whom_it_should(api_environment: dict[str, str], tmp_path: Path, mutual: bool) -> None:
    authority = Authority()
    certificate, key = authority.issue("server", tmp_path)
    ca_file = tmp_path / "ca.pem"
    ca_file.write_bytes(authority.certificate)
    environment = api_environment | {
        "MEMORY_API_INSECURE_LOOPBACK": "false",
        "MEMORY_API_TLS_CERTIFICATE_FILE": str(certificate),
        "MEMORY_API_TLS_KEY_FILE": str(key),
        "MEMORY_API_TLS_CLIENT_CA_FILE": str(ca_file) if mutual else "",
    }
    address = f"127.0.0.1:{environment['MEMORY_API_PORT']}"
    client, stranger = authority.issue("client", tmp_path), Authority().issue("stranger", tmp_path)

    def answers(own: tuple[Path, Path] | None, trusted: bytes = authority.certificate) -> bool:
        pair = (own[1].read_bytes(), own[0].read_bytes()) if own else (None, None)
        with grpc.secure_channel(address, grpc.ssl_channel_credentials(trusted, *pair)) as channel:
            return bool(health(channel, "liveness") == SERVING)

    api = service("memory_api", environment, tmp_path / "log")
    try:
        assert until(lambda: answers(client))
        assert answers(None) is not mutual
        assert not (mutual and answers(stranger))
        assert not answers(client, trusted=Authority().certificate)
        with grpc.insecure_channel(address) as plain:
            assert health(plain, "liveness") is grpc.StatusCode.UNAVAILABLE
    finally:
        api.terminate(10)
