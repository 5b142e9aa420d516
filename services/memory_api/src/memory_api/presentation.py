"""Records to protobuf and names to ids: the whole translation, both ways."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from google.protobuf.timestamp_pb2 import Timestamp
from openbot.memory.v1 import forget_pb2, memory_pb2, memory_service_pb2

from memory_api import records

_INDEX_STATES = {
    records.IndexState.PENDING: memory_pb2.IndexStatus.STATE_PENDING,
    records.IndexState.INDEXED: memory_pb2.IndexStatus.STATE_INDEXED,
    records.IndexState.FAILED: memory_pb2.IndexStatus.STATE_FAILED,
    records.IndexState.DELETED: memory_pb2.IndexStatus.STATE_DELETED,
}
_FORGET_STATES = {
    records.ForgetState.STOPPED_USE: forget_pb2.Forget.STATE_STOPPED_USE,
    records.ForgetState.CLEARING: forget_pb2.Forget.STATE_CLEARING,
    records.ForgetState.CLEARED: forget_pb2.Forget.STATE_CLEARED,
}
_FORGET_CAUSES = {
    records.ForgetCause.REQUESTED: forget_pb2.Forget.CAUSE_REQUESTED,
    records.ForgetCause.SOURCE_REVOKED: forget_pb2.Forget.CAUSE_SOURCE_REVOKED,
}
_DOMAINS = {
    "authority_active": forget_pb2.Clearance.DOMAIN_AUTHORITY_ACTIVE,
    "index_active": forget_pb2.Clearance.DOMAIN_INDEX_ACTIVE,
    "index_operations": forget_pb2.Clearance.DOMAIN_INDEX_OPERATIONS,
    "backups": forget_pb2.Clearance.DOMAIN_BACKUPS,
}
_SERVED_BY = {
    records.ServedBy.INDEX: memory_service_pb2.RecallResponse.SERVED_BY_INDEX,
    records.ServedBy.LEXICAL: memory_service_pb2.RecallResponse.SERVED_BY_LEXICAL,
    records.ServedBy.MIXED: memory_service_pb2.RecallResponse.SERVED_BY_MIXED,
}


def id_of(name: str) -> UUID:
    """The id in a validated resource name such as ``memories/{uuid}``."""
    return UUID(name.partition("/")[2])


def source_of(name: str) -> str | None:
    """The source id in a validated ``sources/{source}``; None for the empty name."""
    return name.partition("/")[2] or None


def memory(record: records.Memory) -> memory_pb2.Memory:
    """A memory as the contract shows it."""
    return memory_pb2.Memory(
        name=f"memories/{record.memory_id}",
        text=record.text or "",
        scope=_scope(record),
        state=memory_pb2.Memory.STATE_FORGOTTEN if record.text is None else memory_pb2.Memory.STATE_ACTIVE,
        record_time=timestamp(record.recorded_at),
        index_status=memory_pb2.IndexStatus(
            state=_INDEX_STATES[record.index_state],
            state_time=timestamp(record.index_state_at),
            failure_reason=record.index_failure_reason or "",
        ),
        etag=record.etag,
    )


def _scope(record: records.Memory) -> memory_pb2.Scope:
    if record.only_bot is not None:
        return memory_pb2.Scope(bot=memory_pb2.Scope.Bot(bot_id=record.only_bot))
    if record.source is not None:
        source = memory_pb2.Scope.TeamSource(team=record.team or "", source=f"sources/{record.source}")
        return memory_pb2.Scope(team_source=source)
    return memory_pb2.Scope(general=memory_pb2.Scope.General())


def recall_response(recalled: records.Recalled) -> memory_service_pb2.RecallResponse:
    """An answer as the contract shows it."""
    return memory_service_pb2.RecallResponse(
        items=[memory_service_pb2.RecallResponse.Item(memory=memory(each)) for each in recalled.memories],
        served_by=_SERVED_BY[recalled.served_by],
        degraded_reason=recalled.degraded_reason or "",
    )


def forget(record: records.Forget) -> forget_pb2.Forget:
    """A forget as the contract shows it."""
    return forget_pb2.Forget(
        name=f"forgets/{record.forget_id}",
        state=_FORGET_STATES[record.state],
        cause=_FORGET_CAUSES[record.cause],
        stop_use_time=timestamp(record.stopped_use_at),
        clear_time=timestamp(record.cleared_at) if record.cleared_at else None,
        memory_count=record.memory_count,
        clearances=[
            forget_pb2.Clearance(
                domain=_DOMAINS[each.domain],
                cleared_count=each.cleared_count,
                probe_time=timestamp(each.probed_at) if each.probed_at else None,
                pending_reason=each.pending_reason or "",
            )
            for each in record.clearances
        ],
    )


def timestamp(moment: datetime) -> Timestamp:
    """An aware instant as the contract shows it."""
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp
