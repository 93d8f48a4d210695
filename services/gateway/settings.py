"""The gateway's settings: the only reader of its environment."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import NoDecode

from kit.process.settings import HostNames, LocalUserSettings, MessageStoreSettings, Networks, SigningServiceSettings
from services.gateway.access.guests.settings import GuestSettings

_BOOTSTRAP_KEY = re.compile(r"[!-~]{12,1000}")


def usable_bootstrap_key(text: str) -> str:
    """The key in a setting or file, without the line break at its end. Raises ValueError."""
    key = text.strip()
    if not _BOOTSTRAP_KEY.fullmatch(key):
        raise ValueError(
            "a bootstrap key must have 12 to 1000 printable ASCII characters and no spaces; `openssl rand -hex 24` prints one"
        )
    return key


_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")


def _origins(value: object) -> object:
    if not isinstance(value, str):
        return value
    origins = tuple(each.strip().lower() for each in value.split(",") if each.strip())
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin!r} is no origin; write scheme and host alone, as https://app.example.com")
    return origins


Origins = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_origins)]
"""Origins of web pages, written with commas between them."""


class GatewaySettings(MessageStoreSettings, LocalUserSettings, SigningServiceSettings, GuestSettings):
    """Settings of the public edge."""

    host: str = "127.0.0.1"
    """Where the public HTTP API listens. Loopback by default: without keys nobody else may reach it, and the gateway refuses to
    start."""

    port: int = Field(default=8080, ge=0, le=65535)
    """Port of the public HTTP API and of the console. 0 takes a free one."""

    listen_fd: int | None = Field(default=None, ge=0)
    """File descriptor of a listening TCP socket that this process has inherited, instead of GROUNDWORK_HOST and
    GROUNDWORK_PORT. Several gateways may share one: connections that wait in its queue survive each of them."""

    allowed_hosts: HostNames = ()
    """Host names, comma-separated, under which the API may be asked for besides loopback names. A name that is not listed is
    refused, because a hostile page can point its own name at this machine (DNS rebinding)."""

    cors_origins: Origins = ()
    """Origins of other sites, comma-separated, whose pages may ask here: `https://app.example.com`. Scheme and host as the browser
    sends them, a port only where it is not the usual one. Empty: only the console, which is of this origin."""

    public_url: str = Field(default="", pattern=r"^(https?://[^\s/]+)?$")
    """Where clients reach the gateway, as `https://groundwork.example.com`: for links of citations in answers of OpenAI's API and
    of MCP, for logins and for metadata of MCP. Empty: under the name that the request has, by http."""

    mcp_sessions_max: int = Field(default=1000, ge=1)
    """Most sessions of MCP on this gateway at a time; one holds about 150 KB. Clients of the newest protocol need none."""

    mcp_session_idle_s: float = Field(default=1800.0, gt=0)
    """How long a session of MCP may be silent until it is ended, in seconds. A client then begins another one by itself."""

    mcp_authorization_servers: Origins = ()
    """Issuers of tokens for this gateway, comma-separated. MCP clients read them in its OAuth metadata. Empty: those of
    GROUNDWORK_OIDC_ISSUERS_FILE; without these clients send an API key."""

    auth: Literal["none", "api_keys"] = "none"
    """Who may come in. `none`: everybody who reaches the gateway, as the one local user with all scopes; on loopback only.
    `api_keys`: who shows an API key; the gateway then follows the keys in NATS."""

    oidc_issuers_file: Path | None = None
    """With `api_keys`: file with the OIDC issuers whose tokens let people and services in as well, and what they may do; read again
    when it changes. docs/operations/single-sign-on.md shows one."""

    scim_subject: str = Field(
        default="{userName}", pattern=r"^([A-Za-z0-9][A-Za-z0-9._@+:|-]{0,31})?\{(userName|externalId)\}$"
    )
    """With `api_keys`: which subject a user is here whom an identity provider sends by SCIM: `{userName}` or `{externalId}`, behind
    the issuer's `subject_prefix` where it has one, as in `okta.{externalId}`. It must be what tokens and API keys call the user."""

    bootstrap_key: SecretStr | None = None
    """With `api_keys`: a first API key (`Authorization: Bearer …`), good for as long as it stands here. Who shows it is the user of
    GROUNDWORK_LOCAL_TENANT_ID and GROUNDWORK_LOCAL_SUBJECT with scope `operator`, also while NATS is silent. At least 12 printable
    characters without spaces; choose them at random, since nothing keeps anybody from guessing."""

    bootstrap_key_file: Path | None = None
    """File with that key instead, read again when it changes: an emptied one is no key any more."""

    api_keys_stale_after_s: float = Field(default=30.0, gt=0)
    """With `api_keys`: how long the message store may be silent until nobody is let in, in seconds, since a key may have been
    revoked meanwhile. A new leader is elected in less."""

    wrong_api_keys_per_minute: int = Field(default=20, ge=1)
    """With `api_keys`: how many wrong keys one address may show in a minute before it must wait (429). A right one is let in
    all the same."""

    begun_logins_per_minute: int = Field(default=120, ge=1)
    """With OIDC issuers: how many logins one address may begin in a minute and not finish before it must wait (429). A whole office
    may have one address, and each of its people counts until their login is finished."""

    api_keys_per_tenant: int = Field(default=1000, ge=1)
    """Most API keys of one tenant, with ended ones that are still kept: each gateway has all keys in memory, about 1 KB each."""

    ended_api_keys_kept_days: int = Field(default=90, ge=0)
    """How long a revoked or expired key stays listed, in days, so that people can see what was; then its record is removed."""

    audit_retention_days: int = Field(default=365, ge=1, le=36_500)
    """With `api_keys`: how long entries of the audit log are kept, in days. They say who did what and from which address, so keep
    them no longer than you need them."""

    audit_max_bytes: int = Field(default=512 * 1024**2, ge=16 * 1024**2)
    """With `api_keys`: most bytes of the audit log, of all tenants together; then the oldest entries are removed. The message store
    sets so much of its disk aside. The default holds a million entries."""

    @field_validator("oidc_issuers_file")
    @classmethod
    def _is_of_keys(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is not None:
            _require_api_keys(info)
        return value

    @field_validator("bootstrap_key")
    @classmethod
    def _is_usable(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is None:
            return None
        _require_api_keys(info)
        return SecretStr(usable_bootstrap_key(value.get_secret_value()))

    @field_validator("bootstrap_key_file")
    @classmethod
    def _is_only_one(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is not None:
            _require_api_keys(info)
            if info.data.get("bootstrap_key") is not None:
                raise ValueError("GROUNDWORK_BOOTSTRAP_KEY is set as well; set one of the two")
        return value

    @model_validator(mode="after")
    def _guests_are_apart(self) -> "GatewaySettings":
        if self.guests and self.auth != "api_keys":
            raise ValueError(
                "guests are let in beside callers with keys: set GROUNDWORK_AUTH=api_keys, or unset GROUNDWORK_GUESTS"
            )
        if self.guests and self.guests_tenant == self.local_tenant_id:
            raise ValueError("guests would see what your own tenant shares: set another GROUNDWORK_GUESTS_TENANT")
        return self

    ingest_address: str = "127.0.0.1:7003"
    """Address ("host:port") of the ingest API."""

    ingest_worker_address: str = "127.0.0.1:7004"
    """Address of the ingest worker's health service; asked by /readyz only."""

    retriever_address: str = "127.0.0.1:7002"
    """Address of the retriever."""

    reranker_address: str = "127.0.0.1:7001"
    """Address of the model server; asked for embeddings, and by /readyz."""

    orchestrator_address: str = "127.0.0.1:7005"
    """Address of the orchestrator."""

    memory_address: str = "127.0.0.1:7006"
    """Address of memory."""

    tools_address: str = "127.0.0.1:7007"
    """Address of the tools."""

    rpc_timeout_s: float = Field(default=15.0, gt=0)
    """Longest a single answer of a service may take, in seconds. Writes wait for JetStream, hence not less."""

    search_timeout_s: float = Field(default=30.0, gt=0)
    """Longest a search may take, in seconds: a reranker on a busy CPU needs several."""

    upload_timeout_s: float = Field(default=3600.0, gt=0)
    """Longest an upload or a download may take, in seconds: a large file over a slow line."""

    upload_idle_timeout_s: float = Field(default=60.0, gt=0)
    """Longest a client may send nothing during an upload, in seconds."""

    stream_timeout_s: float = Field(default=3600.0, gt=0)
    """Longest one gRPC stream behind an event stream lives, in seconds; then it is opened again, unseen by the client."""

    reattach_for_s: float = Field(default=30.0, gt=0)
    """How long a broken stream is tried again before the client gets an error, in seconds: an orchestrator restarts in less."""

    ping_interval_s: float = Field(default=15.0, gt=0)
    """Seconds of silence after which an event stream carries a comment, so that proxies keep it open."""

    health_timeout_s: float = Field(default=2.0, gt=0)
    """Longest one health check of /readyz may take, in seconds."""

    max_connections: int | None = Field(default=None, ge=1)
    """Most connections of clients at a time. Unset: as many as the limit of open files (ulimit -n) has room for, 4 096 at most,
    since an event stream costs about 50 KB. Beyond it the connection that has waited longest for its next request makes room;
    when all are at work, a newcomer is answered with 503, except about health."""

    max_connections_per_address: int | None = Field(default=None, ge=1)
    """Most connections of one client, by address (IPv6: by /64 network), so that one cannot take all places. Unset: half of all.
    Beyond it the client's own connection that has waited longest makes room; when all are at work, it gets 429, except about
    health. Loopback addresses and GROUNDWORK_PROXIES are not counted: many clients come from these."""

    proxies: Networks = ()
    """Addresses and networks of reverse proxies in front, comma-separated ("10.0.0.0/8"). Their connections are not counted by
    address, since all clients share them; limit clients at the proxy. Forwarded headers are not read."""

    max_event_streams: int | None = Field(default=None, ge=1)
    """Most event streams of one tenant on this gateway. Unset: half of the connections, so that streams, which last, leave room for
    requests. Beyond it a stream is refused with 429, before anything is begun."""

    voice_idle_timeout_s: float = Field(default=900.0, gt=0)
    """How long a client of a spoken conversation may say nothing while nothing is answered, in seconds; then its WebSocket is
    closed."""

    speech_base_url: str = Field(default="", pattern=r"^(https?://[^\s]+)?$")
    """OpenAI-compatible endpoint that hears and speaks for `/ws/voice-chat` and `/v1/realtime`, usually ending in /v1. Empty: sound
    is not understood, text is."""

    speech_output_base_url: str = Field(default="", pattern=r"^(https?://[^\s]+)?$")
    """Another endpoint that speaks. Empty: the same one."""

    speech_api_key: SecretStr | None = None
    """Key of the endpoint at SPEECH_BASE_URL, and of the one that speaks where it has the same origin."""

    speech_output_api_key: SecretStr | None = None
    """Key of the endpoint that speaks. Empty: SPEECH_API_KEY, unless its origin is another one: that key is not sent there."""

    speech_transcription_model: str = ""
    """Model that hears, such as `whisper-1`. Empty: sound is not understood."""

    speech_model: str = ""
    """Model that speaks, such as `tts-1`. Empty: nothing is said as sound. It must offer PCM at 24 kHz."""

    speech_voice: str = "alloy"
    """Voice of that model, unless a client chooses another."""

    speech_timeout_s: float = Field(default=30.0, gt=0)
    """Longest that a speech endpoint may say nothing, in seconds."""

    request_head_timeout_s: float = Field(default=10.0, gt=0)
    """Longest a client may take to send a request's head, in seconds. It fits one packet: only an attack needs longer."""

    request_body_timeout_s: float = Field(default=30.0, gt=0)
    """Longest a client may take to send a JSON body, in seconds: 1 MB over a line of 300 kbit/s."""

    connection_idle_timeout_s: float = Field(default=5.0, gt=0)
    """Longest a connection may wait for its next request, in seconds: a browser opens another one in milliseconds."""

    send_timeout_s: float = Field(default=60.0, gt=0)
    """Longest a client may take nothing of an answer that is waiting for it, in seconds. Its unsent part is held in memory."""

    max_json_bytes: int = Field(default=1024 * 1024, gt=0)
    """Largest JSON request body, in bytes: 8 000 characters of question and 64 collections need far less."""


def _require_api_keys(info: ValidationInfo) -> None:
    if info.data.get("auth") != "api_keys":
        raise ValueError("nobody is asked for a key: set GROUNDWORK_AUTH=api_keys, or unset this")
