"""AuthorityService: from a validated request to an operation, and back. Decides nothing."""

from __future__ import annotations

from typing import Any

import grpc
from authz import decide_company
from openbot.memory.v1 import authority_service_pb2 as contract
from openbot.memory.v1 import authority_service_pb2_grpc
from tenant_db import TenantDatabase

from memory_api import authority_presentation as presentation
from memory_api.interceptors.identity import current_service
from memory_api.operations.apply_authority import apply_authority
from memory_api.operations.get_authority import get_authority
from memory_api.store.authority import AuthorityStore

Context = grpc.aio.ServicerContext[Any, Any]


class AuthorityServicer(authority_service_pb2_grpc.AuthorityServiceServicer):
    """The RPCs of ``openbot.memory.v1.AuthorityService``. ``database`` is of the role authority_writer."""

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database
        self._store = AuthorityStore(database)

    async def ApplyAuthority(  # noqa: N802 - the contract's name
        self, request: contract.ApplyAuthorityRequest, context: Context
    ) -> contract.ApplyAuthorityResponse:
        decide_company(current_service(), request.company_id)
        result = await apply_authority(
            self._database,
            self._store,
            request.company_id,
            revision=request.revision,
            content=presentation.content_of(request),
            validate_only=request.validate_only,
        )
        return presentation.applied(request.company_id, result)

    async def GetAuthority(  # noqa: N802
        self, request: contract.GetAuthorityRequest, context: Context
    ) -> contract.Authority:
        decide_company(current_service(), request.company_id)
        return presentation.authority(
            request.company_id, await get_authority(self._store, request.company_id)
        )
