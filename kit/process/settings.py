"""The settings that every service has. Each service subclasses ServiceSettings once, in its settings.py: the only place
that reads the environment."""

import ssl
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr, StringConstraints, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from kit.access.keys import KeySource, PublicKey, SigningKey, parse_public_keys, parse_signing_key
from kit.access.principal import OPERATOR, SUBJECT_PATTERN, TENANT_PATTERN, Principal
from kit.file_source import FileSource
from kit.network.tls import CertificateSource, nats_context

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


class TlsSettings(BaseSettings):
    """What a process needs for TLS between services."""

    model_config = SettingsConfigDict(
        env_prefix="GROUNDWORK_", frozen=True, extra="ignore", use_attribute_docstrings=True, validate_default=True
    )

    tls_cert_file: Path | None = None
    """Certificate of this process for TLS between services, PEM, with intermediate ones after it. It must be good for servers and
    clients, and name the host by which others call this service. With the next two set, gRPC takes only clients with a certificate
    of the same authority, and calls use TLS; files are read again when they change. Unset: no TLS."""

    tls_key_file: Path | None = None
    """Private key of that certificate, PEM, without a password."""

    tls_ca_file: Path | None = None
    """Certificates of the authorities that the other services' certificates must come from, PEM. While an authority is replaced,
    the old and the new one."""

    @field_validator("tls_ca_file")
    @classmethod
    def _is_whole(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        given = [info.data.get("tls_cert_file"), info.data.get("tls_key_file"), value]
        if any(given) and not all(given):
            raise ValueError(
                "GROUNDWORK_TLS_CERT_FILE, GROUNDWORK_TLS_KEY_FILE and GROUNDWORK_TLS_CA_FILE belong together: set all or none"
            )
        return value

    def certificates(self) -> CertificateSource | None:
        """None without TLS. Raises BadCertificates."""
        if not (self.tls_cert_file and self.tls_key_file and self.tls_ca_file):
            return None
        return CertificateSource(self.tls_cert_file, self.tls_key_file, self.tls_ca_file)


class ServiceSettings(TlsSettings):
    """Settings common to all services, read from GROUNDWORK_* variables. Unknown variables are another service's."""

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

    drain_delay_s: float = Field(default=5.0, ge=0)
    """Seconds between SIGTERM and closing the door. Meanwhile /readyz and the health check say NOT_SERVING and everything is
    served, so that proxies and load balancers notice. 0 where there are none: the supervisor of one machine sets it."""

    drain_grace_s: float = Field(default=10.0, ge=0)
    """Seconds that requests in flight have to end after the door is closed."""

    max_connection_age_s: float = Field(default=300.0, gt=0)
    """Age in seconds at which a gRPC connection of a client is replaced by a new one (give or take a tenth), for which its address
    is looked up anew: so long it takes at most until a server that was added gets its share. Calls in hand are not cut off."""

    connection_patience_s: float = Field(default=10.0, ge=0)
    """How long calls of another service wait while none of its servers is connected, in seconds since the last one was lost: a
    restart takes less. After that they fail at once, until there is one again."""

    otlp_endpoint: str | None = None
    """OTLP/gRPC collector for traces, for example http://otel-collector:4317. Without it traces stay in the process."""

    otlp_ca_file: Path | None = None
    """Certificates of the authorities that an https:// collector's certificate may come from, PEM; read at the start. Unset: the
    well-known ones."""

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


class KeyedServiceSettings(ServiceSettings):
    """Settings of a service that has a key of its own."""

    auth_signing_key: SecretStr | None = None
    """Private key of this service: a JSON Web Key (Ed25519) with an id. It signs the service's tokens, and seals secrets that the
    service stores. No two services have the same."""

    auth_signing_key_file: Path | None = None
    """File with that private key; read again when it changes. One of the two must be set."""

    @field_validator("auth_signing_key_file")
    @classmethod
    def _has_signing_key(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        return _one_of(value, info.data.get("auth_signing_key"))

    def own_key(self) -> KeySource[SigningKey]:
        """The private key. Raises FailedPrecondition when it cannot be read."""
        value = self.auth_signing_key.get_secret_value() if self.auth_signing_key else None
        path = self.auth_signing_key_file
        return KeySource(parse_signing_key, value=value, path=path, setting="GROUNDWORK_AUTH_SIGNING_KEY")


class SigningServiceSettings(KeyedServiceSettings):
    """Settings of a service that acts in the name of callers, or on its own, and so signs tokens."""

    def signing_key(self) -> KeySource[SigningKey]:
        """The private key. Raises FailedPrecondition when it cannot be read."""
        return self.own_key()


class NatsTlsSettings(TlsSettings):
    """What a process needs to speak TLS with NATS."""

    nats_ca_file: Path | None = None
    """Certificates of the authorities that the certificates of NATS servers may come from, PEM; unset: the well-known ones. For
    addresses that begin with tls://. Who has GROUNDWORK_TLS_CERT_FILE shows it to NATS as well. Read again when they change, for
    new connections."""

    def nats_tls(self, url: str) -> FileSource[ssl.SSLContext] | None:
        """How the servers at `url` are connected to; None where it asks for no TLS. Raises BadCertificates."""
        return nats_context(url, ca_file=self.nats_ca_file, cert_file=self.tls_cert_file, key_file=self.tls_key_file)


class MessageStoreSettings(NatsTlsSettings, ServiceSettings):
    """Settings of a service that keeps its state in NATS JetStream."""

    nats_url: str = "nats://127.0.0.1:4222"
    """NATS servers with JetStream, several by comma, with credentials in the URL where they ask for them. tls:// instead of nats://
    speaks TLS, and with no server that does not."""

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
