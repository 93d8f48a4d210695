"""Who is asking, and what they may do: for clients that offer only that."""

from typing import Annotated

from fastapi import APIRouter, Depends

from kit.access.principal import SCOPES, Principal
from services.gateway.access.auth import authenticated
from services.gateway.access.scopes import NEEDS_NO_SCOPE
from services.gateway.schemas.identity.keys import Caller
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/me", tags=["keys"], dependencies=[NEEDS_NO_SCOPE])


@router.get("", responses=problems())
async def get_me(principal: Annotated[Principal, Depends(authenticated)]) -> Caller:
    """The caller, and all scopes that theirs include."""
    return Caller(
        tenant=principal.tenant_id,
        subject=principal.subject,
        scopes=[scope for scope in SCOPES if principal.may(scope)],
        groups=sorted(principal.groups),
    )
