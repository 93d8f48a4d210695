"""The issuers whose tokens open the door, as the operator's file lists them (GROUNDWORK_OIDC_ISSUERS_FILE): a JSON array, read
again when it changes."""

import itertools
import ssl
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from kit.access.principal import TENANT_PATTERN, Principal, usable_groups
from kit.errors import FailedPrecondition
from kit.file_source import FileSource
from kit.network.hosts import is_loopback_name

SETTING = "GROUNDWORK_OIDC_ISSUERS_FILE"
Scope = Literal["query", "ingest", "admin", "operator"]
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Those with a public key. A secret that both sides know (HS256) would let anyone who verifies a token make one."""


def _address(value: str) -> str:
    """Raises ValueError unless nobody on the way can answer in the issuer's place."""
    parts = urlsplit(value)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback_name(parts.hostname or "")):
        raise ValueError("it must begin with https://; http is for this machine alone")
    if not parts.hostname or parts.query or parts.fragment:
        raise ValueError("it must be an address without ? and #, as the tokens' claim `iss` has it")
    return value


Address = Annotated[str, AfterValidator(_address)]


class Issuer(BaseModel):
    """An issuer, and who its tokens' callers are here."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: Address
    """Exactly as its tokens say it in `iss`."""
    audiences: tuple[str, ...] = Field(min_length=1)
    """A token must be for one of these: the client id, or the name of this API at the issuer."""
    jwks_uri: Address | None = None
    """Where its keys are. None: where its metadata say (OpenID Connect Discovery 1.0)."""
    ca_file: Path | None = None
    """Certificates that vouch for its address. None: those of the system."""
    algorithms: tuple[Algorithm, ...] = ("RS256", "PS256", "ES256", "EdDSA")
    require: Mapping[str, str] = Field(default_factory=dict)
    """Claims that a token must have with this value or, where the claim is a list, among its values: of an issuer that has other
    people's users too."""
    tenant: Annotated[str, Field(pattern=TENANT_PATTERN)] = "local"
    tenant_claim: str = ""
    """Claim that says the tenant, by `tenants`; then `tenant` is nobody's."""
    tenants: Mapping[str, Annotated[str, Field(pattern=TENANT_PATTERN)]] = Field(default_factory=dict)
    """Tenant by value of `tenant_claim`. A caller with another value is refused."""
    subject_claim: str = "sub"
    subject_prefix: str = Field(default="", pattern=r"^([A-Za-z0-9][A-Za-z0-9._@+:|-]{0,31})?$")
    """In front of the claim, so that two issuers cannot mean different people by one name. In front of groups likewise."""
    group_claims: tuple[str, ...] = ("groups",)
    """Claims with the names that `groups` maps: lists, or texts with spaces between names. `realm_access.roles` is a claim within a
    claim."""
    everyone: tuple[Scope, ...] = ()
    """Scopes of every caller with a good token."""
    groups: Mapping[str, tuple[Scope, ...]] = Field(default_factory=dict)
    """Scopes by name of a group, a role or a scope of the issuer."""
    client_id: str = ""
    """Of the console at the issuer. Empty: people do not log in by their browser there."""
    client_secret_file: Path | None = None
    """File with the client's secret. None: it has none, and is known by its address alone (a public client)."""
    name: str = ""
    """What people are shown: "Sign in with …". Empty: the issuer's host."""
    login_scopes: tuple[str, ...] = ("openid",)
    """Asked for at the login: add what has the issuer put people's groups into its ID tokens."""
    session_hours: float = Field(default=8.0, gt=0, le=24)
    """How long a login lasts."""
    clock_skew_s: float = Field(default=60.0, ge=0, le=600)

    @model_validator(mode="after")
    def _maps_tenants(self) -> "Issuer":
        if bool(self.tenant_claim) != bool(self.tenants):
            raise ValueError("tenant_claim and tenants belong together: set both or neither")
        if not self.everyone and not self.groups:
            raise ValueError('nobody would have a scope: set "everyone": ["query"], or "groups"')
        return self

    def scopes_of(self, names: Iterable[str]) -> frozenset[str]:
        """What somebody with these groups, roles and scopes may do here."""
        found: set[str] = set(self.everyone)
        for name in names:
            found.update(self.groups.get(name, ()))
        return frozenset(found)

    def principal(self, tenant_id: str, subject: str, names: Iterable[str]) -> Principal:
        """Somebody with these groups, roles and scopes at the issuer. Raises Unauthenticated for who cannot be a caller."""
        groups = usable_groups(self.subject_prefix + name for name in names)
        return Principal(tenant_id, subject, self.scopes_of(names), groups=groups)

    @property
    def shown_name(self) -> str:
        """What people are shown."""
        return self.name or urlsplit(self.issuer).hostname or self.issuer

    def client_secret(self) -> str:
        """Of the console, empty where it has none. Raises OSError."""
        return self.client_secret_file.read_text("utf-8").strip() if self.client_secret_file else ""

    def names_in(self, claims: Mapping[str, Any]) -> Sequence[str]:
        """The groups, roles and scopes that a token names."""
        return [name for path in self.group_claims for name in values_at(claims, path)]

    @property
    def own_tenants(self) -> frozenset[str]:
        """Whose users its tokens can name."""
        return frozenset(self.tenants.values()) or frozenset({self.tenant})

    def tls(self) -> ssl.SSLContext:
        """How its address is verified. Raises OSError for a file that cannot be used."""
        return ssl.create_default_context(cafile=str(self.ca_file) if self.ca_file else None)


