"""The one table of which RPC is open to which service role in which session.

A row per RPC. What is not in the table is denied. The table only says who may knock: what the person and
the bot may see is decided again by the statement that reads the text (I3). Administrators' sessions reach
no memory (I13), and the entry changes nothing (I14); a scheduled session differs by nobody being present.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from authz.errors import Denial, PermissionDenied
from authz.principal import Principal, Service, ServiceRole


class SessionNeed(Enum):
    """What a method needs beside a service token."""

    NONE = "no session"
    PERSON = "a person's session"
    PERSON_PRESENT = "a person's session with the person present"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: the roles that may call, and the session they need."""

    roles: frozenset[ServiceRole]
    session: SessionNeed


_BOTS_AND_GATEWAYS = frozenset({ServiceRole.BOT_RUNTIME, ServiceRole.CHANNEL_GATEWAY})

DECISIONS: Mapping[str, Rule] = MappingProxyType(
    {
        # MemoryService
        "Remember": Rule(_BOTS_AND_GATEWAYS, SessionNeed.PERSON_PRESENT),
        "Recall": Rule(_BOTS_AND_GATEWAYS, SessionNeed.PERSON),
        "GetMemory": Rule(_BOTS_AND_GATEWAYS, SessionNeed.PERSON),
        "ListMemories": Rule(_BOTS_AND_GATEWAYS, SessionNeed.PERSON_PRESENT),
        "ForgetMemories": Rule(_BOTS_AND_GATEWAYS, SessionNeed.PERSON_PRESENT),
        "GetForget": Rule(_BOTS_AND_GATEWAYS, SessionNeed.PERSON_PRESENT),
    }
)
"""Method name, without package and service, to its rule."""


def decide(method: str, caller: Principal | Service) -> None:
    """Return if ``caller`` may call ``method``; raise ``PermissionDenied`` if not.

    ``method`` is the bare RPC name, such as ``Recall``. A ``Service`` is a caller without a session.
    """
    denial = _denial(DECISIONS.get(method), caller)
    if denial is not None:
        raise PermissionDenied(denial)


def _denial(rule: Rule | None, caller: Principal | Service) -> Denial | None:
    if rule is None:
        return Denial.METHOD_UNKNOWN
    service = caller.service if isinstance(caller, Principal) else caller
    if service.role not in rule.roles:
        return Denial.ROLE_NOT_ALLOWED
    return None if rule.session is SessionNeed.NONE else _session_denial(rule.session, caller)


def _session_denial(need: SessionNeed, caller: Principal | Service) -> Denial | None:
    if not isinstance(caller, Principal):
        return Denial.SESSION_REQUIRED
    if caller.company_admin:
        return Denial.COMPANY_ADMIN_SEES_NO_MEMORY
    if need is SessionNeed.PERSON_PRESENT and not caller.present:
        return Denial.PRESENCE_REQUIRED
    return None
