"""OpenBot's control plane, as far as development needs it: it states companies by ApplyAuthority."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import grpc
from openbot.memory.v1 import authority_service_pb2 as contract
from openbot.memory.v1 import authority_service_pb2_grpc

from devstack.issuer import CONTROL_PLANE, DevelopmentIssuer


@dataclass(frozen=True, slots=True)
class Source:
    """A team's source and who is granted it."""

    team: str
    users: Collection[str] = ()
    bots: Collection[str] = ()
    enabled: bool = True
    conversation: bool = False


@dataclass(frozen=True, slots=True)
class Company:
    """One company's facts. ``bots`` maps a bot to whether it may see general preferences; ``teams``
    maps a team to its members; ``bot_teams`` maps a bot to the teams whose sources it may use. A bot that
    is not in it may use those of every team that has a source granted to it."""

    company: str
    members: Collection[str]
    bots: Mapping[str, bool]
    teams: Mapping[str, Collection[str]] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    bot_teams: Mapping[str, Collection[str]] = field(default_factory=dict)

    def facts(self) -> contract.Facts:
        """The same as the contract has it."""
        return contract.Facts(
            user_ids=self.members,
            team_ids=self.teams,
            team_members=[
                contract.TeamMember(team_id=team, user_id=user)
                for team, users in self.teams.items()
                for user in users
            ],
            bots=[
                contract.Bot(bot_id=bot, general_preferences=general) for bot, general in self.bots.items()
            ],
            bot_teams=[
                contract.BotTeam(bot_id=bot, team_id=team)
                for bot in self.bots
                for team in self._teams_of(bot)
            ],
            sources=[
                contract.Source(
                    source_id=source,
                    team_id=held.team,
                    kind=contract.Source.KIND_CONVERSATION
                    if held.conversation
                    else contract.Source.KIND_CONNECTOR,
                    enabled=held.enabled,
                )
                for source, held in self.sources.items()
            ],
            source_user_grants=[
                contract.SourceUserGrant(source_id=source, user_id=user)
                for source, held in self.sources.items()
                for user in held.users
            ],
            source_bot_grants=[
                contract.SourceBotGrant(source_id=source, bot_id=bot)
                for source, held in self.sources.items()
                for bot in held.bots
            ],
        )

    def _teams_of(self, bot: str) -> Collection[str]:
        granted = sorted({held.team for held in self.sources.values() if bot in held.bots})
        return self.bot_teams.get(bot, granted)


class ControlPlane:
    """States facts over a real socket. Use as a context manager."""

    def __init__(self, address: str, issuer: DevelopmentIssuer, *, workload: str = CONTROL_PLANE) -> None:
        self._issuer = issuer
        self._workload = workload
        self._channel = grpc.insecure_channel(address)
        self._stub = authority_service_pb2_grpc.AuthorityServiceStub(self._channel)

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def revision(self, company: str) -> int:
        """The company's current revision."""
        request = contract.GetAuthorityRequest(company_id=company)
        return int(self._stub.GetAuthority(request, metadata=self._metadata(), timeout=10).revision)

    def state(self, *companies: Company) -> None:
        """Makes these facts, and no others, the companies'. Sources that are missing are revoked."""
        for each in companies:
            snapshot = contract.Snapshot(facts=each.facts(), revoke_missing_sources=True)
            self._apply(
                contract.ApplyAuthorityRequest(
                    company_id=each.company, revision=self.revision(each.company) + 1, snapshot=snapshot
                )
            )

    def change(
        self,
        company: str,
        *,
        upserts: contract.Facts | None = None,
        removals: contract.FactKeys | None = None,
    ) -> contract.ApplyAuthorityResponse:
        """Changes some facts of a company."""
        current = self.revision(company)
        batch = contract.Batch(base_revision=current, upserts=upserts, removals=removals)
        return self._apply(
            contract.ApplyAuthorityRequest(company_id=company, revision=current + 1, batch=batch)
        )

    def _apply(self, request: contract.ApplyAuthorityRequest) -> contract.ApplyAuthorityResponse:
        return self._stub.ApplyAuthority(request, metadata=self._metadata(), timeout=10)

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._issuer.service_token(self._workload)}"),)
