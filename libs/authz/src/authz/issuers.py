"""Whose tokens are trusted, configured issuer by issuer.

The configuration is one JSON document::

    {"issuers": [{"issuer": "https://workloads.openbot.example", "kind": "service",
                  "algorithms": ["EdDSA"], "jwks_file": "/etc/openbot/workloads.jwks.json",
                  "max_lifetime_seconds": 3600,
                  "subjects": ["spiffe://openbot.example/bot-runtime"]}],
     "services": {"spiffe://openbot.example/bot-runtime": "bot-runtime",
                  "spiffe://openbot.example/plane": {"role": "control-plane", "companies": ["eu-*"]}}}

``jwks_url``, with ``jwks_ca_file`` and ``jwks_token_file`` if need be, may take the place of ``jwks_file``.
``token_format`` is ``jwt-svid`` unless it is ``kubernetes``, for service issuers only. ``subjects`` is for
service issuers and may be left out while there is only one of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TypeGuard

from authz.errors import ConfigurationError
from authz.identifiers import is_identifier, is_service_account, is_spiffe_id, is_workload_id
from authz.jwks_url import JwksLocation, is_safe_url
from authz.principal import ServiceRole
from authz.strict_json import parse_object

_ISSUER_NAME = re.compile(r"[\x21-\x7e]{1,512}")
_PRINTABLE_KEY = re.compile(r"[A-Za-z0-9_]{1,64}")
_LONGEST_LIFETIME = 24 * 60 * 60  # seconds; "short exp" of JWT-SVID with room for any sane issuer
_REQUIRED_KEYS = frozenset({"issuer", "kind", "algorithms", "max_lifetime_seconds"})
_OPTIONAL_KEYS = frozenset(
    {"jwks_file", "jwks_url", "jwks_ca_file", "jwks_token_file", "token_format", "subjects"}
)


class IssuerKind(StrEnum):
    """Which of the two tokens an issuer signs; never both (RFC 8725, section 3.12)."""

    SERVICE = "service"
    SESSION = "session"


class TokenFormat(StrEnum):
    """How a service issuer names workloads."""

    JWT_SVID = "jwt-svid"
    KUBERNETES = "kubernetes"

    def names(self, subject: object) -> TypeGuard[str]:
        """Whether ``subject`` is a workload in this format. No issuer speaks in the other's."""
        return is_spiffe_id(subject) if self is TokenFormat.JWT_SVID else is_service_account(subject)


#: RS256 only where nothing else is to be had: Kubernetes signs with RSA unless told otherwise.
_ALGORITHMS = {
    TokenFormat.JWT_SVID: ("EdDSA", "ES256"),
    TokenFormat.KUBERNETES: ("RS256", "ES256"),
}


@dataclass(frozen=True, slots=True)
class Issuer:
    """One trusted issuer with its pinned algorithms (RFC 8725, sections 3.1 and 3.8).

    ``jwks`` is where its keys are: a file, or a URL. ``max_lifetime`` bounds ``exp - iat``. ``subjects`` are
    the only workloads a service issuer may speak for; empty means every configured one.
    """

    issuer: str
    kind: IssuerKind
    algorithms: tuple[str, ...]
    jwks: Path | JwksLocation
    max_lifetime: timedelta
    token_format: TokenFormat = TokenFormat.JWT_SVID
    subjects: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Workload:
    """What a configured workload may be here, and the companies that a control plane may write."""

    role: ServiceRole
    companies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IdentityConfig:
    """All trusted issuers and the role of each workload; ``ConfigurationError`` if they do not fit."""

    issuers: tuple[Issuer, ...]
    services: Mapping[str, Workload]

    def __post_init__(self) -> None:
        names: set[str] = set()
        for position, issuer in enumerate(self.issuers):
            if issuer.issuer in names:
                raise ConfigurationError(f"issuers[{position}].issuer", "is configured twice")
            names.add(issuer.issuer)
        for kind in IssuerKind:
            if not any(issuer.kind is kind for issuer in self.issuers):
                raise ConfigurationError("issuers", f"has no issuer of kind {kind}")
        self._check_subjects()

    def _check_subjects(self) -> None:
        several = sum(issuer.kind is IssuerKind.SERVICE for issuer in self.issuers) > 1
        for position, issuer in enumerate(self.issuers):
            key = f"issuers[{position}].subjects"
            if issuer.kind is IssuerKind.SESSION and issuer.subjects:
                raise ConfigurationError(key, "is for service issuers only")
            if issuer.kind is IssuerKind.SERVICE and several and not issuer.subjects:
                raise ConfigurationError(key, "must be listed when there are several service issuers")
            if not issuer.subjects <= self.services.keys():
                raise ConfigurationError(key, "lists a subject that is not among the services")
            if not all(issuer.token_format.names(subject) for subject in issuer.subjects):
                raise ConfigurationError(key, "lists a subject that this token format does not name")


def parse_issuers(json_text: str) -> IdentityConfig:
    """Parse the document shown above, strictly; ``ConfigurationError`` names the offending key."""
    try:
        document = parse_object(json_text)
    except ValueError as error:
        raise ConfigurationError("identity configuration", str(error)) from None
    _check_keys("", document, required=frozenset({"issuers", "services"}))
    entries = document["issuers"]
    if not isinstance(entries, list):
        raise ConfigurationError("issuers", "must be a list")
    issuers = tuple(_issuer(f"issuers[{position}]", entry) for position, entry in enumerate(entries))
    return IdentityConfig(issuers, _services(document["services"]))


