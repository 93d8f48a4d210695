"""The audit log: who did what to what with which key, from where, and who was refused. An entry for each change of an API key, each
login and logout, each request that changes something, and each refusal; never a key's text. Entries about requests that change
nothing are limited: of callers who show no good key, since anybody can cause them, and of each other caller. Those of guests are
limited also where something was changed.

Each entry is a line of the process's log with the constant event name `audit`, and is stored in a chain of its tenant
(services/gateway/access/audit_store.py). Without keys there is no audit log: all that happens is the one local user's.
"""

import asyncio
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import structlog
from starlette.types import Scope

from kit.access.api_keys import ApiKey
from kit.access.principal import Principal
from kit.observability.telemetry import current_trace_id
from services.gateway.access.audit_recorder import AuditRecorder
from services.gateway.access.audit_store import UNKNOWN_CALLERS
from services.gateway.access.auth import GUEST, Admission, admission_in, client_address, refusal_in
from services.gateway.schemas.times import rfc3339
from services.gateway.serving.rate_limiter import RateLimiter
from services.gateway.serving.requests import SAFE_METHODS, method_of

_log = structlog.get_logger()
_READ_BY_POST = frozenset({"/v1/search"})
_REFUSED = frozenset({401, 403})
_REFUSALS_A_MINUTE = 20
"""Logged of one address, or of one caller with a good key or token."""
_ALL_REFUSALS_A_MINUTE = 600
"""Logged in one chain: who has many addresses or keys must not fill the disk."""
_UNANSWERED = 499
"""The client went away before there was an answer: something may have changed."""
_AREA = re.compile(r"/(?:v1|ws|oidc|scim)/[a-z-]{1,20}(?=/|\Z)")
"""The part of a path that is logged of a request without a caller: the rest may be anything, a key pasted by mistake among it."""


