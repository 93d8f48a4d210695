"""Connecting by a login at the service (RFC 8628), and renewing it, against an authorization server of the test's own."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import SecretStr, ValidationError
from structlog.testing import capture_logs

from kit.access.keys import KeySource, new_key, parse_signing_key
from kit.access.principal import ADMIN, QUERY, Principal
from kit.access.sealing import Sealer
from kit.errors import FailedPrecondition, InvalidArgument, PermissionDenied, ResourceExhausted, Unavailable
from kit.jetstream import KeyValue, Nats
from kit.network.egress import EgressGuard, parse_networks
from services.tools.adapters.connection_records import KeyValueConnections
from services.tools.adapters.http.oauth import OAuthClient
from services.tools.connections.desk import ConnectionDesk, ConnectionRefused, Door
from services.tools.connections.device_login import DeviceLoginOver, DeviceLogins, OAuthServer, ServiceLogins
from services.tools.connections.github import CredentialRefused
from services.tools.connections.logins import login_of, read_credential
from services.tools.connections.records import Connection
from services.tools.errors import ToolError, ToolUnavailable
from services.tools.settings import ToolsSettings
from services.tools.sources import tokens
from services.tools.sources.logins import Login, LoginRefused
from services.tools.sources.tokens import OVER_S
from services.tools.state import CONNECTIONS
from tests.doubles.http_double import Failure, HttpDouble, Recorded

ANN, BOB = Principal("acme", "ann", frozenset({QUERY})), Principal("acme", "bob", frozenset({QUERY}))
CHIEF = Principal("acme", "chief", frozenset({ADMIN, QUERY}))


class AuthorizationServer(HttpDouble):
    """Answers polls with `says`, one after the other; the last one for ever. Refresh tokens are good once."""

    def __init__(self) -> None:
        super().__init__()
        self.says = ["authorization_pending", ""]
        self.lasts_s = 0
        """Of access tokens; 0: for ever, as those of GitHub's OAuth apps."""
        self.renewing = "r0"
        self.begins: dict[str, Any] = {}
        """What it says otherwise when a login begins."""
        self.raw = b""
        """What it says instead of any answer."""
        self.suffix = ""
        """Of access tokens."""
        self.count = 0

    async def respond(self, request: Recorded) -> web.Response:
        if self.raw:
            return web.Response(body=self.raw)
        form = request.body
        assert form["client_id"] == "cl1ent"
        if request.path == "/device":
            begun = {
                "device_code": "dev1ce",
                "user_code": "WDJB-MJHT",
                "verification_uri": "https://example.com/device",
            }
            return self.answer(200, {**begun, "expires_in": 900, "interval": 5, **self.begins})
        assert form["client_secret"] == "s3cret"
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] != self.renewing:
                return self.answer(200, {"error": "bad_refresh_token"})  # GitHub says so with 200
            return self._tokens()
        assert form["device_code"] == "dev1ce"
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        return self.answer(400, {"error": said}) if said else self._tokens()

    def _tokens(self) -> web.Response:
        self.count += 1
        data: dict[str, Any] = {"access_token": f"a{self.count}{self.suffix}", "token_type": "bearer"}
        if self.lasts_s:
            self.renewing = f"r{self.count}"
            data |= {"expires_in": self.lasts_s, "refresh_token": self.renewing}
        return self.answer(200, data)


@dataclass
class Clock:
    """Time that passes by sleeping alone."""

    at: datetime = datetime(2026, 11, 28, tzinfo=UTC)
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += timedelta(seconds=seconds)


@dataclass
class System:
    server: AuthorizationServer
    clock: Clock
    desk: ConnectionDesk
    records: KeyValueConnections
    refused: set[str] = field(default_factory=set)
    """Access tokens that the service does not take any more; `*`: all."""
    shown: list[str] = field(default_factory=list)

    async def used(self, caller: Principal = ANN) -> str:
        return await self.desk.connections.ask(caller, "github", self.service)

    async def service(self, connection: Connection) -> str:
        """What the service answers: the access token, which it may refuse."""
        token = connection.secret.get_secret_value()
        self.shown.append(token)
        if token in self.refused or "*" in self.refused:
            raise CredentialRefused("GitHub does not take the credential")
        return token

    async def log_in(self, caller: Principal = ANN, *, shared: bool = False) -> None:
        _, handle = await self.desk.begin_login(caller, "github", "", shared=shared)
        made = None
        while made is None:
            made, handle, _ = await self.desk.finish_login(caller, "github", handle)
        assert made.account == "octocat"


