"""Who is asking. The gateway verifies a caller once; from then on each service names them in a short-lived token that it signs
itself (kit.access.tokens), and verifies that of its caller and trusts nothing else. The principal of the request in hand travels in
a context variable, so that outgoing calls name it by themselves."""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import accumulate

from kit.errors import PermissionDenied, Unauthenticated

TENANT_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"
"""A tenant becomes part of NATS subjects and of index filters: no dot, no wildcard, no space."""

SUBJECT_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@+:|-]{0,127}$"
"""A user may be an e-mail address or the `sub` of an identity provider (`auth0|62…`); wildcards, spaces, slashes and control
characters are in neither."""

GROUP_PATTERN = r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,126}[^\s\x00-\x1f\x7f])?$"
"""A group is named as its identity provider writes it (`/staff`, `Sales EMEA`, a GUID): 1 to 128 characters, none of them a control
character, no space at either end."""
MAX_GROUPS = 500
"""Of one caller. A token that names them must fit into the metadata of a call."""
MAX_GROUPS_BYTES = 128 * 1024
"""Of the names of one caller's groups together, as a token writes them: a character that is not ASCII takes 6 or 12 bytes. It is
171 KiB in base64."""

_GROUP = re.compile(GROUP_PATTERN[1:-1])
_TENANT, _SUBJECT = re.compile(TENANT_PATTERN[1:-1]), re.compile(SUBJECT_PATTERN[1:-1])

_GUEST = re.compile(r"guest-[0-9a-f]{24}")

_current: ContextVar["Principal | None"] = ContextVar("principal", default=None)


@dataclass(frozen=True)
class ReceivedToken:
    """The token that a principal was verified by: a service without a signing key passes it on while it lives."""

    token: str
    expires_at: float
    """Seconds since the epoch."""


@dataclass(frozen=True)
class Principal:
    """A verified caller. All data belongs to a tenant; a subject is one user or key within it.

    Raises Unauthenticated when tenant or subject has a character outside its alphabet: a tenant called `*` would be everybody.
    Since there is no such principal, it can be neither signed nor accepted.
    """

    tenant_id: str
    subject: str
    scopes: frozenset[str] = frozenset()
    received: ReceivedToken | None = field(default=None, compare=False, repr=False)
    guard: str = field(default="", compare=False)
    """Least of what becomes of unsafe questions, by the caller's API key: `flag`, `block`, or empty. The gateway alone knows it."""
    memory: str = field(default="", compare=False)
    """Mode of memory of what the caller asks, by the caller's API key; empty where it says none. The gateway alone knows it."""
    groups: frozenset[str] = frozenset()
    """Names of the groups that the subject is in, by the issuer that vouched for the subject."""
    key_id: str = ""
    """Id of the API key that the caller came in by, under which their use is counted; empty where there is none."""

    def __post_init__(self) -> None:
        for name, value, alphabet in (("tenant", self.tenant_id, _TENANT), ("subject", self.subject, _SUBJECT)):
            if not alphabet.fullmatch(value):
                raise Unauthenticated(
                    f"{value!r} cannot be the {name} of a caller; it must match ^{alphabet.pattern}$",
                    reason="BAD_PRINCIPAL",
                )

    def may(self, scope: str) -> bool:
        """Whether one of the caller's scopes is `scope` or includes it."""
        return grant(self.scopes, scope)

    def require(self, scope: str) -> None:
        """Raises PermissionDenied when the caller lacks the scope."""
        if not self.may(scope):
            raise PermissionDenied(
                f"this needs the scope {scope!r}, which {self.subject} does not have; use an API key that has it, or ask an "
                "administrator for one",
                reason="SCOPE_MISSING",
                scope=scope,
            )

    @property
    def sees_all(self) -> bool:
        """Whether what belongs to other subjects of the tenant is the caller's to see and to change."""
        return self.may(ADMIN)


def is_guest(subject: str) -> bool:
    """Whether a subject is that of a guest, who has no account (ADR 28)."""
    return _GUEST.fullmatch(subject) is not None


def usable_groups(names: Iterable[str]) -> frozenset[str]:
    """The names that can be groups, the first by name: at most MAX_GROUPS, and MAX_GROUPS_BYTES together. What is left out grants
    nothing."""
    usable = sorted({name for name in names if _GROUP.fullmatch(name)})[:MAX_GROUPS]
    sizes = accumulate(len(json.dumps(name)) + 1 for name in usable)
    return frozenset(name for name, size in zip(usable, sizes, strict=True) if size <= MAX_GROUPS_BYTES)


QUERY = "query"
"""Scope: search, ask, chat, and see what is one's own."""
INGEST = "ingest"
"""Scope: upload, replace and delete documents and collections."""
ADMIN = "admin"
"""Scope: see and change what belongs to other subjects of the tenant, and its API keys."""
OPERATOR = "operator"
"""Scope: change what concerns all tenants. Includes the others."""

SCOPES = (QUERY, INGEST, ADMIN, OPERATOR)
_INCLUDED: dict[str, frozenset[str]] = {
    ADMIN: frozenset({QUERY, INGEST, ADMIN}),
    OPERATOR: frozenset(SCOPES),
}
"""What a scope grants besides itself."""


def grant(held: Collection[str], scope: str) -> bool:
    """Whether one of the scopes `held` is `scope` or includes it."""
    return any(scope == each or scope in _INCLUDED.get(each, ()) for each in held)


def current_principal() -> Principal:
    """The principal of the request in hand. Raises Unauthenticated outside of one."""
    principal = _current.get()
    if principal is None:
        raise Unauthenticated("this call carries no principal; call through the gateway", reason="NO_PRINCIPAL")
    return principal


@contextmanager
def use_principal(principal: Principal) -> Iterator[None]:
    """Acts as `principal` within the block: for queue consumers and background work."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)


def set_principal(principal: Principal) -> None:
    """Acts as `principal` for the rest of the current task: for the server interceptor, whose task is the request."""
    _current.set(principal)
