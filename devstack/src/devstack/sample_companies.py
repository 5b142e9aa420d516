"""The invented companies in which demo and dev play."""

from __future__ import annotations

from devstack.control_plane import Company, Source

#: Lin and Omar work here; Lin's product team has a source that the assistant is granted too.
ACME = Company(
    "acme",
    members=("lin", "omar"),
    bots={"assistant": True, "ticket-bot": False},
    teams={"product": ("lin",)},
    sources={"weekly-sync": Source("product", users=("lin",), bots=("assistant",))},
)

#: Another company, of which a Lin is a member too: for the service a stranger to the first.
GLOBEX = Company("globex", members=("lin",), bots={"assistant": True})
