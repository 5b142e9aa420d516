"""Which pairs of tokens make a principal."""

import time
from collections.abc import Callable

import pytest
from authz import (
    AuthenticationFailed,
    AuthenticationFailure,
    Entry,
    IdentityVerifier,
    Principal,
    Service,
    ServiceRole,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devstack.issuer import (
    BOT_RUNTIME,
    CHANNEL_GATEWAY,
    OMIT,
    SCHEDULED_BOTS,
    SERVICE_ISSUER,
    DevelopmentIssuer,
)

MakeSession = Callable[..., str]


@pytest.fixture
def failure(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> Callable[[object], AuthenticationFailure]:
    """How a session token fails in the hands of the bot runtime."""

    def fail(session: object) -> AuthenticationFailure:
        with pytest.raises(AuthenticationFailed) as caught:
            verifier.verify(issuer.service_token(), session)  # type: ignore[arg-type]
        return caught.value.reason

    return fail


Fail = Callable[[object], AuthenticationFailure]


def test_both_tokens_together_make_the_principal(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    session = issuer.session_token(
        user="ada@acme.example",
        company="acme",
        bot="muse",
        entry="channel",
        present=True,
        sources=["wiki", "tickets"],
        actor=CHANNEL_GATEWAY,
    )
    assert verifier.verify(issuer.service_token(CHANNEL_GATEWAY), session) == Principal(
        service=Service(CHANNEL_GATEWAY, ServiceRole.CHANNEL_GATEWAY),
        company="acme",
        user="ada@acme.example",
        bot="muse",
        entry=Entry.CHANNEL,
        present=True,
        sources=frozenset({"wiki", "tickets"}),
        company_admin=False,
    )


def test_the_service_token_is_needed_even_with_a_good_session(
    verifier: IdentityVerifier, session_token: MakeSession
) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        verifier.verify(None, session_token())
    assert caught.value.reason is AuthenticationFailure.SERVICE_TOKEN_MISSING


@pytest.mark.parametrize("token", [None, ""])
def test_a_service_without_a_session_is_no_principal(failure: Fail, token: str | None) -> None:
    assert failure(token) is AuthenticationFailure.SESSION_TOKEN_MISSING


def test_swapped_tokens_are_refused(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, session_token: MakeSession, failure: Fail
) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        verifier.verify(session_token(), issuer.service_token())
    assert caught.value.reason is AuthenticationFailure.SERVICE_TOKEN_INVALID
    assert failure(issuer.service_token()) is AuthenticationFailure.SESSION_TOKEN_INVALID


def test_a_workload_cannot_sign_itself_a_session(
    issuer: DevelopmentIssuer, session_token: MakeSession, failure: Fail
) -> None:
    for forged in (
        session_token(key=issuer.service_key),
        session_token(key=issuer.service_key, claims={"iss": SERVICE_ISSUER}),
        session_token(key=Ed25519PrivateKey.generate()),
        session_token(key=b"", headers={"alg": "none"}),
        session_token(key=issuer.session_key.public_key().public_bytes_raw(), headers={"alg": "HS256"}),
    ):
        assert failure(forged) is AuthenticationFailure.SESSION_TOKEN_INVALID


@pytest.mark.parametrize("workload", [SCHEDULED_BOTS, CHANNEL_GATEWAY])
def test_a_stolen_session_is_useless_to_another_workload(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, session_token: MakeSession, workload: str
) -> None:
    stolen = session_token(actor=BOT_RUNTIME)
    assert verifier.verify(issuer.service_token(BOT_RUNTIME), stolen).user == "ada"
    with pytest.raises(AuthenticationFailed) as caught:
        verifier.verify(issuer.service_token(workload), stolen)
    assert caught.value.reason is AuthenticationFailure.SESSION_NOT_FOR_THIS_SERVICE


def test_only_the_outermost_actor_may_use_the_session(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, session_token: MakeSession, failure: Fail
) -> None:
    delegated = session_token(claims={"act": {"sub": CHANNEL_GATEWAY, "act": {"sub": BOT_RUNTIME}}})
    assert failure(delegated) is AuthenticationFailure.SESSION_NOT_FOR_THIS_SERVICE
    assert verifier.verify(issuer.service_token(CHANNEL_GATEWAY), delegated).user == "ada"


def test_an_expired_session_is_told_apart(session_token: MakeSession, failure: Fail) -> None:
    now = int(time.time())
    expired = session_token(claims={"iat": now - 600, "exp": now - 60})
    assert failure(expired) is AuthenticationFailure.SESSION_TOKEN_EXPIRED


@pytest.mark.parametrize(
    "claim", ["iss", "aud", "sub", "exp", "iat", "company", "bot", "entry", "present", "act"]
)
def test_every_required_claim_is_required(session_token: MakeSession, failure: Fail, claim: str) -> None:
    assert failure(session_token(claims={claim: OMIT})) is AuthenticationFailure.SESSION_TOKEN_INVALID


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "elsewhere"},
        {"iss": "https://sessions.evil.example"},
        {"entry": "email"},
        {"entry": "WEB"},
        {"entry": ["web"]},
        {"present": "true"},
        {"present": 1},
        {"present": None},
        {"role": "admin"},
        {"role": None},
        {"role": ["company_admin"]},
        {"sources": None},
        {"sources": "wiki"},
        {"sources": {"wiki": True}},
        {"sources": ["wiki", "wiki"]},
        {"sources": ["wiki", 7]},
        {"sources": ["wi ki"]},
        {"sources": [["wiki"]]},
        {"sources": [f"source-{number}" for number in range(65)]},
        {"act": None},
        {"act": BOT_RUNTIME},
        {"act": [BOT_RUNTIME]},
        {"act": {}},
        {"act": {"sub": None}},
        {"act": {"sub": [BOT_RUNTIME]}},
        {"act": {"sub": "bot-runtime"}},
    ],
    ids=lambda claims: str(claims)[:60],
)
def test_a_malformed_claim_makes_the_session_invalid(
    session_token: MakeSession, failure: Fail, claims: dict[str, object]
) -> None:
    assert failure(session_token(claims=claims)) is AuthenticationFailure.SESSION_TOKEN_INVALID