async def account(secret: SecretStr, user: str, *, is_token: bool) -> str:
    assert secret.get_secret_value().startswith("a")
    return "octocat"


def start(server: AuthorizationServer, clock: Clock, records: KeyValueConnections, sealer: Sealer) -> ConnectionDesk:
    """A process of the tools service, as far as connections go."""
    known = OAuthServer(
        f"{server.url}/token",
        f"{server.url}/device",
        client_id="cl1ent",
        client_secret=SecretStr("s3cret"),
        scope="repo",
    )
    client = OAuthClient(EgressGuard(parse_networks("127.0.0.0/8")), known, clock.now)
    doors = {"github": Door("https://api.github.com", account, ServiceLogins(known, client))}
    return ConnectionDesk(records, doors, DeviceLogins(sealer, clock.now, clock.sleep), clock.now)


@pytest.fixture
def sealer(tmp_path: Path) -> Sealer:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(new_key("tools")))
    return Sealer(KeySource(parse_signing_key, path=path, setting="TEST"))


@pytest.fixture
async def system(jetstream: Nats, sealer: Sealer) -> AsyncIterator[System]:
    server, clock = AuthorizationServer(), Clock()
    records = await KeyValueConnections.open(jetstream, sealer)
    following = asyncio.create_task(records.settings.follow())
    async with server.running():
        yield System(server, clock, start(server, clock, records, sealer), records)
    following.cancel()


async def test_code_is_shown_and_the_connection_made_once_the_person_agrees(system: System, jetstream: Nats) -> None:
    with capture_logs() as logs:
        assert system.desk.logins == ["github"]
        begun, handle = await system.desk.begin_login(ANN, "github", "", shared=False)
        assert (begun.user_code, begun.url) == ("WDJB-MJHT", "https://example.com/device")
        made, _, _ = await system.desk.finish_login(ANN, "github", handle)
        assert made is not None
        assert (made.account, await system.used(), system.clock.slept) == ("octocat", "a1", [5.0, 5.0])
        with pytest.raises(ToolError, match="not connected"):
            await system.used(BOB)
    stored = [entry.value or b"" async for entry in (await KeyValue.open(jetstream, CONNECTIONS.name)).entries(">")]
    shown = repr((logs, begun, made, stored, base64.urlsafe_b64decode(handle)))
    assert not any(secret in shown for secret in ("dev1ce", "s3cret", '"a1"', "'a1'"))


async def test_server_is_asked_more_slowly_when_it_says_so(system: System) -> None:
    system.server.says = ["slow_down", "authorization_pending", ""]
    _, handle = await system.desk.begin_login(ANN, "github", "", shared=False)
    made, again, _ = await system.desk.finish_login(ANN, "github", handle)
    assert (made, system.clock.slept) == (None, [5.0, 10.0, 0.0])
    made, _, _ = await system.desk.finish_login(ANN, "github", again)
    assert made is not None
    assert system.clock.slept[3:] == [10.0]


@pytest.mark.parametrize(
    ("says", "said"),
    [("access_denied", "has refused"), ("expired_token", "not typed in time"), ("nonsense", "nonsense")],
)
async def test_refused_or_ended_login_connects_nothing(system: System, says: str, said: str) -> None:
    system.server.says = [says]
    _, handle = await system.desk.begin_login(ANN, "github", "", shared=False)
    with pytest.raises(FailedPrecondition, match=said):
        await system.desk.finish_login(ANN, "github", handle)
    assert not system.desk.connections.of("acme", "ann")


