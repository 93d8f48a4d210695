"""Who may make, see and change which API key.

make                a scope `admin`, for one's own tenant; `operator` for any. Nobody grants a scope that they do not have
change              the same, and every scope that the key has
list, see           one's own subject's keys; `admin`: all of the tenant; `operator`: of any tenant
rotate, revoke      the same, and every scope that the key has: else a new text of a mightier key would be a way to its power.
                    To rotate takes its groups as well, but not of `admin`
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import SecretStr

from kit.access.api_keys import ApiKey, new_key, new_text, stricter_guard
from kit.access.principal import ADMIN, OPERATOR, Principal
from kit.errors import AlreadyExists
from kit.stores.api_key_store import not_found
from services.gateway.access.auth import Admission
from services.gateway.access.keys import Keys
from services.gateway.errors import ScopeMissing, TooManyApiKeys, ValidationFailed

_APPLIED_WITHIN_S = 5.0


class ApiKeyExists(AlreadyExists):
    """A request with this idempotency key has made its key."""

    reason = "API_KEY_EXISTS"


@dataclass(frozen=True)
class NewKey:
    """A key to be made. `tenant_id` empty means that of who makes it, `subject` likewise. A key that is made with a guarded key is
    guarded as strictly, and one that names no mode of memory gets that of the key that it is made with."""

    name: str
    subject: str
    scopes: tuple[str, ...]
    tenant_id: str = ""
    expires_at: datetime | None = None
    idempotency_key: str = ""
    guard: str = ""
    groups: tuple[str, ...] = ()
    memory: str = ""


class KeyAdmin:
    """Changes keys in the name of a caller."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    async def create(self, by: Admission, new: NewKey) -> tuple[ApiKey, SecretStr]:
        """Makes a key. Raises ScopeMissing, TooManyApiKeys, ValidationFailed, ApiKeyExists."""
        tenant_id = new.tenant_id or by.principal.tenant_id
        _require_scope(by.principal, ADMIN, "make API keys")
        if tenant_id != by.principal.tenant_id:
            _require_scope(by.principal, OPERATOR, "make API keys of another tenant")
        for scope in new.scopes:
            _require_scope(by.principal, scope, f"grant the scope {scope}")
        if len(self._keys.ring.of_tenant(tenant_id)) >= self._keys.per_tenant:
            raise TooManyApiKeys(
                f"tenant {tenant_id} has {self._keys.per_tenant} API keys, as many as it may; rotate one instead. "
                "Ended ones count until they are removed (GROUNDWORK_ENDED_API_KEYS_KEPT_DAYS); the operator may raise "
                "GROUNDWORK_API_KEYS_PER_TENANT"
            )
        now = self._keys.now()
        if new.expires_at is not None and new.expires_at <= now:
            raise ValidationFailed("expires_at is over already; give a time to come, or leave it out")
        key, text = new_key(
            name=new.name,
            tenant_id=tenant_id,
            subject=new.subject or by.principal.subject,
            scopes=new.scopes,
            created_at=now,
            created_by=by.principal.subject,
            created_with=by.key.key_id if by.key else "",
            expires_at=new.expires_at,
            key_id=_id_for(by.principal, tenant_id, new.idempotency_key),
            guard=stricter_guard(by.principal.guard, new.guard),
            groups=new.groups,
            memory=new.memory or by.principal.memory,
        )
        try:
            revision = await self._keys.store.create(key)
        except AlreadyExists as error:
            raise ApiKeyExists(
                f"an earlier request with this idempotency key has made API key {key.key_id}; its text was shown once and is not "
                f"kept. If it did not arrive, ask for a new one: POST /v1/keys/{key.key_id}/rotate",
                key_id=key.key_id,
            ) from error
        await self._keys.ring.reached(revision, _APPLIED_WITHIN_S)
        return key, text

    def visible(self, by: Principal, tenant_id: str = "") -> Sequence[ApiKey]:
        """The keys that the caller may see of one tenant, newest first. Of a tenant that is not theirs there is none."""
        self._keys.ring.require_fresh()
        found = [key for key in self._keys.ring.of_tenant(tenant_id or by.tenant_id) if _sees(by, key)]
        return sorted(found, key=_age, reverse=True)

    def find(self, by: Principal, key_id: str) -> ApiKey:
        """Raises ApiKeyNotFound, in the same words for one that is another's."""
        self._keys.ring.require_fresh()
        key = self._keys.ring.find(key_id)
        if key is None or not _sees(by, key):
            raise not_found(key_id)
        return key

    async def revoke(self, by: Principal, key_id: str) -> ApiKey:
        """Takes a key back: it is good for nothing from now on, here at once and elsewhere within milliseconds. Harmless when
        repeated. Raises ApiKeyNotFound, ScopeMissing."""
        return await self._changed(by, key_id, "revoke", lambda key: key.revoked(self._keys.now()))

    async def change_memory(self, by: Principal, key_id: str, memory: str) -> ApiKey:
        """Sets how what is remembered is used in what is asked with the key; "" means as is set around it. Raises ApiKeyNotFound,
        ScopeMissing."""
        _require_scope(by, ADMIN, "change API keys")
        return await self._changed(by, key_id, "change", lambda key: replace(key, memory=memory))

    async def rotate(self, by: Principal, key_id: str, keep_old_for_s: float) -> tuple[ApiKey, SecretStr]:
        """Gives a key a new text. Raises ApiKeyNotFound, ScopeMissing, ValidationFailed."""
        _require_groups(by, self.find(by, key_id))
        text = new_text(key_id)

        def change(key: ApiKey) -> ApiKey:
            now = self._keys.now()
            if (status := key.status(now)) != "active":
                raise ValidationFailed(f"API key {key_id} is {status}, so it gets no new text; make another key")
            return key.rotated(text, now, keep_old_for_s)

        return await self._changed(by, key_id, "rotate", change), text

    async def _changed(self, by: Principal, key_id: str, verb: str, change: Callable[[ApiKey], ApiKey]) -> ApiKey:
        key = self.find(by, key_id)
        for scope in key.scopes:
            _require_scope(by, scope, f"{verb} a key that has the scope {scope}")
        key, revision = await self._keys.store.change(key.tenant_id, key_id, change)
        await self._keys.ring.reached(revision, _APPLIED_WITHIN_S)
        return key


def _sees(by: Principal, key: ApiKey) -> bool:
    if key.tenant_id != by.tenant_id:
        return by.may(OPERATOR)
    return key.subject == by.subject or by.sees_all


def _age(key: ApiKey) -> tuple[int, str]:
    """By milliseconds, as clients see them."""
    return int(key.created_at.timestamp() * 1000), key.key_id


def _require_scope(by: Principal, scope: str, action: str) -> None:
    if not by.may(scope):
        raise ScopeMissing(f"you may not {action}: that needs the scope {scope}; ask an administrator", scope=scope)


def _require_groups(by: Principal, key: ApiKey) -> None:
    others = sorted(set(key.groups) - by.groups)
    if others and not by.sees_all:
        _require_scope(by, ADMIN, f"rotate a key that is in the group {others[0]}, in which you are not")


def _id_for(by: Principal, tenant_id: str, idempotency_key: str) -> str:
    """The id of the key that a request with an idempotency key makes: the same each time. Empty without one."""
    if not idempotency_key:
        return ""
    words = "\0".join((tenant_id, by.tenant_id, by.subject, idempotency_key))
    return hashlib.sha256(words.encode()).hexdigest()[:24]
