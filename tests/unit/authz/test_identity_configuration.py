"""Which identity configurations a process starts with."""

import json
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from authz import (
    ConfigurationError,
    IdentityVerifier,
    Issuer,
    IssuerKind,
    ServiceRole,
    parse_issuers,
)
from devstack.issuer import DevelopmentIssuer

RUNTIME = "spiffe://openbot.example/bot-runtime"
GOOD: dict[str, Any] = {
    "issuers": [
        {
            "issuer": "https://workloads.openbot.example",
            "kind": "service",
            "algorithms": ["EdDSA", "ES256"],
            "jwks_file": "/keys/workloads.json",
            "max_lifetime_seconds": 3600,
            "subjects": [RUNTIME],
        },
        {
            "issuer": "https://sessions.openbot.example",
            "kind": "session",
            "algorithms": ["EdDSA"],
            "jwks_file": "/keys/sessions.json",
            "max_lifetime_seconds": 900,
        },
    ],
    "services": {RUNTIME: "bot-runtime"},
}


def test_a_complete_configuration_is_read() -> None:
    config = parse_issuers(json.dumps(GOOD))
    assert config.services == {RUNTIME: ServiceRole.BOT_RUNTIME}
    assert config.issuers[0] == Issuer(
        issuer="https://workloads.openbot.example",
        kind=IssuerKind.SERVICE,
        algorithms=("EdDSA", "ES256"),
        jwks_file=Path("/keys/workloads.json"),
        max_lifetime=timedelta(hours=1),
        subjects=frozenset({RUNTIME}),
    )
    assert config.issuers[1].kind is IssuerKind.SESSION


def at(*path: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


def without(*path: str | int) -> Callable[[dict[str, Any]], None]:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        del document[path[-1]]

    return change


def with_another(**changes: object) -> Callable[[dict[str, Any]], None]:
    """One more service issuer, a copy of the first with changes."""

    def change(document: dict[str, Any]) -> None:
        document["issuers"].append(document["issuers"][0] | {"issuer": "https://more.example"} | changes)

    return change


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("colour", at("colour", value="red")),
        ("?", at("a b\n", value="red")),
        ("issuers", without("issuers")),
        ("issuers", at("issuers", value={})),
        ("issuers", at("issuers", value=[])),
        ("issuers", without("issuers", 0)),
        ("issuers", without("issuers", 1)),
        ("issuers[0]", at("issuers", 0, value="https://workloads.openbot.example")),
        ("issuers[0].colour", at("issuers", 0, "colour", value="red")),
        ("issuers[0].issuer", without("issuers", 0, "issuer")),
        ("issuers[0].issuer", at("issuers", 0, "issuer", value="")),
        ("issuers[0].issuer", at("issuers", 0, "issuer", value="two words")),
        ("issuers[0].issuer", at("issuers", 0, "issuer", value=7)),
        ("issuers[0].kind", without("issuers", 0, "kind")),
        ("issuers[0].kind", at("issuers", 0, "kind", value="both")),
        ("issuers[0].kind", at("issuers", 0, "kind", value=["service", "session"])),
        ("issuers[0].algorithms", without("issuers", 0, "algorithms")),
        ("issuers[0].algorithms", at("issuers", 0, "algorithms", value=[])),
        ("issuers[0].algorithms", at("issuers", 0, "algorithms", value="EdDSA")),
        ("issuers[0].algorithms", at("issuers", 0, "algorithms", value=["HS256"])),
        ("issuers[0].algorithms", at("issuers", 0, "algorithms", value=["EdDSA", "none"])),
        ("issuers[0].algorithms", at("issuers", 0, "algorithms", value=["RS256"])),
        ("issuers[0].algorithms", at("issuers", 0, "algorithms", value=["EdDSA", "EdDSA"])),
        ("issuers[0].algorithms", at("issuers", 0, "algorithms", value=[["EdDSA"]])),
        ("issuers[0].jwks_file", without("issuers", 0, "jwks_file")),
        ("issuers[0].jwks_file", at("issuers", 0, "jwks_file", value="")),
        ("issuers[0].jwks_file", at("issuers", 0, "jwks_file", value=["/keys"])),
        ("issuers[0].max_lifetime_seconds", without("issuers", 0, "max_lifetime_seconds")),
        ("issuers[0].max_lifetime_seconds", at("issuers", 0, "max_lifetime_seconds", value=0)),
        ("issuers[0].max_lifetime_seconds", at("issuers", 0, "max_lifetime_seconds", value=86401)),
        ("issuers[0].max_lifetime_seconds", at("issuers", 0, "max_lifetime_seconds", value=True)),
        ("issuers[0].max_lifetime_seconds", at("issuers", 0, "max_lifetime_seconds", value="3600")),
        ("issuers[0].subjects", at("issuers", 0, "subjects", value=[])),
        ("issuers[0].subjects", at("issuers", 0, "subjects", value=RUNTIME)),
        ("issuers[0].subjects", at("issuers", 0, "subjects", value=[RUNTIME, RUNTIME])),
        ("issuers[0].subjects", at("issuers", 0, "subjects", value=["spiffe://openbot.example/other"])),
        ("issuers[1].subjects", at("issuers", 1, "subjects", value=[RUNTIME])),
        ("issuers[1].issuer", at("issuers", 1, "issuer", value="https://workloads.openbot.example")),
        ("issuers[2].issuer", with_another(issuer="https://workloads.openbot.example")),
        ("issuers[2].subjects", with_another(subjects=[])),
        ("services", without("services")),
        ("services", at("services", value=[])),
        ("services", at("services", value={})),
        ("services", at("services", value={"bot-runtime": "bot-runtime"})),
        (f"services[{RUNTIME}]", at("services", RUNTIME, value="superuser")),
        (f"services[{RUNTIME}]", at("services", RUNTIME, value=None)),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_by_the_name_of_its_key(
    key: str, change: Callable[[dict[str, Any]], None]
) -> None:
    document = deepcopy(GOOD)
    change(document)
    with pytest.raises(ConfigurationError) as caught:
        parse_issuers(json.dumps(document))
    assert caught.value.key == key
    assert str(caught.value).startswith(f"{key}: ")


def test_several_service_issuers_must_each_name_their_subjects() -> None:
    document = deepcopy(GOOD)
    with_another()(document)
    assert len(parse_issuers(json.dumps(document)).issuers) == 3
    del document["issuers"][2]["subjects"]
    with pytest.raises(ConfigurationError, match=r"issuers\[2\]\.subjects"):
        parse_issuers(json.dumps(document))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"issuers": [], "issuers": []}', "[" * 100_000])
def test_a_document_that_is_no_object_of_unique_names_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="identity configuration"):
        parse_issuers(text)


@pytest.mark.parametrize("audience", ["", " ", " openbot-memory"])
def test_a_verifier_without_an_audience_does_not_start(issuer: DevelopmentIssuer, audience: str) -> None:
    config = parse_issuers(issuer.identity_file.read_text())
    with pytest.raises(ConfigurationError, match="audience"):
        IdentityVerifier(config, audience)


@pytest.mark.parametrize("leeway", [timedelta(seconds=-1), timedelta(minutes=6)])
def test_the_clocks_tolerance_is_bounded(issuer: DevelopmentIssuer, leeway: timedelta) -> None:
    config = parse_issuers(issuer.identity_file.read_text())
    with pytest.raises(ConfigurationError, match="leeway"):
        IdentityVerifier(config, "openbot-memory", leeway=leeway)