async def test_older_login_that_is_sent_again_asks_no_sooner(system: System) -> None:
    system.server.says = ["authorization_pending"]
    _, handle = await system.desk.begin_login(ANN, "github", "", shared=False)
    await system.desk.finish_login(ANN, "github", handle)
    began_s, count = system.clock.now().timestamp(), len(system.server.asked("POST", "/token"))
    await asyncio.gather(*(system.desk.finish_login(ANN, "github", handle) for _ in range(4)))
    passed_s = system.clock.now().timestamp() - began_s
    assert len(system.server.asked("POST", "/token")) - count <= 1 + passed_s / 5


@pytest.mark.parametrize(
    "nonsense",
    [
        {"expires_in": 1e400},
        {"expires_in": -1},
        {"expires_in": None},
        {"device_code": ["dev1ce"]},
        {"device_code": "x" * 5_000},
        {"user_code": "a\x1b[2J"},
        {"verification_uri": "javascript:alert(1)"},
        {"verification_uri": "http://example.com/device"},
    ],
)
async def test_nonsense_of_the_server_begins_no_login(system: System, nonsense: dict[str, Any]) -> None:
    system.server.begins = nonsense
    with pytest.raises(ConnectionRefused):
        await system.desk.begin_login(ANN, "github", "", shared=False)


async def test_passwords_are_not_guessed_and_codes_not_asked_for_without_end(system: System) -> None:
    for _ in range(10):
        await system.desk.begin_login(ANN, "github", "", shared=False)
    with pytest.raises(ResourceExhausted, match="try again in"):
        await system.desk.begin_login(ANN, "github", "", shared=False)
    with pytest.raises(ResourceExhausted):
        await system.desk.connect(ANN, "github", "a1", shared=False)
    await system.desk.begin_login(BOB, "github", "", shared=False)


@pytest.mark.parametrize("body", [b"[" * 60_000, b"<html>", b'{"expires_in": 1' + b"0" * 400 + b"}", b"\xff"])
async def test_answer_that_is_no_object_is_refused(system: System, body: bytes) -> None:
    _, handle = await system.desk.begin_login(ANN, "github", "", shared=False)
    system.server.raw = body
    with pytest.raises(ConnectionRefused):
        await system.desk.begin_login(BOB, "github", "", shared=False)
    with pytest.raises(ConnectionRefused):
        await system.desk.finish_login(ANN, "github", handle)


async def test_key_that_cannot_sign_is_said(system: System) -> None:
    key = rsa.generate_private_key(65537, 2048)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    door = system.desk._doors["github"]
    assert door.oauth is not None
    for given in (public, "nonsense"):
        with pytest.raises(LoginRefused, match="private key"):
            await door.oauth.client.refresh("", login_of({"client_email": "a@b", "private_key": given}, {}))
    file = {"type": "service_account", "client_email": "a@b", "private_key": "x" * 3_500}
    with pytest.raises(InvalidArgument, match="4096"):
        read_credential(json.dumps(file), is_password=False, takes_files=True)


async def test_code_ends_when_the_person_is_told_and_not_later(system: System) -> None:
    system.server.begins = {"expires_in": 1e9, "interval": "5"}
    begun, handle = await system.desk.begin_login(ANN, "github", "", shared=False)
    assert system.desk.ends_at(begun) == system.clock.now() + timedelta(minutes=30)
    await system.clock.sleep(1_801)
    with pytest.raises(DeviceLoginOver):
        await system.desk.finish_login(ANN, "github", handle)


async def test_token_that_no_header_can_carry_is_refused_unseen(system: System) -> None:
    system.server.says, system.server.suffix = [""], " "
    _, handle = await system.desk.begin_login(ANN, "github", "", shared=False)
    with pytest.raises(ConnectionRefused, match="no usable token") as refused:
        await system.desk.finish_login(ANN, "github", handle)
    assert "a1" not in str(refused.value)


async def test_login_is_its_callers_and_ends(system: System) -> None:
    _, handle = await system.desk.begin_login(ANN, "github", "", shared=False)
    for caller, given in ((BOB, handle), (ANN, "AAAA"), (ANN, f"{handle[:-8]}AAAAAAAA"), (ANN, "é")):
        with pytest.raises(DeviceLoginOver):
            await system.desk.finish_login(caller, "github", given)
    with pytest.raises(InvalidArgument):
        await system.desk.finish_login(ANN, "github", "A" * 33_000)
    await system.clock.sleep(901)
    with pytest.raises(DeviceLoginOver, match="in time"):
        await system.desk.finish_login(ANN, "github", handle)
    assert len(system.server.asked("POST", "/token")) == 0


