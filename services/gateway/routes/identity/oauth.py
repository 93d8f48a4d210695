"""Where MCP clients learn how to get in: OAuth 2.0 Protected Resource Metadata (RFC 9728)."""

from fastapi import APIRouter, Request

from kit.access.principal import SCOPES
from services.gateway.access.keys import Keys
from services.gateway.backends import Services
from services.gateway.models import Json
from services.gateway.serving.requests import base_url

router = APIRouter(prefix="/.well-known/oauth-protected-resource", include_in_schema=False)


@router.get("")
@router.get("/mcp")
async def protected_resource(request: Request, services: Services) -> Json:
    """The resource, how a token is sent, and who gives one."""
    settings = services.settings
    keys: Keys | None = request.app.state.api_keys
    issuers = keys.issuers.issuers if keys and keys.issuers else []
    return {
        "resource": f"{base_url(request.scope, settings.public_url)}/mcp",
        "resource_name": "Groundwork",
        "authorization_servers": list(settings.mcp_authorization_servers) or issuers,
        "bearer_methods_supported": ["header"],
        "scopes_supported": sorted(SCOPES),
    }
