"""One development issuer, and a verifier that trusts it, for the tests of tokens."""

from collections.abc import Callable
from pathlib import Path

import pytest
from authz import IdentityVerifier, parse_issuers
from devstack.issuer import MEMORY_AUDIENCE, DevelopmentIssuer


@pytest.fixture
def issuer(tmp_path: Path) -> DevelopmentIssuer:
    return DevelopmentIssuer(tmp_path / "issuer")


@pytest.fixture
def verifier(issuer: DevelopmentIssuer) -> IdentityVerifier:
    return IdentityVerifier(parse_issuers(issuer.identity_file.read_text()), MEMORY_AUDIENCE)


@pytest.fixture
def session_token(issuer: DevelopmentIssuer) -> Callable[..., str]:
    """A session of Ada at Acme with the bot Muse, wrong in whatever the keywords say."""

    def make(**overrides: object) -> str:
        arguments: dict[str, object] = {"user": "ada", "company": "acme", "bot": "muse"} | overrides
        return issuer.session_token(**arguments)  # type: ignore[arg-type]

    return make