async def test_tenants_login_is_for_administrators(system: System) -> None:
    with pytest.raises(PermissionDenied):
        await system.desk.begin_login(ANN, "github", "", shared=True)
    await system.log_in(CHIEF, shared=True)
    assert await system.used(BOB) == "a1"


async def test_access_token_is_renewed_once_for_all_and_the_renewing_token_is_kept(
    system: System, jetstream: Nats, sealer: Sealer
) -> None:
    system.server.lasts_s = 3600
    await system.log_in()
    assert (await system.used(), system.server.count) == ("a1", 1)
    await system.clock.sleep(3600)
    other = await KeyValueConnections.open(jetstream, sealer)
    following = asyncio.create_task(other.settings.follow())
    second = System(system.server, system.clock, start(system.server, system.clock, other, sealer), other)
    assert await asyncio.gather(system.used(), second.used(), system.used()) == ["a2"] * 3
    await system.clock.sleep(3600)
    assert (await second.used(), system.server.renewing) == ("a3", "r3")
    following.cancel()


async def test_login_that_the_service_has_ended_says_what_to_do(system: System) -> None:
    system.server.lasts_s = 3600
    await system.log_in()
    await system.clock.sleep(3600)
    system.server.renewing = "withdrawn"
    # It is no fault of the service, so that the tool is not left alone for others.
    with pytest.raises(ToolUnavailable, match="connect GitHub again"):
        await system.used()


async def test_token_that_the_service_refuses_is_renewed_at_once_and_the_call_repeated(system: System) -> None:
    system.server.lasts_s = 3600
    await system.log_in()
    system.refused.add("a1")
    assert await asyncio.gather(*(system.used() for _ in range(3))) == ["a2"] * 3
    assert (system.server.count, set(system.shown)) == (2, {"a1", "a2"})
    assert await system.used() == "a2"


async def test_dead_login_is_left_alone_for_its_user_alone_until_they_log_in_again(system: System) -> None:
    system.server.lasts_s = 3600
    await system.log_in(BOB)
    system.server.says = [""]
    await system.log_in()
    system.refused.add("a2")
    system.server.renewing = "withdrawn"
    before = len(system.server.asked("POST", "/token"))
    for _ in range(5):
        with pytest.raises(ToolUnavailable, match="connect GitHub again"):
            await system.used()
    assert (len(system.server.asked("POST", "/token")) - before, system.shown) == (1, ["a2"])
    (connection,) = system.desk.connections.of("acme", "ann")
    assert "connect GitHub again" in system.desk.connections.refusal("acme", connection)
    assert await system.used(BOB) == "a1"
    await system.clock.sleep(OVER_S)
    with pytest.raises(ToolUnavailable):
        await system.used()
    assert len(system.server.asked("POST", "/token")) - before == 2
    await system.log_in()
    (connection,) = system.desk.connections.of("acme", "ann")
    assert (await system.used(), system.desk.connections.refusal("acme", connection)) == ("a3", "")


async def test_service_that_takes_no_renewed_token_either_is_left_alone(system: System) -> None:
    system.server.lasts_s = 3600
    await system.log_in()
    system.refused.add("*")
    with pytest.raises(CredentialRefused):
        await system.used()
    for _ in range(3):
        with pytest.raises(ToolUnavailable, match="no renewed access token either"):
            await system.used()
    assert system.shown == ["a1", "a2"]


async def test_login_that_came_while_the_former_one_was_refused_is_used(system: System) -> None:
    system.server.lasts_s, system.server.says = 3600, [""]
    await system.log_in()

    async def refuse(connection: Connection) -> str:
        if connection.secret.get_secret_value() == "a2":
            await system.log_in()
        raise CredentialRefused("GitHub does not take the credential")

    with pytest.raises(CredentialRefused):
        await system.desk.connections.ask(ANN, "github", refuse)
    assert await system.used() == "a3"


