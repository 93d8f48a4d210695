"""The audit log: who did what to what, and from where, for administrators of a tenant and for operators."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from kit.access.principal import OPERATOR, Principal
from services.gateway.access.audit_store import UNKNOWN_CALLERS, AuditStore
from services.gateway.access.auth import authenticated
from services.gateway.access.keys import Keys
from services.gateway.access.scopes import NEEDS_ADMIN
from services.gateway.errors import ApiKeysOff, AuditLogUnknown
from services.gateway.schemas.documents.search import start_of
from services.gateway.schemas.identity.audit import (
    NDJSON,
    NEWEST_AT_ONCE,
    AfterNumber,
    AuditedTenant,
    BeforeNumber,
    ChainOf,
    Limit,
    Order,
    Since,
)
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/audit", tags=["audit"], dependencies=[NEEDS_ADMIN])


async def _store(request: Request) -> AuditStore:
    keys: Keys | None = request.app.state.api_keys
    if keys is None:
        raise ApiKeysOff(
            "this gateway asks nobody for an API key, so all that happens is the local user's and nothing is noted; start it with "
            "GROUNDWORK_AUTH=api_keys to keep an audit log"
        )
    if keys.audit.store is None:
        raise AuditLogUnknown(
            "the audit log cannot be read yet: the message store does not answer; try again in a few seconds"
        )
    return keys.audit.store


@router.get(
    "",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Entries, one a line.",
            "content": {NDJSON: {"schema": {"$ref": "#/components/schemas/AuditEntry"}}},
        },
        **problems(412),
    },
)
async def read_audit_log(
    store: Annotated[AuditStore, Depends(_store)],
    principal: Annotated[Principal, Depends(authenticated)],
    tenant_id: AuditedTenant = "",
    chain: ChainOf = "tenant",
    after: AfterNumber = 0,
    before: BeforeNumber = 0,
    order: Order = "oldest",
    since: Since = None,
    limit: Limit = 1_000_000,
) -> Response:
    """Who did what to what, and from where: entries as JSON lines, without a gap, oldest first unless you
    ask otherwise. Each holds the hash of the one
    before it, so a change of the log shows: `groundwork audit verify` looks. Ask again with the last `number` as `after` for what
    is new. With scope `admin` your tenant's; `operator`: also another's."""
    if chain == "unknown_callers" or tenant_id not in ("", principal.tenant_id):
        principal.require(OPERATOR)
    name = UNKNOWN_CALLERS if chain == "unknown_callers" else tenant_id or principal.tenant_id
    start = start_of(since) if since else None
    if order == "newest":
        newest = await store.newest(name, before=before, since=start, limit=min(limit, NEWEST_AT_ONCE))
        return Response("".join(f"{line}\n" for line in newest), media_type=NDJSON)
    lines = store.lines(name, after=after, since=start)
    first = await anext(lines, None)  # while an error can still be answered
    return StreamingResponse(_body(first, lines, limit), media_type=NDJSON)


async def _body(first: str | None, lines: AsyncGenerator[str], limit: int) -> AsyncGenerator[str]:
    async with aclosing(lines) as rest:
        if first is None:
            return
        yield first + "\n"
        sent = 1
        async for line in rest:
            if sent == limit:
                return
            yield line + "\n"
            sent += 1
