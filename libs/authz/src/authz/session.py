"""What a session token says, once its signature and times are verified."""

from collections.abc import Mapping
from dataclasses import dataclass

from authz.identifiers import is_identifier, is_workload_id
from authz.principal import Entry
from authz.signed_token import TokenInvalid

_MAX_SOURCES = 64
_COMPANY_ADMIN = "company_admin"


@dataclass(frozen=True, slots=True)
class Session:
    """For whom a call is made, and ``actor``, the one workload that may make it (RFC 8693, ``act.sub``)."""

    actor: str
    company: str
    user: str
    bot: str
    entry: Entry
    present: bool
    sources: frozenset[str]
    company_admin: bool


def session_from(claims: Mapping[str, object]) -> Session:
    """Read the session out of verified claims; ``TokenInvalid`` for anything missing or malformed.

    Claims this version does not know are ignored (RFC 7519, section 4).
    """
    entry, present = _entry(claims), claims.get("present")
    if not isinstance(present, bool) or (present and entry is Entry.SCHEDULE):
        raise TokenInvalid  # nobody is present in a scheduled session
    if "role" in claims and claims["role"] != _COMPANY_ADMIN:
        raise TokenInvalid
    return Session(
        actor=_actor(claims),
        company=_identifier(claims, "company"),
        user=_identifier(claims, "sub"),
        bot=_identifier(claims, "bot"),
        entry=entry,
        present=present,
        sources=_sources(claims),
        company_admin="role" in claims,
    )


def _identifier(claims: Mapping[str, object], name: str) -> str:
    value = claims.get(name)
    if not is_identifier(value):
        raise TokenInvalid
    return value


def _entry(claims: Mapping[str, object]) -> Entry:
    value = claims.get("entry")
    if not isinstance(value, str) or value not in tuple(Entry):
        raise TokenInvalid
    return Entry(value)


def _actor(claims: Mapping[str, object]) -> str:
    # Only the outermost actor acts; nested ones are history and decide nothing (RFC 8693, section 4.1).
    act = claims.get("act")
    actor = act.get("sub") if isinstance(act, dict) else None
    if not is_workload_id(actor):
        raise TokenInvalid
    return actor


def _sources(claims: Mapping[str, object]) -> frozenset[str]:
    listed = claims.get("sources", [])
    if not isinstance(listed, list) or len(listed) > _MAX_SOURCES:
        raise TokenInvalid
    sources = frozenset(source for source in listed if is_identifier(source))
    if len(sources) != len(listed):
        raise TokenInvalid
    return sources
