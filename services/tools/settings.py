"""Settings of the tools service."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from kit.network.egress import UrlRefused, parse_networks, place_of
from kit.network.hosts import is_loopback_name
from kit.process.settings import (
    Folders,
    HostNames,
    Identifier,
    KeyedServiceSettings,
    LocalUserSettings,
    MessageStoreSettings,
)
from services.tools.outside.hosts import check_web_hosts, parse_host_patterns
from services.tools.outside.mail_addresses import parse_sender
from services.tools.projects.records import load_records
from services.tools.sql import named
from services.tools.sql.configuration import DatabaseName, DatabaseSettings
from services.tools.sql.statements import parse_condition, placeholders

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
"""Both as in RFC 9110, 5.1 and 5.5, in ASCII."""


_USER_AGENT = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+(/[A-Za-z0-9!#$%&'*+.^_`|~-]+)?( [\x20-\x7e]*[\x21-\x7e])?$"
_Connectable = Annotated[str, StringConstraints(pattern=r"^(github|mail|google-drive)$")]
_SERVER_NAME = r"^[a-z][a-z0-9-]{0,23}$"


class McpOAuth(BaseModel):
    """Credentials of a client at the authorization server of an MCP server (client credentials grant)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: str
    client_id: str
    client_secret: SecretStr
    scope: str = ""


class McpServerSettings(BaseModel):
    """An MCP server whose tools agents may use."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[str, ...] = ()
    """A program that speaks MCP over its standard input and output, with its arguments."""
    env: dict[str, SecretStr] = Field(default_factory=dict)
    """What the program's environment has besides PATH and the like."""
    url: str = ""
    """Address of a server over streamable HTTP, instead of a program."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    oauth: McpOAuth | None = None
    approved: dict[str, str] = Field(default_factory=dict)
    read_only: tuple[str, ...] = ()
    cached: bool = False
    sampling_tokens: int = Field(default=0, ge=0, le=4000)
    """Most tokens that the server may have the run's model write for it at a time, each time after a person has allowed it. 0: it
    may not."""
    elicitation: bool = False
    """Whether the server may ask the user something in the middle of a call: the run waits for the answer."""
    timeout_s: float = Field(default=20.0, gt=0, le=600)

    @model_validator(mode="after")
    def _is_reached_one_way(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("a server has either a `command` or a `url`")
        if self.url:
            place_of(self.url)
        if self.command and (self.headers or self.oauth):
            raise ValueError("headers and oauth are for a server with a `url`; a program is given `env`")
        if self.cached and (self.sampling_tokens or self.elicitation):
            raise ValueError("results of a server that asks a model or the user cannot be `cached`")
        return self


class OAuthSettings(BaseModel):
    """This installation as a client of one service."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    client_id: str = ""
    client_secret: SecretStr = SecretStr("")
    device_url: str = ""
    """Where logins of devices begin. Empty: that of GitHub or Google."""
    token_url: str = ""
    scope: str = ""
    """What a login asks for."""

    @field_validator("device_url", "token_url")
    @classmethod
    def _take_secrets(cls, value: str) -> str:
        return _secret_address(value)


