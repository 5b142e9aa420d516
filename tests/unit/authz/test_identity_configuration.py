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
    JwksLocation,
    ServiceRole,
    TokenFormat,
    Workload,
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
    assert config.services == {RUNTIME: Workload(ServiceRole.BOT_RUNTIME)}
    assert config.issuers[0] == Issuer(
        issuer="https://workloads.openbot.example",
        kind=IssuerKind.SERVICE,
        algorithms=("EdDSA", "ES256"),
        jwks=Path("/keys/workloads.json"),
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
        ("issuers[0].token_format", at("issuers", 0, "token_format", value="x509")),
        ("issuers[0].token_format", at("issuers", 0, "token_format", value=["kubernetes"])),
        ("issuers[0].algorithms", at("issuers", 0, "token_format", value="kubernetes")),
        ("issuers[1].token_format", at("issuers", 1, "token_format", value="jwt-svid")),
        ("issuers[1].algorithms", at("issuers", 1, "algorithms", value=["RS256"])),
        ("issuers[0].jwks_file", at("issuers", 0, "jwks_url", value="https://keys.example/jwks")),
        ("issuers[0].jwks_ca_file", at("issuers", 0, "jwks_ca_file", value="/ca.pem")),
        ("issuers[0].jwks_token_file", at("issuers", 0, "jwks_token_file", value="/token")),
        ("services[spiffe://openbot.example/bot-runtime]", at("services", RUNTIME, value="control-plane")),
        (
            "services[spiffe://openbot.example/bot-runtime].companies",
            at("services", RUNTIME, value={"role": "bot-runtime", "companies": ["acme"]}),
        ),
        (
            "services[spiffe://openbot.example/bot-runtime].companies",
            at("services", RUNTIME, value={"role": "control-plane"}),
        ),
        *(
            (
                "services[spiffe://openbot.example/bot-runtime].companies",
                at("services", RUNTIME, value={"role": "control-plane", "companies": companies}),
            )
            for companies in ([], [""], "*", ["a**"], ["*a"], ["a b"], ["acme", "acme"], [7], ["."])
        ),
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


def with_url(url: str, **more: str) -> dict[str, Any]:
    issuer = {name: value for name, value in GOOD["issuers"][0].items() if name != "jwks_file"}
    return GOOD | {"issuers": [issuer | {"jwks_url": url} | more, GOOD["issuers"][1]]}


def test_keys_may_come_from_a_url_with_an_authority_and_a_token_of_its_own() -> None:
    document = with_url("https://keys.example/jwks", jwks_ca_file="/ca.pem", jwks_token_file="/token")
    assert parse_issuers(json.dumps(document)).issuers[0].jwks == JwksLocation(
        "https://keys.example/jwks", Path("/ca.pem"), Path("/token")
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://keys.example/jwks",
        "http://localhost/jwks",
        "https://user:secret@keys.example/jwks",
        "https:///jwks",
        "file:///etc/passwd",
        "keys.example/jwks",
        "",
    ],
)
def test_keys_come_over_tls_or_from_this_machine(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_issuers(json.dumps(with_url(url)))
    assert caught.value.key == "issuers[0].jwks_url"
    parse_issuers(json.dumps(with_url("http://127.0.0.1:8080/jwks")))


def test_a_cluster_may_be_an_issuer_and_a_control_plane_has_companies() -> None:
    account, plane = "system:serviceaccount:openbot:bot-runtime", "spiffe://openbot.example/plane"
    cluster = GOOD["issuers"][0] | {
        "issuer": "https://cluster.example",
        "algorithms": ["RS256"],
        "token_format": "kubernetes",
        "subjects": [account],
    }
    config = parse_issuers(
        json.dumps(
            GOOD
            | {
                "issuers": [*GOOD["issuers"], cluster],
                "services": {
                    RUNTIME: "bot-runtime",
                    account: "bot-runtime",
                    plane: {"role": "control-plane", "companies": ["acme", "eu-*", "*"]},
                },
            }
        )
    )
    assert config.issuers[2].token_format is TokenFormat.KUBERNETES
    assert config.services[plane] == Workload(ServiceRole.CONTROL_PLANE, ("acme", "eu-*", "*"))


@pytest.mark.parametrize(
    ("token_format", "algorithm", "subject"),
    [("kubernetes", "RS256", RUNTIME), ("jwt-svid", "EdDSA", "system:serviceaccount:openbot:bot-runtime")],
)
def test_no_issuer_speaks_in_the_format_of_the_other(token_format: str, algorithm: str, subject: str) -> None:
    document = json.loads(json.dumps(GOOD))
    document["services"]["system:serviceaccount:openbot:bot-runtime"] = "bot-runtime"
    document["issuers"][0] |= {"token_format": token_format, "algorithms": [algorithm], "subjects": [subject]}
    with pytest.raises(ConfigurationError) as caught:
        parse_issuers(json.dumps(document))
    assert caught.value.key == "issuers[0].subjects"
