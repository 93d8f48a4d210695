"""The audit log: who did what with which key, and who was refused. One line with the constant event name `audit` for each change of
an API key, each request that changes something, and each refusal; never a key's text. Lines about callers who show no good key are
limited, since anybody can cause them.

Without keys there is no audit log: all that happens is the one local user's.
"""

import re
from collections.abc import Callable

import structlog
from starlette.types import Scope

from kit.access.api_keys import ApiKey
from kit.access.principal import Principal
from services.gateway.access.auth import Admission, admission_in, client_address, refusal_in
from services.gateway.serving.rate_limiter import RateLimiter
from services.gateway.serving.requests import SAFE_METHODS, method_of

_log = structlog.get_logger()
_READ_BY_POST = frozenset({"/v1/search"})
_REFUSED = frozenset({401, 403})
_REFUSALS_A_MINUTE = 20
"""Logged of one address."""
_ALL_REFUSALS_A_MINUTE = 600
"""Logged in all: who has many addresses must not fill the disk."""
_AREA = re.compile(r"/(?:v1|ws)/[a-z-]{1,20}(?=/|\Z)")
"""The part of a path that is logged of a request without a caller: the rest may be anything, a key pasted by mistake among it."""


class AuditLog:
    """Writes the lines of one gateway."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._by_address = RateLimiter(_REFUSALS_A_MINUTE, clock)
        self._all = RateLimiter(_ALL_REFUSALS_A_MINUTE, clock)
        self._left_out = 0

    def request(self, scope: Scope, status: int) -> None:
        """A request that was answered with `status`, if it is one to be noted."""
        admission = admission_in(scope)
        if admission is None:
            if reason := refusal_in(scope):
                self._refused_caller(scope, status, reason)
        elif admission.credential and (_changes(scope) or status in _REFUSED):
            _log.info(
                "audit",
                action="refused" if status in _REFUSED else "request",
                **_who(admission),
                method=method_of(scope),
                route=_route(scope),
                status=status,
                reason=refusal_in(scope) or None,
                address=client_address(scope),
            )

    def key_changed(self, action: str, key: ApiKey, admission: Admission, address: str) -> None:
        """A key was created, rotated or revoked: `action` says which."""
        _log.info(
            "audit",
            action=action,
            **_who(admission),
            about_key_id=key.key_id,
            about_tenant_id=key.tenant_id,
            about_subject=key.subject,
            about_scopes=list(key.scopes),
            about_groups=list(key.groups),
            address=address,
        )

    def logged_in(self, who: Principal, issuer: str, address: str) -> None:
        """Somebody logged in by their browser."""
        _log.info("audit", action="login", issuer=issuer, tenant_id=who.tenant_id, subject=who.subject, address=address)

    def _refused_caller(self, scope: Scope, status: int, reason: str) -> None:
        address = client_address(scope)
        if self._by_address.take(address) or self._all.take(""):
            self._left_out += 1
            return
        left_out, self._left_out = self._left_out, 0
        area = _AREA.match(scope["path"])
        _log.info(
            "audit",
            action="refused",
            method=method_of(scope),
            route=area[0] if area else "unmatched",
            status=status,
            reason=reason,
            address=address,
            left_out_before=left_out,
        )


def _who(admission: Admission) -> dict[str, str]:
    who, key_id = admission.principal, admission.key.key_id if admission.key else ""
    return {"key_id": key_id, "issuer": admission.issuer, "tenant_id": who.tenant_id, "subject": who.subject}


def _changes(scope: Scope) -> bool:
    return method_of(scope) not in SAFE_METHODS and _route(scope) not in _READ_BY_POST


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", "unmatched")
