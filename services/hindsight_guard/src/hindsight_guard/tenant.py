"""Second line, inside Hindsight: who is calling at all."""

from __future__ import annotations

from hindsight_api.extensions import AuthenticationError, Tenant, TenantContext, TenantExtension
from hindsight_api.models import RequestContext

from hindsight_guard.operations import CONFIGURABLE
from hindsight_guard.settings import verifier_from_environment
from hindsight_guard.tokens import TokenInvalid

_SCHEMA = "public"


class GuardTenantExtension(TenantExtension):
    """Accepts our one-bank tokens and nothing else. One schema: isolation is by bank."""

    def __init__(self, config: dict[str, str]) -> None:
        super().__init__(config)
        self._verifier = verifier_from_environment()

    async def authenticate(self, context: RequestContext) -> TenantContext:
        """Raises ``AuthenticationError`` unless the bearer is one of our tokens."""
        try:
            self._verifier.verify(context.api_key)
        except TokenInvalid:
            raise AuthenticationError("the token is not valid") from None
        return TenantContext(schema_name=_SCHEMA)

    async def authenticate_mcp(self, context: RequestContext) -> TenantContext:
        """MCP is closed."""
        raise AuthenticationError("closed")

    async def list_tenants(self) -> list[Tenant]:
        """The one schema, for Hindsight's own workers."""
        return [Tenant(schema=_SCHEMA)]

    async def get_allowed_config_fields(self, context: RequestContext, bank_id: str) -> set[str] | None:
        """The settings that our services use."""
        return set(CONFIGURABLE)