def _issuer(key: str, entry: object) -> Issuer:
    if not isinstance(entry, dict):
        raise ConfigurationError(key, "must be an object")
    _check_keys(f"{key}.", entry, required=_REQUIRED_KEYS, optional=_OPTIONAL_KEYS)
    name, seconds = entry["issuer"], entry["max_lifetime_seconds"]
    if not isinstance(name, str) or _ISSUER_NAME.fullmatch(name) is None:
        raise ConfigurationError(f"{key}.issuer", "must be printable ASCII without spaces")
    if entry["kind"] not in tuple(IssuerKind):
        raise ConfigurationError(f"{key}.kind", "must be service or session")
    if type(seconds) is not int or not 0 < seconds <= _LONGEST_LIFETIME:
        raise ConfigurationError(f"{key}.max_lifetime_seconds", "must be a whole number from 1 to 86400")
    token_format = _token_format(key, entry)
    algorithms = _distinct(f"{key}.algorithms", entry["algorithms"])
    pinnable = _ALGORITHMS[token_format]
    if not algorithms or not set(pinnable).issuperset(algorithms):
        raise ConfigurationError(f"{key}.algorithms", f"must list only {' and '.join(pinnable)}")
    subjects = _distinct(f"{key}.subjects", entry["subjects"]) if "subjects" in entry else ()
    if "subjects" in entry and not subjects:
        raise ConfigurationError(f"{key}.subjects", "must not be empty; leave it out instead")
    return Issuer(
        issuer=name,
        kind=IssuerKind(entry["kind"]),
        algorithms=algorithms,
        jwks=_jwks(key, entry),
        max_lifetime=timedelta(seconds=seconds),
        token_format=token_format,
        subjects=frozenset(subjects),
    )


def _token_format(key: str, entry: Mapping[str, object]) -> TokenFormat:
    value = entry.get("token_format", TokenFormat.JWT_SVID)
    if not isinstance(value, str) or value not in tuple(TokenFormat):
        raise ConfigurationError(f"{key}.token_format", "must be jwt-svid or kubernetes")
    if "token_format" in entry and entry["kind"] != IssuerKind.SERVICE:
        raise ConfigurationError(f"{key}.token_format", "is for service issuers only")
    return TokenFormat(value)


def _jwks(key: str, entry: Mapping[str, object]) -> Path | JwksLocation:
    if ("jwks_file" in entry) == ("jwks_url" in entry):
        raise ConfigurationError(f"{key}.jwks_file", "or jwks_url must be given, and not both")
    if "jwks_file" in entry:
        for name in ("jwks_ca_file", "jwks_token_file"):
            if name in entry:
                raise ConfigurationError(f"{key}.{name}", "goes with jwks_url only")
        return _path(key, "jwks_file", entry)
    url = entry["jwks_url"]
    if not isinstance(url, str) or not is_safe_url(url):
        raise ConfigurationError(
            f"{key}.jwks_url", "must be HTTPS without user info, or plain HTTP of a loopback address"
        )
    return JwksLocation(
        url,
        ca_file=_path(key, "jwks_ca_file", entry) if "jwks_ca_file" in entry else None,
        token_file=_path(key, "jwks_token_file", entry) if "jwks_token_file" in entry else None,
    )


def _path(key: str, name: str, entry: Mapping[str, object]) -> Path:
    value = entry[name]
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigurationError(f"{key}.{name}", "must be the path of a file")
    return Path(value)


def _services(value: object) -> Mapping[str, Workload]:
    if not isinstance(value, dict) or not value:
        raise ConfigurationError("services", "must map at least one workload to a role")
    for position, subject in enumerate(value):
        if not is_workload_id(subject):
            raise ConfigurationError(
                "services", f"entry {position} is not named by a SPIFFE ID or a service account"
            )
    return MappingProxyType(
        {subject: _workload(f"services[{subject}]", entry) for subject, entry in value.items()}
    )


def _workload(key: str, entry: object) -> Workload:
    if isinstance(entry, dict):
        _check_keys(f"{key}.", entry, required=frozenset({"role", "companies"}))
        if entry["role"] != ServiceRole.CONTROL_PLANE:
            raise ConfigurationError(f"{key}.companies", "is for control planes only")
        return Workload(ServiceRole.CONTROL_PLANE, _companies(f"{key}.companies", entry["companies"]))
    if not isinstance(entry, str) or entry not in tuple(ServiceRole):
        raise ConfigurationError(key, "is not a known role")
    if entry == ServiceRole.CONTROL_PLANE:
        raise ConfigurationError(key, "must be an object that also says which companies it may write")
    return Workload(ServiceRole(entry))


def _companies(key: str, value: object) -> tuple[str, ...]:
    companies = _distinct(key, value)
    if not companies or not all(each == "*" or is_identifier(each.removesuffix("*")) for each in companies):
        raise ConfigurationError(key, "must list names of companies, or beginnings of names before a *")
    return companies


def _distinct(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigurationError(key, "must be a list of strings")
    if len(set(value)) != len(value):
        raise ConfigurationError(key, "lists something twice")
    return tuple(value)


def _check_keys(
    prefix: str,
    members: Mapping[str, object],
    *,
    required: frozenset[str],
    optional: frozenset[str] = frozenset(),
) -> None:
    for name in members:
        if name not in required | optional:
            shown = name if _PRINTABLE_KEY.fullmatch(name) else "?"
            raise ConfigurationError(f"{prefix}{shown}", "is not a known key")
    for name in sorted(required - members.keys()):
        raise ConfigurationError(f"{prefix}{name}", "is missing")
