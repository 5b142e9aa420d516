"""Stating a company's facts where no process serves the control plane: through the operation itself."""

from devstack.control_plane import Company
from memory_api.authority_presentation import content_of
from memory_api.operations.apply_authority import apply_authority
from memory_api.store.authority import AuthorityStore
from openbot.memory.v1 import authority_service_pb2 as contract
from tenant_db import TenantDatabase


async def state_facts(dsn: str, *companies: Company) -> None:
    """Makes these facts, and no others, the companies'. ``dsn`` logs in as a member of authority_writer."""
    async with TenantDatabase(dsn, role="authority_writer", application_name="test") as database:
        store = AuthorityStore(database)
        for each in companies:
            snapshot = contract.Snapshot(facts=each.facts(), revoke_missing_sources=True)
            await apply_authority(
                database,
                store,
                each.company,
                revision=(await store.feed(each.company)).revision + 1,
                content=content_of(contract.ApplyAuthorityRequest(snapshot=snapshot)),
            )
