"""Settings of the system on one machine, and of its language-model child. The only reader of the environment here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, StringConstraints
from pydantic_settings import BaseSettings, SettingsConfigDict

from kit.process.settings import Identifier, NatsTlsSettings, Subject
from services.standalone.replicas import parse_replicas


def _checked_replicas(text: str) -> str:
    parse_replicas(text)
    return text


class StandaloneSettings(NatsTlsSettings):
    """What a user may choose. Everything else is chosen by the supervisor."""

    model_config = SettingsConfigDict(
        env_prefix="GROUNDWORK_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    port: int = Field(default=8080, ge=1, le=65535)
    """TCP port of the console and the HTTP API."""
    host: str = "127.0.0.1"
    """Where the console and the HTTP API listen. Loopback by default: nobody else may reach them."""
    replicas: Annotated[str, AfterValidator(_checked_replicas)] = ""
    """How many processes of a service run side by side, for example `orchestrator=3,gateway=2`. A service that is not named runs
    once, which is enough for most machines. Several retrievers need both indexes on servers."""
    data_dir: Annotated[Path, AfterValidator(Path.expanduser)] = Path("data")
    """Where everything durable lives. One instance at a time may use it."""
    models_dir: Path = Path(".models")
    """Where `make setup` put the models."""
    restart_backoff_max_s: float = Field(default=10.0, gt=0)
    """Longest wait before a service that keeps dying is started again: one that cannot start does not eat the machine."""
    drain_delay_s: float = Field(default=0.0, ge=0)
    """Seconds between a service's SIGTERM and closing its door. No load balancer has to notice here, and who calls waits until a
    service is back."""
    drain_grace_s: float = Field(default=10.0, ge=0)
    """Seconds that requests in flight have to end after the door is closed. A service that has not ended 2 s after both is
    killed."""
    start_hint_after_s: float = 30.0
    """A service that is not ready by then is named, with its log file: a start takes under 10 s."""

    auth: Literal["none", "api_keys"] = "none"
    """Who may come in: everybody on this machine, or who shows an API key. With `api_keys` the start makes a first key where no
    operator has one, and prints it once."""
    bootstrap_key: SecretStr | None = None
    """The gateway's first API key, by setting. With it, or with a file of it, none is made at the start."""
    bootstrap_key_file: Path | None = None
    """File with that key."""
    local_tenant_id: Identifier = "local"
    """Tenant of every request without keys, and of the bootstrap key."""
    local_subject: Subject = "local-user"
    """User of every request without keys, and of the bootstrap key."""

    nats_url: str = ""
    """For `backup`, `restore`, `doctor` and `keys bootstrap` only: the message store of a cluster, with user and password. Empty
    means the system of `data_dir`, whether it runs or not."""
    nats_replicas: int = Field(default=1, ge=1, le=5)
    """For `restore` into the message store of a cluster and `keys bootstrap` only: on how many servers what is made there is kept,
    as for its services."""
    nats_sync: Annotated[str, StringConstraints(pattern=r"^(always|[1-9][0-9]*s)$")] = "always"
    """When the message store syncs to disk: `always` is before each write is acknowledged, so that not even a power cut takes back
    what was; a time like `10s` is as often, which is faster on slow disks, and a power cut may take the writes since."""
    nats_start_timeout_s: float = Field(default=300.0, gt=0)
    """Seconds that nats-server may take until it is ready. A million stored messages take it a few; damaged ones can keep it busy
    for ever, and then the start ends with the reason."""
    nats_start_memory_bytes: int = Field(default=2 * 1024 * 1024 * 1024, gt=0)
    """Bytes of memory that nats-server may take until it is ready. A million records take it some hundred megabytes; six flipped
    bits can make it take all that the machine has."""

    store_scrub_interval_s: float = Field(default=3600.0, gt=0)
    """Seconds between two comparisons of all that is stored with the ledger, besides the one at the start. It reads all records,
    some 20 000 a second, and no files."""


class LocalLlmSettings(BaseSettings):
    """Settings of ``services.standalone.local_llm``, given by the supervisor."""

    model_config = SettingsConfigDict(env_prefix="GROUNDWORK_LOCAL_LLM_", frozen=True, extra="ignore")

    port: int = Field(ge=1, le=65535)
    """TCP port on loopback."""
    api_key: SecretStr
    """Bearer token that callers must show, so that other users of this machine cannot use the model."""
    model_path: Path
    """The GGUF weights."""
    model_name: str
    """Name under which the API offers the model."""
    context_tokens: int = Field(default=8192, ge=4096)
    """The window SmolLM2 was trained with; a prompt with evidence needs at least 4096."""
    threads: int = Field(default=0, ge=0)
    """0 means one less than the processors this process may use, at least one: llama.cpp's threads wait for each other
    by spinning, so a thread too many, while search and ingestion work too, slows all of them down several times."""


_OF_GATEWAYS = "GROUNDWORK_BOOTSTRAP_KEY"


def inherited_environment() -> dict[str, str]:
    """What children get from the user's environment: all of it, so that each GROUNDWORK_ setting reaches its service; but keys and
    the message store are this system's own, and each service gets its own; the API key is the user's, and the bootstrap key the
    gateways'."""
    ours = ("GROUNDWORK_AUTH_", "GROUNDWORK_NATS_URL", "GROUNDWORK_NATS_CA_FILE", "GROUNDWORK_API_KEY", _OF_GATEWAYS)
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def gateway_environment() -> dict[str, str]:
    """What gateways get besides."""
    return {name: value for name, value in os.environ.items() if name.startswith(_OF_GATEWAYS)}
