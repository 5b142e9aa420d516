"""Whose tokens are trusted, configured issuer by issuer.

The configuration is one JSON document::

    {"issuers": [{"issuer": "https://workloads.openbot.example", "kind": "service",
                  "algorithms": ["EdDSA"], "jwks_file": "/etc/openbot/workloads.jwks.json",
                  "max_lifetime_seconds": 3600,
                  "subjects": ["spiffe://openbot.example/bot-runtime"]}],
     "services": {"spiffe://openbot.example/bot-runtime": "bot-runtime"}}

``subjects`` is for service issuers and may be left out while there is only one of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from authz.errors import ConfigurationError
from authz.identifiers import is_spiffe_id
from authz.keys import SUPPORTED_ALGORITHMS
from authz.principal import ServiceRole
from authz.strict_json import parse_object

_ISSUER_NAME = re.compile(r"[\x21-\x7e]{1,512}")
_PRINTABLE_KEY = re.compile(r"[A-Za-z0-9_]{1,64}")
_LONGEST_LIFETIME = 24 * 60 * 60  # seconds; "short exp" of JWT-SVID with room for any sane issuer
_REQUIRED_KEYS = frozenset({"issuer", "kind", "algorithms", "jwks_file", "max_lifetime_seconds"})


class IssuerKind(StrEnum):
    """Which of the two tokens an issuer signs; never both (RFC 8725, section 3.12)."""

    SERVICE = "service"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Issuer:
    """One trusted issuer with its pinned algorithms (RFC 8725, sections 3.1 and 3.8).

    ``max_lifetime`` bounds ``exp - iat``. ``subjects`` are the only SPIFFE IDs a service issuer may speak
    for; empty means every configured service.
    """

    issuer: str
    kind: IssuerKind
    algorithms: tuple[str, ...]
    jwks_file: Path
    max_lifetime: timedelta
    subjects: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class IdentityConfig:
    """All trusted issuers and the role of each workload; ``ConfigurationError`` if they do not fit."""

    issuers: tuple[Issuer, ...]
    services: Mapping[str, ServiceRole]

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
    _check_keys(f"{key}.", entry, required=_REQUIRED_KEYS, optional=frozenset({"subjects"}))
    name, jwks_file, seconds = entry["issuer"], entry["jwks_file"], entry["max_lifetime_seconds"]
    if not isinstance(name, str) or _ISSUER_NAME.fullmatch(name) is None:
        raise ConfigurationError(f"{key}.issuer", "must be printable ASCII without spaces")
    if entry["kind"] not in tuple(IssuerKind):
        raise ConfigurationError(f"{key}.kind", "must be service or session")
    if not isinstance(jwks_file, str) or not jwks_file or "\0" in jwks_file:
        raise ConfigurationError(f"{key}.jwks_file", "must be the path of a file")
    if type(seconds) is not int or not 0 < seconds <= _LONGEST_LIFETIME:
        raise ConfigurationError(f"{key}.max_lifetime_seconds", "must be a whole number from 1 to 86400")
    algorithms = _distinct(f"{key}.algorithms", entry["algorithms"])
    if not algorithms or not SUPPORTED_ALGORITHMS.issuperset(algorithms):
        raise ConfigurationError(f"{key}.algorithms", "must list only EdDSA and ES256")
    subjects = _distinct(f"{key}.subjects", entry["subjects"]) if "subjects" in entry else ()
    if "subjects" in entry and not subjects:
        raise ConfigurationError(f"{key}.subjects", "must not be empty; leave it out instead")
    return Issuer(
        issuer=name,
        kind=IssuerKind(entry["kind"]),
        algorithms=algorithms,
        jwks_file=Path(jwks_file),
        max_lifetime=timedelta(seconds=seconds),
        subjects=frozenset(subjects),
    )


def _services(value: object) -> Mapping[str, ServiceRole]:
    if not isinstance(value, dict) or not value:
        raise ConfigurationError("services", "must map at least one SPIFFE ID to a role")
    for position, (subject, role) in enumerate(value.items()):
        if not is_spiffe_id(subject):
            raise ConfigurationError("services", f"entry {position} is not named by a SPIFFE ID")
        if role not in tuple(ServiceRole):
            raise ConfigurationError(f"services[{subject}]", "is not a known role")
    return MappingProxyType({subject: ServiceRole(role) for subject, role in value.items()})


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
