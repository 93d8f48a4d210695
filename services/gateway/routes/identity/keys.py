"""API keys: made, listed, rotated and revoked, by those who may (services/gateway/access/key_admin.py)."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import SecretStr

from kit.access import api_keys
from services.gateway.access.audit import AuditLog
from services.gateway.access.auth import Admission, admission_of, client_address
from services.gateway.access.key_admin import KeyAdmin, NewKey
from services.gateway.access.keys import Keys
from services.gateway.access.scopes import NEEDS_ADMIN, NEEDS_NO_SCOPE
from services.gateway.errors import ApiKeysOff
from services.gateway.schemas.documents.search import start_of
from services.gateway.schemas.fields import IdempotencyKey, PageSize, PageToken
from services.gateway.schemas.identity.keys import (
    ApiKey,
    ApiKeyChange,
    ApiKeyList,
    KeyPath,
    NewApiKey,
    Rotation,
    ShownApiKey,
    TenantFilter,
)
from services.gateway.schemas.problem import problems
from services.gateway.schemas.times import rfc3339

router = APIRouter(prefix="/v1/keys", tags=["keys"])


class _KeyRequest:
    """What the routes of one request work with. All but `by` raises ApiKeysOff where nobody is asked for a key."""

    def __init__(self, request: Request) -> None:
        self.by: Admission = admission_of(request.scope)
        self._state = request.app.state
        self._address = client_address(request.scope)

    @property
    def admin(self) -> KeyAdmin:
        return KeyAdmin(self._keys)

    @property
    def _keys(self) -> Keys:
        keys: Keys | None = self._state.api_keys
        if keys is None:
            raise ApiKeysOff(
                "this gateway asks nobody for an API key, so there are none; start it with GROUNDWORK_AUTH=api_keys to use them"
            )
        return keys

    def note(self, action: str, key: api_keys.ApiKey) -> None:
        """For the audit log."""
        audit: AuditLog = self._state.audit
        audit.key_changed(action, key, self.by, self._address)

    async def last_uses(self, tenant_id: str, key_id: str = "*") -> dict[str, datetime]:
        return await self._keys.store.last_uses(tenant_id, key_id)

    def described(self, key: api_keys.ApiKey, last_used_at: datetime | None) -> ApiKey:
        return ApiKey(
            id=key.key_id,
            name=key.name,
            tenant_id=key.tenant_id,
            subject=key.subject,
            scopes=list(key.scopes),
            groups=list(key.groups),
            status=key.status(self._keys.now()),
            created_at=key.created_at,
            created_by=key.created_by,
            expires_at=key.expires_at,
            revoked_at=key.revoked_at,
            rotated_at=key.rotated_at,
            old_text_until=key.previous_until,
            last_used_at=last_used_at,
            guard=key.guard or None,
            memory=key.memory or None,
        )

    def shown(self, key: api_keys.ApiKey, text: SecretStr, last_used_at: datetime | None = None) -> ShownApiKey:
        described = self.described(key, last_used_at)
        return ShownApiKey(**described.model_dump(), key=text.get_secret_value())


async def _key_request(request: Request) -> _KeyRequest:
    """A coroutine, for FastAPI would send the class itself to a thread."""
    return _KeyRequest(request)


KeyRequest = Annotated[_KeyRequest, Depends(_key_request)]


@router.post("", status_code=201, dependencies=[NEEDS_ADMIN], responses=problems(409, 412, 413, 415))
async def create_key(
    new: NewApiKey, request: KeyRequest, response: Response, idempotency_key: IdempotencyKey = None
) -> ShownApiKey:
    """Makes a key, for those with scope `admin`, and shows its text this once. With an `Idempotency-Key` that has made one already
    it is 409 with reason `API_KEY_EXISTS` and the key's id in `key_id`: the text is not kept, so rotate that key if it did not
    arrive. 403 with `SCOPE_MISSING` for a scope that you do not have."""
    expires_at = start_of(new.expires_at) if new.expires_at else None
    scopes = tuple(dict.fromkeys(new.scopes))
    wanted = NewKey(
        new.name,
        new.subject,
        scopes,
        new.tenant_id,
        expires_at,
        idempotency_key or "",
        new.guard or "",
        tuple(dict.fromkeys(new.groups)),
        new.memory or "",
    )
    key, text = await request.admin.create(request.by, wanted)
    request.note("key_created", key)
    response.headers["Location"] = f"/v1/keys/{key.key_id}"
    response.headers["Cache-Control"] = "no-store"
    return request.shown(key, text)


@router.get("", dependencies=[NEEDS_NO_SCOPE], responses=problems(412))
async def list_keys(
    request: KeyRequest, tenant_id: TenantFilter = "", page_size: PageSize = 100, page_token: PageToken = ""
) -> ApiKeyList:
    """Your keys; with scope `admin` all of your tenant, with `operator` also of another. Newest first, the revoked ones too."""
    found = [
        key
        for key in request.admin.visible(request.by.principal, tenant_id)
        if not page_token or _place(key) < page_token
    ]
    page = found[:page_size]
    uses = await request.last_uses(tenant_id or request.by.principal.tenant_id) if page else {}
    return ApiKeyList(
        keys=[request.described(key, uses.get(key.key_id)) for key in page],
        next_page_token=_place(page[-1]) if len(found) > page_size else None,
    )


@router.get("/{key_id}", dependencies=[NEEDS_NO_SCOPE], responses=problems(404, 412))
async def get_key(key_id: KeyPath, request: KeyRequest) -> ApiKey:
    """One key. 404 with reason `API_KEY_NOT_FOUND`, also for one that is not yours to see."""
    key = request.admin.find(request.by.principal, key_id)
    uses = await request.last_uses(key.tenant_id, key_id)
    return request.described(key, uses.get(key_id))


@router.patch("/{key_id}", dependencies=[NEEDS_ADMIN], responses=problems(404, 412, 413, 415))
async def change_key(key_id: KeyPath, change: ApiKeyChange, request: KeyRequest) -> ApiKey:
    """Changes how what is remembered is used in what is asked with a key, from its next request on. Needs every scope that the key
    has."""
    memory = "" if change.memory == "unset" else change.memory
    key = await request.admin.change_memory(request.by.principal, key_id, memory)
    request.note("key_changed", key)
    uses = await request.last_uses(key.tenant_id, key_id)
    return request.described(key, uses.get(key_id))


@router.post("/{key_id}/rotate", dependencies=[NEEDS_NO_SCOPE], responses=problems(404, 412, 413, 415))
async def rotate_key(
    key_id: KeyPath, request: KeyRequest, response: Response, rotation: Rotation | None = None
) -> ShownApiKey:
    """Gives a key a new text, and shows it this once. The present one stays good for a while, a day unless you say otherwise.
    Repeated it gives another text, and the one before the present is void at once. Needs every scope that the key has."""
    keep_old_for_s = (rotation or Rotation()).keep_old_for_s
    key, text = await request.admin.rotate(request.by.principal, key_id, keep_old_for_s)
    request.note("key_rotated", key)
    response.headers["Cache-Control"] = "no-store"
    return request.shown(key, text)


@router.delete("/{key_id}", status_code=204, dependencies=[NEEDS_NO_SCOPE], responses=problems(404, 412))
async def revoke_key(key_id: KeyPath, request: KeyRequest) -> None:
    """Revokes a key: nothing is answered to it from now on, and event streams that it opened end. It stays listed. Harmless when
    repeated. Needs every scope that the key has."""
    key = await request.admin.revoke(request.by.principal, key_id)
    request.note("key_revoked", key)


def _place(key: api_keys.ApiKey) -> str:
    """Where a key stands in the list; such texts sort as the list does, from its end."""
    return f"{rfc3339(key.created_at)}/{key.key_id}"