class Issuers:
    """The issuers of the file as it is now. Raises FailedPrecondition when it cannot be used at the start."""

    def __init__(self, path: Path) -> None:
        try:
            self._source = FileSource([path], lambda: read_issuers(path.read_text("utf-8")), setting=SETTING)
        except (OSError, ValueError) as error:
            raise FailedPrecondition(f"{SETTING}={path} cannot be used: {error}", reason="BAD_ISSUERS") from error

    def all(self) -> Mapping[str, Issuer]:
        """By their `iss`. The same object as long as nothing changed."""
        return self._source.current()


_READER = TypeAdapter(tuple[Issuer, ...])


def read_issuers(text: str) -> Mapping[str, Issuer]:
    """Raises ValueError that says what to change."""
    try:
        issuers = _READER.validate_json(text)
    except ValidationError as error:
        places = [f"{'.'.join(map(str, each['loc'])) or 'the file'}: {each['msg']}" for each in error.errors()]
        raise ValueError("; ".join(places[:5])) from None
    if not issuers:
        raise ValueError(
            'it names no issuer; write [{"issuer": "https://…", "audiences": ["…"], "everyone": ["query"]}]'
        )
    for issuer, count in Counter(each.issuer for each in issuers).items():
        if count > 1:
            raise ValueError(f"{issuer} is listed {count} times")
    _check_subjects(issuers)
    for each in issuers:
        try:
            each.tls()
            each.client_secret()
        except OSError as error:
            raise ValueError(f"a file that {each.issuer} names cannot be used: {error}") from None
    return {each.issuer: each for each in issuers}


def _check_subjects(issuers: Sequence[Issuer]) -> None:
    """Raises ValueError where two issuers could name different people of one tenant alike."""
    for one, other in itertools.combinations(issuers, 2):
        shared = one.own_tenants & other.own_tenants
        prefixes = one.subject_prefix, other.subject_prefix
        if shared and (prefixes[0].startswith(prefixes[1]) or prefixes[1].startswith(prefixes[0])):
            raise ValueError(
                f"{one.issuer} and {other.issuer} both name users of tenant {min(shared)!r}; give each a subject_prefix, of which "
                "neither begins with the other"
            )


def values_at(claims: Mapping[str, Any], path: str) -> Sequence[str]:
    """The texts of a claim, or of one within a claim (`a.b`): a list's, or the words of a text."""
    value: Any = claims.get(path)
    if value is None:
        value = claims
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return value.split()
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
