"""Logins of tenants at MCP servers: the flow of the specification against servers of its own, and where tokens go: nowhere else."""

import asyncio
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from kit.access.keys import KeySource, new_key, parse_signing_key
from kit.access.principal import Principal
from kit.access.sealing import CannotOpen, Sealer
from kit.errors import NotFound
from kit.jetstream import KeyValue, Nats
from kit.network.egress import AddressRefused, EgressGuard, parse_networks
from services.tools.adapters.mcp.logins import McpLoginClient
from services.tools.adapters.mcp.server_records import KeyValueServerRecords
from services.tools.adapters.mcp.servers import McpServer
from services.tools.adapters.mcp.sessions import SessionPool
from services.tools.calling.progress import unheard
from services.tools.errors import NoSealingKey
from services.tools.models import Call, Caller
from services.tools.server_admin import ServerAdmin
from services.tools.server_logins import ServerLogins
from services.tools.settings import McpServerSettings
from services.tools.sources.logins import AskedLogin, LoginRefused
from services.tools.sources.remote import RemoteTools
from services.tools.sources.remote_records import ServerRecord
from services.tools.sources.tokens import Tokens
from services.tools.state import SERVERS
from tests.service.tools.oauth_server import Protected, protected

ANN, BOB = Principal("acme", "ann"), Principal("acme", "bob")
BACK = "http://127.0.0.1:4711/callback"
LOOPBACK = EgressGuard(parse_networks("127.0.0.0/8"))


@dataclass
class Process:
    """A process of the tools service, as far as MCP servers go."""

    records: KeyValueServerRecords
    remote: RemoteTools
    admin: ServerAdmin
    logins: ServerLogins
    clock: "Clock"
    tokens: Tokens

    async def log_in(self, servers: Protected, **asked: Any) -> Any:
        """Ann logs in at the server `crm`, which is added first."""
        await self.admin.put(ANN, "crm", servers.url)
        address, _ = await self.logins.begin(ANN, "crm", AskedLogin(BACK, **asked))
        answer = servers.log_in(address)
        return await self.logins.finish(ANN, "crm", answer["state"], answer["code"], answer["iss"])

    async def find(self) -> str:
        """What the tool `find` answers."""
        (listed,) = (await self.remote.servers("acme", again="crm"))[0].tools
        await self.admin.approve(ANN, "crm", "find", listed.remote.digest, reads_only=True)
        (tool,) = await self.remote.list(Caller("acme", "ann"))
        output = await self.remote.call(tool, Call("acme", tool.name, {"text": "Ada"}), unheard)
        return str(output.content["text"])


@dataclass
class Clock:
    """The time, and how far it was moved."""

    by: timedelta = field(default_factory=timedelta)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.by


def sealer_of(path: Path) -> Sealer:
    """Reads the file again whenever it is asked."""
    clock = itertools.count(step=60.0)
    return Sealer(KeySource(parse_signing_key, path=path, setting="TEST", clock=lambda: next(clock)))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(new_key("tools")))
    return path


Start = Callable[..., Any]


@pytest.fixture
def process(jetstream: Nats, key: Path) -> Start:
    @asynccontextmanager
    async def start(guard: EgressGuard = LOOPBACK, path: Path | None = key) -> AsyncIterator[Process]:
        records = await KeyValueServerRecords.open(jetstream, sealer_of(path) if path else None)
        following = asyncio.create_task(records.settings.follow())
        clock = Clock()
        client = McpLoginClient(guard, clock.now)
        tokens = Tokens(records, client, clock.now)
        pool = SessionPool(8, 60)

        def connect(tenant_id: str, name: str, record: ServerRecord) -> McpServer:
            access = tokens.of(tenant_id, name, record.url)
            return McpServer(name, McpServerSettings(url=record.url), guard, pool, access)

        remote = RemoteTools({}, records, connect)
        admin = ServerAdmin(remote, records, guard, client, clock.now)
        try:
            yield Process(records, remote, admin, ServerLogins(admin, records, client, clock.now), clock, tokens)
        finally:
            await pool.close()
            following.cancel()

    return start


