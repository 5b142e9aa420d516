"""The one table of which RPC is open to which service role, in which session, by which entry.

A row per RPC. What is not in the table is denied. The table only says who may knock: what the person and
the bot may see is decided again by the statement that reads the text (I3). Administrators' sessions reach
no memory (I13). Reading is the same by every entry (I14); what decides over a memory needs a person who is
present, and taking one back or looking through all of them is done where the person is, not by a bot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from authz.errors import Denial, PermissionDenied
from authz.principal import Entry, Principal, Service, ServiceRole


class SessionNeed(Enum):
    """What a method needs beside a service token."""

    NONE = "no session"
    PERSON = "a person's session"
    PERSON_PRESENT = "a person's session with the person present"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: the roles that may call, the session they need, and the entries it may have come by."""

    roles: frozenset[ServiceRole]
    session: SessionNeed
    entries: frozenset[Entry] = frozenset(Entry)


_BOTS_AND_GATEWAYS = frozenset({ServiceRole.BOT_RUNTIME, ServiceRole.CHANNEL_GATEWAY})
_GATEWAYS = frozenset({ServiceRole.CHANNEL_GATEWAY})
_CONTROL_PLANES = frozenset({ServiceRole.CONTROL_PLANE})
_INTERACTIVE = frozenset({Entry.WEB, Entry.CHANNEL})

DECISIONS: Mapping[str, Rule] = MappingProxyType(
    {
        # MemoryService
        "Remember": Rule(_BOTS_AND_GATEWAYS, SessionNeed.PERSON_PRESENT, _INTERACTIVE),
        "Recall": Rule(_BOTS_AND_GATEWAYS, SessionNeed.PERSON),
        "GetMemory": Rule(_BOTS_AND_GATEWAYS, SessionNeed.PERSON),
        "ListMemories": Rule(_GATEWAYS, SessionNeed.PERSON_PRESENT, _INTERACTIVE),
        "ForgetMemories": Rule(_GATEWAYS, SessionNeed.PERSON_PRESENT, _INTERACTIVE),
        "GetForget": Rule(_GATEWAYS, SessionNeed.PERSON_PRESENT, _INTERACTIVE),
        # AuthorityService
        "ApplyAuthority": Rule(_CONTROL_PLANES, SessionNeed.NONE),
        "GetAuthority": Rule(_CONTROL_PLANES, SessionNeed.NONE),
    }
)
"""Method name, without package and service, to its rule."""


def needs_session(method: str) -> bool:
    """Whether a call of ``method`` carries a session token beside the service token."""
    rule = DECISIONS.get(method)
    return rule is None or rule.session is not SessionNeed.NONE


def decide(method: str, caller: Principal | Service) -> None:
    """Return if ``caller`` may call ``method``; raise ``PermissionDenied`` if not.

    ``method`` is the bare RPC name, such as ``Recall``. A ``Service`` is a caller without a session.
    """
    denial = _denial(DECISIONS.get(method), caller)
    if denial is not None:
        raise PermissionDenied(denial)


def decide_company(service: Service, company: str) -> None:
    """Return if a control plane may read and write the facts of ``company``.

    Raises ``PermissionDenied`` for any other, whether it exists or not.
    """
    if not service.may_write(company):
        raise PermissionDenied(Denial.COMPANY_NOT_YOURS)


def _denial(rule: Rule | None, caller: Principal | Service) -> Denial | None:
    if rule is None:
        return Denial.METHOD_UNKNOWN
    service = caller.service if isinstance(caller, Principal) else caller
    if service.role not in rule.roles:
        return Denial.ROLE_NOT_ALLOWED
    return None if rule.session is SessionNeed.NONE else _session_denial(rule, caller)


def _session_denial(rule: Rule, caller: Principal | Service) -> Denial | None:
    if not isinstance(caller, Principal):
        return Denial.SESSION_REQUIRED
    if caller.company_admin:
        return Denial.COMPANY_ADMIN_SEES_NO_MEMORY
    if caller.entry not in rule.entries:
        return Denial.ENTRY_NOT_ALLOWED
    if rule.session is SessionNeed.PERSON_PRESENT and not caller.present:
        return Denial.PRESENCE_REQUIRED
    return None
