"""The development stack's issuer keeps its keys and writes what the services read."""

import json
import stat
from pathlib import Path

from authz import IdentityVerifier, JwksFile, parse_issuers
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from devstack.issuer import (
    BOT_RUNTIME,
    MEMORY_API_SIGNER,
    MEMORY_AUDIENCE,
    SYNC_DAEMON_SIGNER,
    DevelopmentIssuer,
    public_jwk,
)


def test_a_restarted_issuer_signs_with_the_same_keys(tmp_path: Path) -> None:
    before = DevelopmentIssuer(tmp_path)
    verifier = IdentityVerifier(parse_issuers(before.identity_file.read_text()), MEMORY_AUDIENCE)
    after = DevelopmentIssuer(tmp_path)
    session = after.session_token(user="ada", company="acme", bot="muse")
    assert verifier.verify(before.service_token(), session).service.workload_id == BOT_RUNTIME
    assert (
        before.bank_key_file(MEMORY_API_SIGNER).read_bytes()
        == after.bank_key_file(MEMORY_API_SIGNER).read_bytes()
    )


def test_private_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    issuer = DevelopmentIssuer(tmp_path)
    keys = sorted(tmp_path.glob("*.pem"))
    assert len(keys) == 4
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert not list(tmp_path.glob(".*")), "no temporary file stays behind"
    assert "PRIVATE" not in issuer.identity_file.read_text() + issuer.guard_issuers_file.read_text()


def test_the_guard_learns_which_signer_may_do_what(tmp_path: Path) -> None:
    issuer = DevelopmentIssuer(tmp_path)
    recall_signer, sync_signer = json.loads(issuer.guard_issuers_file.read_text())
    assert recall_signer == {
        "issuer": "openbot-memory-api",
        "jwks_file": str(issuer.bank_jwks_file(MEMORY_API_SIGNER)),
        "operations": ["recall"],
    }
    assert sync_signer["issuer"] == "openbot-sync-daemon"
    assert "recall" not in sync_signer["operations"]
    assert "document.delete" in sync_signer["operations"]


def test_each_bank_signers_public_key_belongs_to_its_private_key(tmp_path: Path) -> None:
    issuer = DevelopmentIssuer(tmp_path)
    for signer in (MEMORY_API_SIGNER, SYNC_DAEMON_SIGNER):
        private = load_pem_private_key(issuer.bank_key_file(signer).read_bytes(), password=None)
        kid = public_jwk(private)["kid"]  # type: ignore[arg-type]
        assert JwksFile(issuer.bank_jwks_file(signer), ("EdDSA",)).key(kid) is not None