async def test_refused_token_that_another_process_renews_does_not_cost_the_renewing_token(
    system: System, jetstream: Nats, sealer: Sealer
) -> None:
    system.server.lasts_s, system.server.says = 3600, [""]
    await system.log_in()
    other = await KeyValueConnections.open(jetstream, sealer)
    second = System(system.server, system.clock, start(system.server, system.clock, other, sealer), other, {"a1", "a2"})
    following = asyncio.create_task(other.settings.follow())
    asked, goes_on = asyncio.Event(), asyncio.Event()
    respond = system.server.respond

    async def respond_later(request: Recorded) -> web.Response:
        response = await respond(request)
        if system.server.count == 3:
            asked.set()
            await goes_on.wait()
        return response

    async def refuse(connection: Connection) -> str:
        if connection.secret.get_secret_value() == "a2":
            system.server.respond = respond_later  # type: ignore[method-assign]
            renewals.append(asyncio.create_task(second.used()))
            await asked.wait()
        raise CredentialRefused("GitHub does not take the credential")

    renewals: list[asyncio.Task[str]] = []
    with pytest.raises(CredentialRefused):
        await system.desk.connections.ask(ANN, "github", refuse)
    goes_on.set()
    assert (await renewals[0], await system.used(), system.server.renewing) == ("a3", "a3", "r3")
    await system.clock.sleep(3600)
    assert await system.used() == "a4"
    following.cancel()


async def test_renewing_token_outlives_a_store_that_is_away_for_a_moment(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.server.lasts_s = 3600
    await system.log_in()
    await system.clock.sleep(3600)
    monkeypatch.setattr(tokens, "_STORE_AGAIN_S", 0.0)
    replaced, failures = system.records.replace_login, [False, True]  # before and after it is written

    async def replace_login(tenant_id: str, name: str, known: Login, login: Login) -> bool:
        is_renewed = not login.renewing_until_s
        if is_renewed and failures:
            if failures.pop(0):
                await replaced(tenant_id, name, known, login)
            raise Unavailable("the message store does not answer")
        return await replaced(tenant_id, name, known, login)

    monkeypatch.setattr(system.records, "replace_login", replace_login)
    assert await system.used() == "a2"
    await system.clock.sleep(3600)
    assert (await system.used(), system.server.renewing) == ("a3", "r3")


async def test_code_is_not_spent_where_the_connection_cannot_be_stored(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.server.says = [""]
    _, handle = await system.desk.begin_login(ANN, "github", "", shared=False)

    async def away(*_: object) -> None:
        raise Unavailable("the message store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(system.records, "put", away)
        made, again, trouble = await system.desk.finish_login(ANN, "github", handle)
    assert made is None
    assert "cannot be stored now (the message store does not answer)" in trouble
    system.server.says = ["expired_token"]  # the code was good once
    made, _, _ = await system.desk.finish_login(ANN, "github", again)
    assert (made is not None, await system.used()) == (True, "a1")


async def test_login_that_was_forgotten_meanwhile_is_not_connected(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty token would be an empty password at a mail server."""
    system.server.lasts_s = 3600
    await system.log_in()
    monkeypatch.setattr(system.records, "login", lambda *_: None)
    with pytest.raises(ToolUnavailable, match="not connected"):
        await system.used()


async def test_server_that_is_away_or_fails_is_said_and_the_login_goes_on(system: System) -> None:
    _, handle = await system.desk.begin_login(ANN, "github", "", shared=False)
    system.server.failures.append(Failure("POST /token", 503))
    with pytest.raises(Unavailable):
        await system.desk.finish_login(ANN, "github", handle)
    made, _, _ = await system.desk.finish_login(ANN, "github", handle)
    assert made is not None


def test_secrets_of_a_client_go_to_no_open_address() -> None:
    with pytest.raises(ValidationError, match="https"):
        ToolsSettings.model_validate({"tools_oauth": {"github": {"token_url": "http://example.com/token"}}})
    with pytest.raises(ValidationError):
        ToolsSettings.model_validate({"tools_oauth": {"gitlab": {}}})
