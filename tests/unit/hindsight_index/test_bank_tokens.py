"""The tokens that our services present to the guard."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from devstack.issuer import MEMORY_API_SIGNER, SYNC_DAEMON_SIGNER, DevelopmentIssuer
from hindsight_guard.tokens import Grant, TokenInvalid, TokenVerifier, load_verifier
from hindsight_index import BankTokenSigner

BANK = "bank-0123456789"


@pytest.fixture
def issuer(tmp_path: Path) -> DevelopmentIssuer:
    return DevelopmentIssuer(tmp_path / "issuer")


@pytest.fixture
def guard(issuer: DevelopmentIssuer) -> TokenVerifier:
    return load_verifier(issuer.guard_issuers_file, "hindsight", 300)


def signer(issuer: DevelopmentIssuer, name: str = SYNC_DAEMON_SIGNER, **options: object) -> BankTokenSigner:
    key = issuer.bank_key_file(name).read_bytes()
    return BankTokenSigner(key, issuer=name, **options)  # type: ignore[arg-type]


def accepts(guard: TokenVerifier, token: str) -> bool:
    try:
        guard.verify(token)
    except TokenInvalid:
        return False
    return True


def test_the_guard_takes_them_for_one_bank_and_the_operations_named(
    issuer: DevelopmentIssuer, guard: TokenVerifier
) -> None:
    token = signer(issuer).sign(BANK, "document.read", "units.list")
    assert guard.verify(token) == Grant(BANK, frozenset({"document.read", "units.list"}))
    token = signer(issuer, MEMORY_API_SIGNER).sign(BANK, "recall")
    assert guard.verify(token) == Grant(BANK, frozenset({"recall"}))


def test_the_longest_life_is_one_that_the_guard_accepts(
    issuer: DevelopmentIssuer, guard: TokenVerifier
) -> None:
    assert accepts(guard, signer(issuer, lifetime=timedelta(minutes=5)).sign(BANK, "document.read"))
    for lifetime in (timedelta(0), timedelta(minutes=5, seconds=1)):
        with pytest.raises(ValueError, match="five minutes"):
            signer(issuer, lifetime=lifetime)


def test_the_caller_can_shorten_a_life_and_never_lengthen_it(
    issuer: DevelopmentIssuer, guard: TokenVerifier
) -> None:
    now = datetime.now(UTC)
    mine = signer(issuer, lifetime=timedelta(seconds=60), clock=lambda: now)

    def life(expires_at: datetime) -> int:
        claims = jwt.decode(
            mine.sign(BANK, "document.read", expires_at=expires_at), options={"verify_signature": False}
        )
        return int(claims["exp"]) - int(claims["iat"])

    assert life(now + timedelta(seconds=10)) == 10
    assert life(now + timedelta(hours=1)) == 60
    assert not accepts(guard, mine.sign(BANK, "document.read", expires_at=now - timedelta(seconds=10)))


def test_no_two_tokens_are_the_same(issuer: DevelopmentIssuer) -> None:
    now = datetime.now(UTC)
    mine = signer(issuer, clock=lambda: now)
    assert mine.sign(BANK, "document.read") != mine.sign(BANK, "document.read")


def test_only_ed25519_signs() -> None:
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    with pytest.raises(ValueError, match="Ed25519"):
        BankTokenSigner(pem, issuer="i")
