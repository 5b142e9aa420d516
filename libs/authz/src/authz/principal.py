"""Who is calling, after both tokens were verified."""

from dataclasses import dataclass, field
from enum import StrEnum


class ServiceRole(StrEnum):
    """What a workload is to the memory service; configured for each, never claimed by a token."""

    BOT_RUNTIME = "bot-runtime"
    CHANNEL_GATEWAY = "channel-gateway"
    CONTROL_PLANE = "control-plane"
    OPERATOR = "operator"


class Entry(StrEnum):
    """The way a session came in. It changes no decision (I14); it is kept for evidence."""

    WEB = "web"
    CHANNEL = "channel"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class Service:
    """A verified workload: a SPIFFE ID, or a Kubernetes service account.

    ``companies`` are those that a control plane may write: names, or beginnings of names before a ``*``.
    """

    workload_id: str
    role: ServiceRole
    companies: tuple[str, ...] = ()

    def may_write(self, company: str) -> bool:
        """Whether the facts of ``company`` are this control plane's."""
        return self.role is ServiceRole.CONTROL_PLANE and any(
            company.startswith(entry[:-1]) if entry.endswith("*") else company == entry
            for entry in self.companies
        )


@dataclass(frozen=True, slots=True)
class Principal:
    """A verified workload acting in a verified session.

    ``present`` says that a person is interacting now. ``sources`` are the team sources the session may
    use, at most 64; the authority tables decide what is left of them (I3). All names are plain ASCII
    identifiers, so the representation is safe to log; it leaves the sources out for brevity.
    """

    service: Service
    company: str
    user: str
    bot: str
    entry: Entry
    present: bool
    sources: frozenset[str] = field(default=frozenset(), repr=False)
    company_admin: bool = False
