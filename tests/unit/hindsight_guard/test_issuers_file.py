"""How the guard's signers are configured, and how their keys change while it runs."""

import json
import logging
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devstack.bank_tokens import BankTokens
from devstack.issuer import MEMORY_API_SIGNER, DevelopmentIssuer, public_jwk, write_json
from hindsight_guard.tokens import GuardMisconfigured, TokenInvalid, TokenVerifier, load_verifier
from jwt.algorithms import OKPAlgorithm

BANK = "bank-0123456789"


def accepts(verifier: TokenVerifier, token: str) -> bool:
    try:
        verifier.verify(token)
    except TokenInvalid:
        return False
    return True


@pytest.fixture
def jwks_file(issuer: DevelopmentIssuer) -> Path:
    return issuer.bank_jwks_file(MEMORY_API_SIGNER)


def test_keys_rotate_with_an_overlap_and_without_a_restart(
    verifier: TokenVerifier, api: BankTokens, jwks_file: Path
) -> None:
    fresh = Ed25519PrivateKey.generate()
    old_token = api.token(BANK, "recall")
    new_token = api.token(BANK, "recall", key=fresh, headers={"kid": public_jwk(fresh)["kid"]})
    assert (accepts(verifier, old_token), accepts(verifier, new_token)) == (True, False)
    write_json(jwks_file, {"keys": [public_jwk(api.key), public_jwk(fresh)]})
    assert (accepts(verifier, old_token), accepts(verifier, new_token)) == (True, True)
    write_json(jwks_file, {"keys": [public_jwk(fresh)]})
    assert (accepts(verifier, old_token), accepts(verifier, new_token)) == (False, True)


def test_a_key_set_without_keys_revokes_them_all(
    verifier: TokenVerifier, api: BankTokens, jwks_file: Path
) -> None:
    write_json(jwks_file, {"keys": []})
    assert not accepts(verifier, api.token(BANK, "recall"))


@pytest.mark.parametrize(
    "content",
    ["", "not json", "[]", "{}", '{"keys": 1}', '{"keys": [{"kty": "oct"}]}', '{"keys":' + "[" * 100_000],
    ids=lambda content: content[:24],
)
def test_a_broken_file_keeps_the_keys_and_says_so_without_quoting_it(
    verifier: TokenVerifier,
    api: BankTokens,
    jwks_file: Path,
    content: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    jwks_file.write_text(content)
    with caplog.at_level(logging.WARNING):
        assert accepts(verifier, api.token(BANK, "recall"))
        assert accepts(verifier, api.token(BANK, "recall"))
    assert [record.getMessage() for record in caplog.records] == [
        "a changed JWKS file cannot be used; the keys stay as they were"
    ]


def test_a_key_that_was_taken_out_is_gone_once_the_file_can_be_read_again(
    verifier: TokenVerifier, api: BankTokens, jwks_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(jwks_file, {"keys": [public_jwk(Ed25519PrivateKey.generate())]})
    read_bytes = Path.read_bytes

    def fails(_path: Path) -> bytes:
        raise OSError

    monkeypatch.setattr(Path, "read_bytes", fails)
    assert accepts(verifier, api.token(BANK, "recall"))
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert not accepts(verifier, api.token(BANK, "recall"))


def test_a_file_that_is_away_keeps_the_keys(
    verifier: TokenVerifier, api: BankTokens, jwks_file: Path
) -> None:
    jwks_file.unlink()
    assert accepts(verifier, api.token(BANK, "recall"))


def private_jwk() -> dict[str, str]:
    key = Ed25519PrivateKey.generate()
    private: dict[str, str] = OKPAlgorithm.to_jwk(key, as_dict=True)
    return public_jwk(key) | private


@pytest.mark.parametrize(
    "jwk",
    [
        public_jwk(ec.generate_private_key(ec.SECP256R1())),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "a", "alg": "HS256"},
        private_jwk(),
        {name: value for name, value in public_jwk(Ed25519PrivateKey.generate()).items() if name != "kid"},
    ],
    ids=["P-256", "symmetric", "private", "no kid"],
)
def test_only_named_public_ed25519_keys_are_keys(
    issuer: DevelopmentIssuer, jwks_file: Path, jwk: dict[str, str]
) -> None:
    write_json(jwks_file, {"keys": [jwk]})
    with pytest.raises(GuardMisconfigured, match="no usable keys"):
        load_verifier(issuer.guard_issuers_file, "hindsight", 300)


def test_two_keys_of_one_name_are_none(issuer: DevelopmentIssuer, jwks_file: Path) -> None:
    first, second = (public_jwk(Ed25519PrivateKey.generate()) | {"kid": "same"} for _ in range(2))
    write_json(jwks_file, {"keys": [first, second]})
    with pytest.raises(GuardMisconfigured, match="no usable keys"):
        load_verifier(issuer.guard_issuers_file, "hindsight", 300)


def entry(issuer: DevelopmentIssuer, /, **changes: object) -> dict[str, object]:
    return {
        "issuer": MEMORY_API_SIGNER,
        "jwks_file": str(issuer.bank_jwks_file(MEMORY_API_SIGNER)),
        "operations": ["recall"],
    } | changes


@pytest.mark.parametrize(
    "changes",
    [
        {"operations": []},
        {"operations": ["recall", "bank.delete"]},
        {"operations": ["*"]},
        {"operations": None},
        {"jwks_file": "/nonexistent"},
        {"jwks_file": None},
        {"issuer": ""},
        {"issuer": None},
        {"issuer": 7},
        {"algorithms": ["HS256"]},
    ],
    ids=str,
)
def test_a_wrong_issuer_entry_stops_the_start(
    issuer: DevelopmentIssuer, tmp_path: Path, changes: dict[str, object]
) -> None:
    path = tmp_path / "issuers.json"
    path.write_text(json.dumps([entry(issuer, **changes)]))
    with pytest.raises(GuardMisconfigured):
        load_verifier(path, "hindsight", 300)


@pytest.mark.parametrize("content", ["[]", "{}", "not json", "", "[1]", "null"])
def test_no_issuer_stops_the_start(tmp_path: Path, content: str) -> None:
    path = tmp_path / "issuers.json"
    path.write_text(content)
    with pytest.raises(GuardMisconfigured):
        load_verifier(path, "hindsight", 300)


def test_an_issuer_named_twice_stops_the_start(issuer: DevelopmentIssuer, tmp_path: Path) -> None:
    path = tmp_path / "issuers.json"
    path.write_text(json.dumps([entry(issuer), entry(issuer)]))
    with pytest.raises(GuardMisconfigured, match="twice"):
        load_verifier(path, "hindsight", 300)