async def test_person_logs_in_and_tools_are_called_with_the_token(process: Start, jetstream: Nats) -> None:
    async with protected() as servers, process() as acme:
        before = await acme.admin.put(ANN, "crm", servers.url)
        assert (before.is_logged_in, "tool-servers login crm" in before.error) == (False, True)
        with capture_logs() as logs:
            listed = await acme.log_in(servers)
            assert (listed.is_logged_in, listed.error, len(listed.tools)) == (True, "", 1)
            told = await acme.find()
        (token,), (renewing,) = servers.access, servers.renewable
        assert told == "found Ada; tokens: [hidden]"
        assert token not in repr((logs, listed, acme.records.login("acme", "crm")))
        kept = await KeyValue.open(jetstream, SERVERS.name)
        async for entry in kept.entries(">"):
            assert token.encode() not in (entry.value or b"")
        await acme.logins.end(ANN, "crm")
        assert not (await acme.remote.servers("acme", again="crm"))[0].is_logged_in
        assert servers.revoked == [renewing, token]


async def test_client_that_was_registered_by_hand_shows_its_secret(process: Start) -> None:
    async with protected() as servers, process() as acme:
        servers.registered["ours"], servers.secret = {"redirect_uris": [BACK]}, "client-secret-1"
        listed = await acme.log_in(servers, client_id="ours", client_secret=SecretStr(servers.secret), scope="a b")
        assert (listed.is_logged_in, list(servers.registered)) == (True, ["ours"])
        assert servers.secret not in repr((listed, acme.records.login("acme", "crm")))


async def test_token_is_renewed_once_when_it_ends_also_beside_another_process(process: Start) -> None:
    async with protected() as servers, process() as acme, process() as other:
        await acme.log_in(servers)
        servers.access.clear()
        for each in (acme, other):
            each.clock.by = timedelta(hours=2)
        await other.records.settings.wait_for(lambda: other.records.login("acme", "crm") is not None)
        assert {*await asyncio.gather(acme.find(), acme.find())} == {"found Ada; tokens: [hidden]"}
        assert [form["grant_type"] for form in servers.asked] == ["authorization_code", "refresh_token"]
        for each in (acme, other):
            each.clock.by = timedelta(hours=2) * 2
        both = await asyncio.gather(acme.find(), other.find())
        assert all(each.startswith("found Ada") for each in both)
        assert len(servers.asked) == 3, "one of the two has renewed it"


async def test_renewal_goes_on_when_its_call_is_cut_off_and_its_tokens_are_revoked_after_a_logout(
    process: Start,
) -> None:
    async with protected() as servers, process() as acme:
        await acme.log_in(servers)
        acme.clock.by = timedelta(hours=2)
        servers.may_answer.clear()
        for log_out in (False, True):
            call = asyncio.create_task(acme.find())
            while len(servers.asked) < 2 + log_out:
                await asyncio.sleep(0.01)
            call.cancel()
            if log_out:
                await acme.logins.end(ANN, "crm")
                assert len(servers.revoked) == 2
            (renewal,) = acme.tokens._renewing.values()
            servers.may_answer.set()
            renewed = await renewal
            if log_out:
                assert renewed is None
                assert len(servers.revoked) == 4
                assert not servers.renewable
                break
            assert (await acme.find()).startswith("found Ada")
            acme.clock.by *= 2
            servers.may_answer.clear()


async def test_another_process_renews_where_the_one_that_began_has_died(process: Start) -> None:
    async with protected() as servers, process() as acme:
        await acme.log_in(servers)
        acme.clock.by = timedelta(hours=2)
        login = acme.records.login("acme", "crm")
        assert login is not None
        until_s = acme.clock.now().timestamp() + 0.2
        assert await acme.records.replace_login("acme", "crm", login, replace(login, renewing_until_s=until_s))
        assert (await acme.find()).startswith("found Ada")
        assert acme.clock.now().timestamp() > until_s