@pytest.mark.parametrize("claim", ["sub", "company", "bot"])
@pytest.mark.parametrize(
    "name",
    [
        "",
        " ada",
        "ada ",
        "a da",
        "ada\n",
        "ada\0",
        "\u202eada",
        "ad\u200ba",
        "аda",
        "艾达",
        "-ada",
        ".ada",
        "@ada",
        "ada/../bob",
        "ada:bob",
        "ada%00",
        "\ud800",
        "a" * 129,
        7,
        True,
        None,
        ["ada"],
        {"ada": 1},
    ],
    ids=ascii,
)
def test_a_name_outside_the_alphabet_is_no_identity(
    session_token: MakeSession, failure: Fail, claim: str, name: object
) -> None:
    assert failure(session_token(claims={claim: name})) is AuthenticationFailure.SESSION_TOKEN_INVALID


def test_names_and_sources_reach_up_to_their_limits(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier
) -> None:
    sources = [f"source-{number}" for number in range(64)]
    session = issuer.session_token(user="a" * 128, company="A.c_m-e@9", bot="7", sources=sources)
    principal = verifier.verify(issuer.service_token(), session)
    assert (principal.user, principal.company, principal.bot) == ("a" * 128, "A.c_m-e@9", "7")
    assert principal.sources == frozenset(sources)


def test_a_session_that_lists_no_source_may_use_none(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, session_token: MakeSession
) -> None:
    session = session_token(claims={"sources": OMIT})
    assert verifier.verify(issuer.service_token(), session).sources == frozenset()


def test_nobody_is_present_in_a_scheduled_session(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, session_token: MakeSession, failure: Fail
) -> None:
    contradiction = session_token(entry="schedule", present=True)
    assert failure(contradiction) is AuthenticationFailure.SESSION_TOKEN_INVALID
    scheduled = verifier.verify(issuer.service_token(), session_token(entry="schedule", present=False))
    assert (scheduled.entry, scheduled.present) == (Entry.SCHEDULE, False)


def test_an_administrators_session_is_marked(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, session_token: MakeSession
) -> None:
    assert verifier.verify(issuer.service_token(), session_token(role="company_admin")).company_admin
    assert not verifier.verify(issuer.service_token(), session_token()).company_admin


def test_claims_of_a_later_version_are_ignored(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, session_token: MakeSession
) -> None:
    session = session_token(claims={"locale": "zh-CN", "jti": "1"})
    assert verifier.verify(issuer.service_token(), session).user == "ada"


def test_errors_and_representations_show_no_token(
    issuer: DevelopmentIssuer, verifier: IdentityVerifier, session_token: MakeSession
) -> None:
    service, session = issuer.service_token(), session_token(claims={"company": "a secret place"})
    with pytest.raises(AuthenticationFailed) as caught:
        verifier.verify(service, session)
    shown = f"{caught.value!s} {caught.value!r} {caught.value.args}"
    assert str(caught.value) == "The session token is not valid here."
    assert "secret" not in shown
    assert not any(part in shown for token in (service, session) for part in token.split("."))
    principal = repr(verifier.verify(service, session_token()))
    assert principal.isascii()
    assert not any(part in principal for part in service.split("."))
