"""The control plane's facts: from the contract to plain records, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from openbot.memory.v1 import authority_service_pb2 as contract

from memory_api.authority import Applied, Batch, Changes, FactKind, Facts, Feed, Key, Keys, Snapshot, Value
from memory_api.errors import InvalidRequest
from memory_api.presentation import timestamp

_SOURCE_KINDS = {
    contract.Source.KIND_CONNECTOR: "connector",
    contract.Source.KIND_CONVERSATION: "conversation",
}


def content_of(request: contract.ApplyAuthorityRequest) -> Batch | Snapshot:
    """The batch or snapshot of a validated request.

    Raises ``InvalidRequest`` if it states a fact twice, or removes one that it states.
    """
    if request.WhichOneof("content") == "snapshot":
        return Snapshot(
            _facts(request.snapshot.facts, "snapshot.facts"), request.snapshot.revoke_missing_sources
        )
    batch = request.batch
    upserts, removals = _facts(batch.upserts, "batch.upserts"), _keys(batch.removals, "batch.removals")
    for kind in FactKind:
        if not removals[kind].isdisjoint(upserts[kind]):
            raise InvalidRequest((("batch.removals", "names a fact that the batch also states"),))
    return Batch(batch.base_revision, Changes(upserts, removals))


def authority(company: str, feed: Feed) -> contract.Authority:
    """A feed as the contract shows it."""
    applied = timestamp(feed.applied_at) if feed.applied_at else None
    return contract.Authority(company_id=company, revision=feed.revision, apply_time=applied)


def applied(company: str, result: Applied) -> contract.ApplyAuthorityResponse:
    """What became of a batch or snapshot, as the contract shows it."""
    response = contract.ApplyAuthorityResponse(
        outcome=contract.ApplyAuthorityResponse.OUTCOME_UNCHANGED, authority=authority(company, result.feed)
    )
    if result.counts is not None:
        response.outcome = contract.ApplyAuthorityResponse.OUTCOME_APPLIED
        response.upserted_count = result.counts.upserted
        response.removed_count = result.counts.removed
        response.revoked_source_count = result.counts.revoked_sources
    return response


def _facts(facts: contract.Facts, path: str) -> Facts:
    stated: dict[FactKind, tuple[str, list[tuple[Key, Value]]]] = {
        FactKind.MEMBER: ("user_ids", [((user,), ()) for user in facts.user_ids]),
        FactKind.TEAM: ("team_ids", [((team,), ()) for team in facts.team_ids]),
        FactKind.TEAM_MEMBER: ("team_members", [((m.team_id, m.user_id), ()) for m in facts.team_members]),
        FactKind.BOT: ("bots", [((bot.bot_id,), (bot.general_preferences,)) for bot in facts.bots]),
        FactKind.BOT_TEAM: ("bot_teams", [((b.bot_id, b.team_id), ()) for b in facts.bot_teams]),
        FactKind.SOURCE: (
            "sources",
            [((s.source_id,), (s.team_id, _SOURCE_KINDS[s.kind], s.enabled)) for s in facts.sources],
        ),
        FactKind.SOURCE_USER_GRANT: (
            "source_user_grants",
            [((grant.source_id, grant.user_id), ()) for grant in facts.source_user_grants],
        ),
        FactKind.SOURCE_BOT_GRANT: (
            "source_bot_grants",
            [((grant.source_id, grant.bot_id), ()) for grant in facts.source_bot_grants],
        ),
    }
    for field, pairs in stated.values():
        _check_once(f"{path}.{field}", [key for key, _ in pairs])
    return {kind: dict(pairs) for kind, (_, pairs) in stated.items()}


def _keys(keys: contract.FactKeys, path: str) -> Keys:
    named: dict[FactKind, tuple[str, list[Key]]] = {
        FactKind.MEMBER: ("user_ids", [(user,) for user in keys.user_ids]),
        FactKind.TEAM: ("team_ids", [(team,) for team in keys.team_ids]),
        FactKind.TEAM_MEMBER: ("team_members", [(m.team_id, m.user_id) for m in keys.team_members]),
        FactKind.BOT: ("bot_ids", [(bot,) for bot in keys.bot_ids]),
        FactKind.BOT_TEAM: ("bot_teams", [(b.bot_id, b.team_id) for b in keys.bot_teams]),
        FactKind.SOURCE: ("source_ids", [(source,) for source in keys.source_ids]),
        FactKind.SOURCE_USER_GRANT: (
            "source_user_grants",
            [(grant.source_id, grant.user_id) for grant in keys.source_user_grants],
        ),
        FactKind.SOURCE_BOT_GRANT: (
            "source_bot_grants",
            [(grant.source_id, grant.bot_id) for grant in keys.source_bot_grants],
        ),
    }
    for field, listed in named.values():
        _check_once(f"{path}.{field}", listed)
    return {kind: frozenset(listed) for kind, (_, listed) in named.items()}


def _check_once(path: str, keys: Iterable[Key]) -> None:
    if any(count > 1 for count in Counter(keys).values()):
        raise InvalidRequest(((path, "must not name a fact twice"),))