async def test_login_that_is_over_says_how_to_log_in_again(process: Start) -> None:
    async with protected() as servers, process() as acme:
        await acme.log_in(servers)
        servers.access.clear()
        servers.renewable.clear()
        (server,) = await acme.remote.servers("acme", again="crm")
        assert "renewed with the next call" in server.error
        (server,) = await acme.remote.servers("acme", again="crm")
        assert "is over" in server.error
        assert "`groundwork tool-servers login crm`" in server.error


async def test_answer_of_somebody_else_or_of_another_login_is_refused(process: Start) -> None:
    async with protected() as servers, process() as acme:
        await acme.admin.put(ANN, "crm", servers.url)
        address, _ = await acme.logins.begin(ANN, "crm", AskedLogin(BACK))
        answer = servers.log_in(address)
        for who, state in ((BOB, answer["state"]), (ANN, "guessed")):
            with pytest.raises(LoginRefused, match="somebody else"):
                await acme.logins.finish(who, "crm", state, answer["code"], answer["iss"])
        with pytest.raises(NotFound):
            await acme.logins.finish(Principal("other", "ann"), "crm", answer["state"], answer["code"], answer["iss"])
        with pytest.raises(LoginRefused) as refused:
            await acme.logins.finish(ANN, "crm", answer["state"], answer["code"], "http://evil.example")
        assert answer["code"] not in str(refused.value)
        with pytest.raises(LoginRefused, match="waits any more"):
            await acme.logins.finish(ANN, "crm", answer["state"], answer["code"], answer["iss"])
        assert not servers.asked
        address, until = await acme.logins.begin(ANN, "crm", AskedLogin(BACK))
        answer = servers.log_in(address)
        acme.clock.by = until - acme.clock.now() + timedelta(seconds=1)
        with pytest.raises(LoginRefused, match="waits any more"):
            await acme.logins.finish(ANN, "crm", answer["state"], answer["code"], answer["iss"])


async def test_another_address_has_no_login(process: Start) -> None:
    async with protected() as servers, process() as acme:
        await acme.log_in(servers)
        listed = await acme.admin.put(ANN, "crm", f"{servers.issuer}/elsewhere")
        assert not listed.is_logged_in
        assert not (await acme.admin.put(ANN, "crm", servers.url)).is_logged_in


async def test_authorization_server_inside_is_not_asked(process: Start) -> None:
    async with protected() as servers, process(EgressGuard(look_up=_found)) as acme:
        await acme.records.put("acme", "crm", ServerRecord(servers.url))
        with pytest.raises((AddressRefused, LoginRefused), match="not on the public internet"):
            await acme.logins.begin(ANN, "crm", AskedLogin(BACK))
        assert not servers.registered


async def _found(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


async def test_installation_without_a_key_keeps_no_login(process: Start) -> None:
    async with protected() as servers, process(path=None) as acme:
        with pytest.raises(NoSealingKey):
            await acme.log_in(servers)


async def test_login_outlives_a_change_of_the_key_and_who_comes_too_late_is_told(
    process: Start, key: Path, tmp_path: Path
) -> None:
    async with protected() as servers, process() as acme:
        await acme.log_in(servers)
        await acme.records.put("acme", "other", ServerRecord("https://a.example", headers={"A": SecretStr("secret-1")}))
        late = tmp_path / "late.json"
        late.write_text(json.dumps(new_key("tools")))
        async with process(path=late) as other:
            (server, *_) = await other.remote.servers("acme", again="crm")
            assert "cannot be read any more" in server.error
            assert "tool-servers login crm" in server.error
            assert not server.is_logged_in
            await asyncio.to_thread(shutil.copyfile, late, key)
            await acme.records.secrets.reseal()
            await other.records.settings.wait_for(lambda: not other.records.of("acme")["other"].sealed)
            assert other.records.of("acme")["other"].headers["A"].get_secret_value() == "secret-1"
            await other.records.settings.wait_for(lambda: _opens(other))
            (server, *_) = await other.remote.servers("acme", again="crm")
            assert (server.error, server.is_logged_in) == ("", True)


def _opens(process: Process) -> bool:
    try:
        return process.records.login("acme", "crm") is not None
    except CannotOpen:
        return False
