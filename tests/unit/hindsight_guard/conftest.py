"""The guard's verifier with the two signers of production: one may recall, one may do the rest."""

from pathlib import Path

import pytest
from devstack.bank_tokens import BankTokens
from devstack.issuer import MEMORY_API_SIGNER, SYNC_DAEMON_SIGNER, DevelopmentIssuer
from hindsight_guard.tokens import TokenVerifier, load_verifier


@pytest.fixture
def issuer(tmp_path: Path) -> DevelopmentIssuer:
    return DevelopmentIssuer(tmp_path / "issuer")


@pytest.fixture
def api(issuer: DevelopmentIssuer) -> BankTokens:
    """May only recall."""
    return BankTokens(issuer, MEMORY_API_SIGNER)


@pytest.fixture
def daemon(issuer: DevelopmentIssuer) -> BankTokens:
    """May do everything but recall."""
    return BankTokens(issuer, SYNC_DAEMON_SIGNER)


@pytest.fixture
def verifier(issuer: DevelopmentIssuer) -> TokenVerifier:
    return load_verifier(issuer.guard_issuers_file, "hindsight", 300)