class ToolsSettings(MessageStoreSettings, LocalUserSettings, KeyedServiceSettings):
    """How much it does at once, and for whom."""

    memory_address: str = "127.0.0.1:7006"
    """host:port of the memory service."""

    retriever_address: str = "127.0.0.1:7002"
    """host:port of the retriever."""
    reranker_address: str = "127.0.0.1:7001"
    """host:port of the model server."""
    ingest_address: str = "127.0.0.1:7003"
    """host:port of the ingest service: tools may keep documents."""
    ingest_worker_address: str = "127.0.0.1:7004"
    """host:port of the ingest worker, which reads files of the web."""
    tools_calls_at_once: int = Field(default=8, ge=1)
    """Tool calls that run beside each other. Most wait for something; 8 keep a small machine from being swamped."""
    tools_calls_waiting: int = Field(default=64, ge=0)
    """Calls that may wait for their turn. More are turned away at once, since they would only run into their deadlines."""
    tools_processes: int = Field(default=2, ge=1)
    """Processes for tools that compute; each takes 30 MB once it was needed. One that takes too long is killed and replaced."""
    tools_text_tokens: int = Field(default=2000, ge=200)
    """Tokens of document text that one call gives a model, by an estimate from above; longer passages are cut, and can be fetched
    one by one. Eight passages of usual size fit, and a model's context holds several such answers."""
    tools_allowed: dict[str, list[str]] = Field(default_factory=dict)
    """Tools by tenant, as JSON: {"acme": ["math_eval", "time_now"]}. A tenant that is not named may use all;
    guests only tools that read their own documents and memory."""
    tools_need_approval: list[str] = Field(default_factory=list)
    """Tools whose calls a person must allow, each one, beside those that ask for it themselves, as JSON: ["http_get", "crm_*"]."""
    tools_folders: Folders = ()
    """Folders, comma-separated, whose Python files are tools too, so that one can be added without building an image: the files are
    read at the start and run as this service, so nobody else may write there."""
    tools_breaker_failures: int = Field(default=5, ge=1)
    """So many calls of a tool that broke, took too long or found a service away, in a row and within
    `GROUNDWORK_TOOLS_BREAKER_WINDOW_S`, and it is left alone: a caller gets an error at once instead of waiting."""
    tools_breaker_window_s: float = Field(default=30.0, gt=0)
    """Seconds within which those failures lie. Failures that are further apart are single ones."""
    tools_breaker_open_s: float = Field(default=5.0, gt=0)
    """Seconds until a tool that is left alone is tried again by one call; twice as many after each try that fails, up to 60."""
    tools_notes_collection: Identifier = "notes"
    """Collection in which rag_index keeps texts when the model names no other; made when the first text is kept. Everybody has one
    of their own: that of other users than the local one has a mark of its user in its id (`notes-1a2b3c4d`)."""
    tools_kb_collection: Identifier = "knowledge-base"
    """Collection that query_local_kb searches: the curated documents that a tenant's agents rely on. A tenant without one gets an
    error that says so."""
    tools_records_file: Path | None = None
    """Curated records of projects that portfolio, search_projects and get_project_details answer from: a JSON array, or one JSON
    object on each line, with id, name, summary, description, technologies, links, year, role and details. Read at start, the same
    for all tenants. Unset: the three tools are not offered."""
    tools_records_similarity_min: float | None = Field(default=None, ge=-1, le=1)
    """Least cosine of a record that search_projects finds by its meaning alone. Unset: measured for the models that come with the
    system (0.34 for multilingual-e5-small, 0.25 for all-MiniLM-L6-v2), 0.25 for others. Another model needs another value."""
    tools_databases: dict[DatabaseName, DatabaseSettings] = Field(default_factory=dict)
    """Databases that `query_db` may ask, as JSON: {"shop": {"url": "postgresql://reader@db.example.com:5432/shop"}}. `demo` in the
    place of an address is the database that comes along. Empty: the tools `query_db` and `describe_db` are not offered. What else
    can be said of a database stands in the page about tools."""
    tools_database_passwords: dict[DatabaseName, SecretStr] = Field(default_factory=dict)
    """Passwords of the users in these addresses, by the database's name, as JSON: {"shop": "..."}."""
    smtp_host: str = ""
    """Mail server through which `send_email` sends. Empty: the tool is not offered."""
    smtp_tls: Literal["starttls", "tls", "none"] = "starttls"
    """How the connection to the mail server is encrypted: upgraded before anything is said, from the first byte on, or not at all.
    Its certificate is checked."""
    smtp_port: int = Field(default=0, ge=0, le=65535)
    """Port of the mail server. 0 takes the usual one: 587 with starttls, 465 with tls, 25 without."""
    smtp_user: str = ""
    """Name to log in with at the mail server. Empty: no login."""
    smtp_password: SecretStr = SecretStr("")
    """Password of that name. It is not sent over a connection that is not encrypted."""
    smtp_ca_file: Path | None = None
    """Certificates (PEM) that vouch for the mail server, where the system's do not: a company's own authority."""
    smtp_from: str = ""
    """Address that e-mails come from, with a name if wanted: `Groundwork <assistant@example.com>`. Required with smtp_host."""
    smtp_recipient_domains: HostNames = ()
    """Domains, comma-separated, that e-mails may go to; `*.example.com` stands for all below example.com. Empty: all domains."""
    tools_http_hosts: HostNames = ()
    """Hosts, comma-separated, that `http_get` and `http_request` may ask: `api.example.com`, `*.example.org` for all below, with a
    port where it is not the usual one. Asked over https; `http://intern.example.com:8080` allows that host over plain http. Empty:
    the two tools are not offered."""
    tools_http_headers: dict[str, dict[str, SecretStr]] = Field(default_factory=dict)
    """Headers that are sent to hosts, as JSON: {"api.example.com": {"Authorization": "Bearer ..."}}. Each host is written as in
    tools_http_hosts, without a wildcard. Neither the model nor the person sees them."""
    tools_web_hosts: HostNames = ()
    """Web sites, comma-separated, that `web_fetch` and `crawl_website` may read: `*` for all public ones, `docs.example.com`,
    `*.example.org` for all below, with a port where it is not 80 or 443. Empty: the two are not offered."""
    tools_web_user_agent: Annotated[str, StringConstraints(pattern=_USER_AGENT)] = "groundwork"
    """The User-Agent that web sites are sent, and the name whose rules in their robots.txt are obeyed. Add an address where you can
    be reached: `groundwork (+https://example.com/bot)`."""
    tools_web_robots: bool = True
    """Whether pages that a site's robots.txt closes to programs are left alone. Switch it off only for sites of your own."""
    tools_web_host_per_minute: int = Field(default=30, ge=1)
    """So many requests a minute go to one web site from all processes of the service together."""
    tools_web_run_pages: int = Field(default=100, ge=1)
    """So many requests for pages are made in one run."""
    tools_web_crawl_delay_s: float = Field(default=0.5, ge=0, le=30)
    """Seconds between two requests of `crawl_website` to a site whose robots.txt asks for no more."""
    tools_web_cache_s: float = Field(default=600.0, ge=0)
    """Seconds for which a page that was read is used again without asking. After that it is asked for only if it has changed."""
    tools_browser: str = "chromium"
    """Chromium for `browser_task` and `browser_submit`: `chromium` is looked for on the PATH, or the path of one. The two read the
    web sites of GROUNDWORK_TOOLS_WEB_HOSTS, and take the extra packages of `groundwork[browser]`. Empty: they are not offered."""
    tools_browser_memory_mb: int = Field(default=1_500, ge=200)
    """Memory in MiB that a browser may take with its pages; it is ended at more."""
    tools_web_search: Literal["", "brave", "searxng"] = ""
    """Search engine that `web_search` asks: Brave Search with a key, or a SearXNG of yours. Empty: the tool is not offered."""
    tools_web_search_url: str = ""
    """Address of the search engine: of your SearXNG, whose settings must allow the format json. Empty: the one of Brave Search."""
    tools_web_search_key: SecretStr = SecretStr("")
    """Key for Brave Search."""
    tools_github_url: str = "https://api.github.com"
    """Address of GitHub's API, for connections of users and tenants: of an own GitHub Enterprise Server
    https://github.example.com/api/v3. Empty: GitHub cannot be connected, and its tools are not offered."""
    tools_mail_url: str = ""
    """Mail server whose mailboxes users and tenants may connect: `imaps://imap.example.com`, or `imap://imap.example.com` where the
    connection is encrypted by STARTTLS, with a port where it is not the usual one. Empty: mail cannot be connected, and
    `mail_search` and `mail_read` are not offered."""
    tools_drive_url: str = "https://www.googleapis.com"
    """Address of Google's APIs, for connections to Google Drive. Empty: it cannot be connected, and its tools are not offered."""
    tools_oauth: dict[_Connectable, OAuthSettings] = Field(default_factory=dict)
    """This installation as an OAuth client of services, as JSON: {"github": {"client_id": "Iv1.5f…"}}. With a client id, people
    connect the service by typing a code there instead of giving a token (device flow). Mail needs `device_url`, `token_url` and
    `scope` as well."""
    tools_mcp_servers: dict[Annotated[str, StringConstraints(pattern=_SERVER_NAME)], McpServerSettings] = Field(
        default_factory=dict
    )
    """MCP servers whose tools agents may use as `server__tool`, as JSON: {"time": {"command": ["mcp-server-time"], "approved":
    {"get_current_time": "<digest>"}, "read_only": ["get_current_time"]}}. Tools whose description is not approved are withheld;
    the log has their digests (`mcp_tool_withheld`)."""
    tools_mcp_list_every_s: float = Field(default=300.0, ge=1)
    """How often an MCP server is asked which tools it has, in seconds."""
    tools_mcp_idle_sessions: int = Field(default=4, ge=0)
    """Most sessions with MCP servers that stay open for a next call, in each process of the service. A program in Node.js takes
    some 70 MB meanwhile. 0: each call begins a session of its own, which takes a program up to two seconds."""
    tools_mcp_session_idle_s: float = Field(default=60.0, gt=0)
    """How long such a session stays open after a call, in seconds."""
    egress_allowed_networks: str = ""
    """Networks that are not public and may be connected to when a listed host, a web page or an MCP server leads there, in CIDR
    notation with commas between them: `10.20.0.0/16`. None by default."""

    @field_validator("tools_records_file")
    @classmethod
    def _can_be_read(cls, value: Path | None) -> Path | None:
        if value is not None:
            load_records(value)
        return value

    @field_validator("tools_databases")
    @classmethod
    def _can_be_asked(cls, value: dict[str, DatabaseSettings]) -> dict[str, DatabaseSettings]:
        for name, database in value.items():
            try:
                _check_database(database)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return value

    @field_validator("smtp_user")
    @classmethod
    def _log_in_encrypted(cls, value: str, info: ValidationInfo) -> str:
        if value and info.data.get("smtp_tls") == "none":
            raise ValueError("it needs GROUNDWORK_SMTP_TLS to be starttls or tls: a password is not sent in the clear")
        return value

    @field_validator("smtp_from")
    @classmethod
    def _has_a_sender(cls, value: str, info: ValidationInfo) -> str:
        if value or info.data.get("smtp_host"):
            parse_sender(value)
        return value

    @field_validator("tools_http_hosts")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        parse_host_patterns(value)
        return value

    @field_validator("tools_web_hosts")
    @classmethod
    def _are_web_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        check_web_hosts(value)
        return value

    @model_validator(mode="after")
    def _has_what_its_search_needs(self) -> Self:
        if self.tools_web_search == "brave" and not self.tools_web_search_key.get_secret_value():
            raise ValueError("GROUNDWORK_TOOLS_WEB_SEARCH=brave needs GROUNDWORK_TOOLS_WEB_SEARCH_KEY")
        if self.tools_web_search == "searxng" and not self.tools_web_search_url:
            raise ValueError("GROUNDWORK_TOOLS_WEB_SEARCH=searxng needs GROUNDWORK_TOOLS_WEB_SEARCH_URL")
        return self

    @field_validator("tools_github_url", "tools_drive_url")
    @classmethod
    def _takes_tokens(cls, value: str) -> str:
        return _secret_address(value)

    @field_validator("tools_mail_url")
    @classmethod
    def _is_mail_server(cls, value: str) -> str:
        scheme, _, rest = value.partition("://")
        try:
            is_right = not value or (
                scheme in ("imaps", "imap") and not set(rest) & set("/?#@") and place_of(f"https://{rest}")
            )
        except UrlRefused as error:
            raise ValueError(error.message) from error
        if not is_right:
            raise ValueError("write it as imaps://imap.example.com, or imap://imap.example.com for STARTTLS")
        return value.lower()

    @field_validator("tools_http_headers")
    @classmethod
    def _go_to_one_host(cls, value: dict[str, dict[str, SecretStr]]) -> dict[str, dict[str, SecretStr]]:
        if any(pattern.is_wildcard for pattern in parse_host_patterns(value)):
            raise ValueError("headers go to one host by its exact name: a name below a wildcard may be somebody else's")
        for header, secret in (pair for headers in value.values() for pair in headers.items()):
            if not _HEADER_NAME.fullmatch(header) or not _HEADER_VALUE.fullmatch(secret.get_secret_value()):
                raise ValueError(f"the header {header!r:.80} has characters that a header cannot have")
        return value

    @field_validator("egress_allowed_networks")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        parse_networks(value)
        return value


def _secret_address(value: str) -> str:
    """Raises ValueError for an address to which secrets would go in the clear."""
    try:
        place = place_of(value) if value else None
    except UrlRefused as error:
        raise ValueError(error.message) from error
    if place and place.scheme != "https" and not is_loopback_name(place.host):
        raise ValueError("access tokens are secrets, and go to an https:// address only")
    return value.rstrip("/")


def _check_database(database: DatabaseSettings) -> None:
    """Raises ValueError where a condition or a query of the operator's can never be used."""
    for table, condition in database.rows.items():
        if unknown := placeholders(parse_condition(condition, database.dialect)) - {"subject", "tenant"}:
            raise ValueError(f"rows: {table} uses :{min(unknown)}; there are :subject and :tenant")
    for query, asked in database.queries.items():
        named.check(query, asked, database.dialect)
