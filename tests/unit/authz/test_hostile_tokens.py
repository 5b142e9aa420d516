"""Whatever arrives as a token, the answer is a principal or ``AuthenticationFailed``, never another error."""

import base64
import json
from pathlib import Path

import pytest
from authz import AuthenticationFailed, IdentityVerifier, parse_issuers
from devstack.issuer import MEMORY_AUDIENCE, DevelopmentIssuer
from hypothesis import given
from hypothesis import strategies as st

SERVICE_CLAIMS = ("iss", "aud", "sub", "exp", "iat", "nbf")
SESSION_CLAIMS = (*SERVICE_CLAIMS, "company", "bot", "entry", "present", "sources", "role", "act")

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([MEMORY_AUDIENCE, "web", "schedule", "company_admin", 10**400, 1e308, "\ud800", "a\0b"])
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)
headers = st.dictionaries(
    st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "jku", "x5u", "zip"]), json_values, max_size=3
)


class World:
    """The issuer and verifier that all examples share."""

    def __init__(self, directory: Path) -> None:
        self.issuer = DevelopmentIssuer(directory)
        self.verifier = IdentityVerifier(
            parse_issuers(self.issuer.identity_file.read_text()), MEMORY_AUDIENCE
        )
        self.service = self.issuer.service_token()
        self.session = self.issuer.session_token(user="ada", company="acme", bot="muse")

    def survives(self, service: object, session: object) -> None:
        try:
            principal = self.verifier.verify(service, session)  # type: ignore[arg-type]
        except AuthenticationFailed:
            return
        assert principal.company == "acme"
        assert isinstance(principal.present, bool)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("issuer"))


@given(claims=st.dictionaries(st.sampled_from(SERVICE_CLAIMS), json_values, min_size=1))
def test_signed_service_tokens_with_any_claims(world: World, claims: dict[str, object]) -> None:
    world.survives(world.issuer.service_token(claims=claims), world.session)


@given(
    claims=st.dictionaries(
        st.sampled_from(SESSION_CLAIMS).filter(lambda name: name != "company"), json_values
    )
)
def test_signed_session_tokens_with_any_claims(world: World, claims: dict[str, object]) -> None:
    session = world.issuer.session_token(user="ada", company="acme", bot="muse", claims=claims)
    world.survives(world.service, session)


@given(changes=headers)
def test_signed_tokens_with_any_headers(world: World, changes: dict[str, object]) -> None:
    world.survives(world.issuer.service_token(headers=changes), world.session)


@given(payload=json_values)
def test_signed_payloads_of_any_shape(world: World, payload: object) -> None:
    header = world.service.split(".")[0]
    body = base64.urlsafe_b64encode(json.dumps(payload).encode()).rstrip(b"=").decode()
    signature = world.issuer.service_key.sign(f"{header}.{body}".encode())
    token = f"{header}.{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    with pytest.raises(AuthenticationFailed):
        world.verifier.verify_service(token)


@given(text=st.text() | st.text(alphabet="eyJ0.-_=AZ", max_size=200))
def test_any_text(world: World, text: str) -> None:
    with pytest.raises(AuthenticationFailed):
        world.verifier.verify(text, world.session)
    with pytest.raises(AuthenticationFailed):
        world.verifier.verify(world.service, text)


@given(
    value=st.binary()
    | st.integers()
    | st.booleans()
    | st.lists(st.text())
    | st.dictionaries(st.text(), st.text())
)
def test_any_wrong_type(world: World, value: object) -> None:
    with pytest.raises(AuthenticationFailed):
        world.verifier.verify(value, world.session)  # type: ignore[arg-type]
    with pytest.raises(AuthenticationFailed):
        world.verifier.verify(world.service, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [
        '{"iss": "https://workloads.openbot.example", "iss": "https://sessions.openbot.example"}',
        "[" * 2000,
        '{"a":' * 1000,
        '{"exp": NaN}',
        "1" * 5000,
        "\ufeff{}",
    ],
    ids=[
        "repeated name",
        "nested lists",
        "nested objects",
        "not a number",
        "a huge number",
        "a byte order mark",
    ],
)
def test_payloads_that_readers_disagree_about(world: World, body: str) -> None:
    segment = base64.urlsafe_b64encode(body.encode()).rstrip(b"=").decode()
    header, _, signature = world.service.split(".")
    with pytest.raises(AuthenticationFailed):
        world.verifier.verify_service(f"{header}.{segment}.{signature}")
    with pytest.raises(AuthenticationFailed):
        world.verifier.verify_service(f"{segment}.{segment}.{signature}")


def test_padding_and_white_space_are_not_tolerated(world: World) -> None:
    header, payload, signature = world.service.split(".")
    for token in (
        f"{world.service}=",
        f"{world.service}\n",
        f" {world.service}",
        f"{header}=.{payload}.{signature}",
    ):
        with pytest.raises(AuthenticationFailed):
            world.verifier.verify_service(token)
    with pytest.raises(AuthenticationFailed):
        world.verifier.verify_service(f"Bearer {world.service}")