class AuditLog:
    """Notes what happens at one gateway. `now` is the time of day, `clock` counts seconds; without a recorder nothing is stored."""

    def __init__(
        self, clock: Callable[[], float], now: Callable[[], datetime], recorder: AuditRecorder | None = None
    ) -> None:
        self._by_address = RateLimiter(_REFUSALS_A_MINUTE, clock)
        self._by_caller = RateLimiter(_REFUSALS_A_MINUTE, clock)
        self._by_chain = RateLimiter(_ALL_REFUSALS_A_MINUTE, clock)
        self._now = now
        self._recorder = recorder
        self._left_out: dict[str, int] = {}
        """By chain, since its last entry."""

    def request(self, scope: Scope, status: int, made: str = "") -> asyncio.Future[None] | None:
        """Notes a request that is answered with `status`, if it is one to be noted; `made` is the address of what it has made.
        Returns a future that is done once the entry of a change is stored."""
        admission = admission_in(scope)
        if admission is None:
            if reason := refusal_in(scope):
                self._refused_caller(scope, status, reason)
            return None
        if not admission.credential or not (_changes(scope) or status in _REFUSED):
            return None
        chain, is_refused = admission.principal.tenant_id, status in _REFUSED
        # Guests are not known, and may be many: the entries of others must not be pushed out by theirs.
        is_limited = 400 <= status < _UNANSWERED or admission.issuer == GUEST
        if is_limited and self._is_too_many(chain, self._by_caller, _caller(admission)):
            return None
        stored = self._note(
            chain,
            action="refused" if is_refused else "request",
            **_who(admission),
            method=method_of(scope),
            route=_route(scope),
            about=_about(scope, status, made),
            status=status,
            reason=refusal_in(scope) or None,
            address=client_address(scope),
        )
        return None if is_refused else stored

    async def wait_stored(self, stored: asyncio.Future[None]) -> None:
        """Returns once the entry is stored, or soon where it cannot be."""
        if self._recorder is not None:
            await self._recorder.wait_stored(stored)

    def key_changed(self, action: str, key: ApiKey, admission: Admission, address: str) -> None:
        """Notes that a key was created, rotated or revoked, as `action` says: also for the tenant whose key it is."""
        fields = {
            **_who(admission),
            "about_key_id": key.key_id,
            "about_tenant_id": key.tenant_id,
            "about_subject": key.subject,
            "about_scopes": list(key.scopes),
            "about_groups": list(key.groups),
            "address": address,
        }
        tenant_id = admission.principal.tenant_id
        self._note(tenant_id, action=action, **fields)
        if key.tenant_id != tenant_id:
            self._store(key.tenant_id, {"action": action, **fields})

    def user_changed(self, action: str, subject: str, admission: Admission, address: str) -> None:
        """Records that an identity provider has activated, deactivated or deleted a user; `action` says which."""
        tenant_id = admission.principal.tenant_id
        self._note(tenant_id, action=action, **_who(admission), about_subject=subject, address=address)

    def logged_in(self, who: Principal, issuer: str, address: str) -> None:
        """Notes that somebody logged in by their browser."""
        self._login(who, "login", issuer, address)

    def login_reused(self, who: Principal, issuer: str, address: str) -> None:
        """Notes that an old cookie of a login was shown, perhaps by a copy of it, and that the login was ended for that."""
        self._login(who, "login_reused", issuer, address)

    def logged_out(self, who: Principal, issuer: str, address: str) -> None:
        """Notes that somebody ended their login by their browser."""
        self._login(who, "logout", issuer, address)

    def _login(self, who: Principal, action: str, issuer: str, address: str) -> None:
        fields = {"issuer": issuer, "tenant_id": who.tenant_id, "subject": who.subject, "address": address}
        self._note(who.tenant_id, action=action, **fields)

    def _refused_caller(self, scope: Scope, status: int, reason: str) -> None:
        address = client_address(scope)
        if self._is_too_many(UNKNOWN_CALLERS, self._by_address, address):
            return
        area = _AREA.match(scope["path"])
        self._note(
            UNKNOWN_CALLERS,
            action="refused",
            method=method_of(scope),
            route=area[0] if area else "unmatched",
            status=status,
            reason=reason,
            address=address,
        )

    def _is_too_many(self, chain: str, by_name: RateLimiter, name: str) -> bool:
        """Whether an entry is left out; the next one of its chain says so."""
        if not (by_name.take(name) or self._by_chain.take(chain)):
            return False
        self._left_out[chain] = self._left_out.get(chain, 0) + 1
        return True

    def _note(self, chain: str, **fields: Any) -> asyncio.Future[None] | None:
        """Logs an entry, and has it stored in the chain of a tenant."""
        if left_out := self._left_out.pop(chain, 0):
            fields["left_out_before"] = left_out
        _log.info("audit", **fields)
        return self._store(chain, fields)

    def _store(self, chain: str, fields: dict[str, Any]) -> asyncio.Future[None] | None:
        if self._recorder is None:
            return None
        entry = {"at": rfc3339(self._now()), "trace_id": current_trace_id(), **fields}
        return self._recorder.add(chain, {name: value for name, value in entry.items() if value not in (None, "", {})})


def _who(admission: Admission) -> dict[str, str]:
    who, key_id = admission.principal, admission.key.key_id if admission.key else ""
    return {"key_id": key_id, "issuer": admission.issuer, "tenant_id": who.tenant_id, "subject": who.subject}


def _caller(admission: Admission) -> str:
    """A name for whom came in: many may have tokens of one issuer."""
    return f"{admission.credential} {admission.principal.tenant_id} {admission.principal.subject}"


def _about(scope: Scope, status: int, made: str) -> dict[str, str] | None:
    """Ids of what a request was about. None of one that failed: its path may hold anything, a key pasted by mistake among it."""
    if status >= 400:
        return None
    ids = {name: str(value) for name, value in scope.get("path_params", {}).items()}
    return {**ids, **({"made": made} if made else {})} or None


def _changes(scope: Scope) -> bool:
    return method_of(scope) not in SAFE_METHODS and _route(scope) not in _READ_BY_POST


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", "unmatched")
