"""What every service is told from outside. Each service subclasses ServiceSettings once, in its settings.py: the only place
that reads the environment."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr, StringConstraints, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from kit.keys import KeySource, PublicKey, SigningKey, parse_public_keys, parse_signing_key
from kit.principal import OPERATOR, SUBJECT_PATTERN, TENANT_PATTERN, Principal

Identifier = Annotated[str, StringConstraints(pattern=TENANT_PATTERN)]
"""A tenant or collection id: it becomes part of NATS subjects and of index filters, so its alphabet is small."""

Subject = Annotated[str, StringConstraints(pattern=SUBJECT_PATTERN)]
"""A user or key within a tenant."""


def _split(text: str) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in text.split(",") if name.strip())


def _names(value: object) -> object:
    return _split(value) if isinstance(value, str) else value


HostNames = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]
"""Host names, written with commas between them."""


def _networks(value: object) -> object:
    return tuple(_network(name) for name in _split(value)) if isinstance(value, str) else value


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"{error}; write addresses and networks as 10.0.0.1 or 10.0.0.0/8") from error


Networks = Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode, BeforeValidator(_networks)]
"""Addresses and networks ("10.0.0.0/8"), written with commas between them."""


def _paths(value: object) -> object:
    return tuple(Path(name.strip()) for name in value.split(",") if name.strip()) if isinstance(value, str) else value


Folders = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_paths)]
"""Paths of folders, written with commas between them."""


class ServiceSettings(BaseSettings):
    """Settings common to all services, read from GROUNDWORK_* variables. Unknown variables are another service's."""

    model_config = SettingsConfigDict(
        env_prefix="GROUNDWORK_", frozen=True, extra="ignore", use_attribute_docstrings=True, validate_default=True
    )

    grpc_address: str = "127.0.0.1:0"
    """Where the gRPC server listens. Port 0 takes a free one. Loopback by default: nothing is exposed by accident."""

    ops_host: str = "127.0.0.1"
    """Where /metrics, /livez and /readyz listen."""

    ops_port: int = Field(default=0, ge=0, le=65535)
    """Port of /metrics, /livez and /readyz. 0 takes a free one."""

    ops_allowed_hosts: HostNames = ()
    """Host names, comma-separated, under which /metrics, /livez and /readyz may be asked for besides addresses and `localhost`. A
    name that is not listed is refused, because a hostile page can point its own name at this machine (DNS rebinding)."""

    auth_public_keys: str = ""
    """Public keys that verify principal tokens: a JSON Web Key Set whose entries say which calls a key signs for. A value stays
    until the restart: name a file instead, and keys can change without one."""

    auth_public_keys_file: Path | None = None
    """File with those public keys; read again when it changes. The same for all services; one of the two must be set."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Least severe level that is logged. DEBUG may show document and query text."""

    drain_delay_s: float = Field(default=0.0, ge=0)
    """Seconds between NOT_SERVING and closing the door, for load balancers to notice. Set it to 5 in a cluster."""

    drain_grace_s: float = Field(default=10.0, ge=0)
    """Seconds that requests in flight have to end after the door is closed."""

    otlp_endpoint: str | None = None
    """OTLP/gRPC collector for traces, for example http://otel-collector:4317. Without it traces stay in the process."""

    @field_validator("auth_public_keys_file")
    @classmethod
    def _has_public_keys(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        return _one_of(value, info.data.get("auth_public_keys"))

    def public_keys(self) -> KeySource[Mapping[str, PublicKey]]:
        """The public keys. Raises FailedPrecondition when they cannot be read."""
        value, path = self.auth_public_keys, self.auth_public_keys_file
        return KeySource(parse_public_keys, value=value, path=path, setting="GROUNDWORK_AUTH_PUBLIC_KEYS")

    def signing_key(self) -> KeySource[SigningKey] | None:
        """None: a service that only answers has no key, and passes on the tokens that it receives."""
        return None


class SigningServiceSettings(ServiceSettings):
    """Settings of a service that acts in the name of callers, or on its own, and so signs tokens."""

    auth_signing_key: SecretStr | None = None
    """Private key of this service's tokens: a JSON Web Key (Ed25519) with an id. No two services have the same."""

    auth_signing_key_file: Path | None = None
    """File with that private key; read again when it changes. One of the two must be set."""

    @field_validator("auth_signing_key_file")
    @classmethod
    def _has_signing_key(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        return _one_of(value, info.data.get("auth_signing_key"))

    def signing_key(self) -> KeySource[SigningKey]:
        """The private key. Raises FailedPrecondition when it cannot be read."""
        value = self.auth_signing_key.get_secret_value() if self.auth_signing_key else None
        path = self.auth_signing_key_file
        return KeySource(parse_signing_key, value=value, path=path, setting="GROUNDWORK_AUTH_SIGNING_KEY")


class MessageStoreSettings(ServiceSettings):
    """Settings of a service that keeps its state in NATS JetStream."""

    nats_url: str = "nats://127.0.0.1:4222"
    """NATS servers with JetStream, several by comma, with credentials in the URL where they ask for them."""

    nats_replicas: int = Field(default=1, ge=1, le=5)
    """On how many servers of the NATS cluster each stream, bucket and object store is kept: 1 or 3 (5 for two losses at once). What
    exists with fewer is given more; nothing is ever taken away here. The same for all services."""


class LocalUserSettings(ServiceSettings):
    """Settings of a service that has to know the user of an installation without keys, who later has the bootstrap key."""

    local_tenant_id: Identifier = "local"
    """Tenant of every request while no keys are configured. The same for all services."""

    local_subject: Subject = "local-user"
    """User of every request while no keys are configured; whose collections have plain ids (`default`) while those of other users
    carry a mark (`default-1a2b3c4d`). The same for all services."""

    def local_principal(self) -> Principal:
        """That user, who may do everything."""
        return Principal(self.local_tenant_id, self.local_subject, frozenset({OPERATOR}))


def _one_of(path: Path | None, value: object) -> Path | None:
    if path is None and not value:
        raise PydanticCustomError("missing", "neither the value nor the file is set")
    if path is not None and value:
        raise ValueError("the key itself is set as well; set one of the two")
    return path
