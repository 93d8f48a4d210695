"""Connections of users and tenants: who uses which, and where their credentials are: sealed in the store, and nowhere else."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from kit.access.keys import KeySource, new_key, parse_signing_key
from kit.access.principal import ADMIN, QUERY, Principal
from kit.access.sealing import Sealer
from kit.errors import FailedPrecondition, InvalidArgument, PermissionDenied, Unavailable
from kit.jetstream import KeyValue, Nats
from services.tools import toolbox
from services.tools.adapters.connection_records import KeyValueConnections
from services.tools.calling.processes import Processes
from services.tools.connections.desk import ConnectionDesk, Door
from services.tools.connections.device_login import DeviceLogins
from services.tools.errors import NoSealingKey, ServiceUnavailable, ToolError
from services.tools.models import Caller
from services.tools.sources.discovery import discover
from services.tools.sources.modules import Connected, module_source
from services.tools.state import CONNECTIONS

ANN, BOB = Principal("acme", "ann", frozenset({QUERY})), Principal("acme", "bob", frozenset({QUERY}))
ADMINISTRATOR = Principal("acme", "chief", frozenset({ADMIN}))
SECRET = "github_pat_hunter2"
NOW = datetime(2026, 11, 28, tzinfo=UTC)


@dataclass
class Process:
    """A process of the tools service, as far as connections go."""

    desk: ConnectionDesk
    records: KeyValueConnections

    def used(self, caller: Principal) -> str:
        """The credential that the caller's tools use."""
        found = self.desk.connections.find(caller.tenant_id, caller.subject, "github")
        return found.secret.get_secret_value() if found else ""

    async def offered(self, caller: Principal) -> set[str]:
        """Tools of GitHub that the caller is offered."""
        modules = module_source(discover(toolbox), Processes(1), lambda _: pytest.fail("nothing is called"))
        tools = await Connected(modules, self.desk.connections).list(Caller(caller.tenant_id, caller.subject))
        return {each.name for each in tools if each.name.startswith("github_") and each.refusal is None}


async def account(secret: SecretStr, user: str, *, is_token: bool) -> str:
    given = secret.get_secret_value()
    if given == "away":
        raise ServiceUnavailable("it does not answer")
    if "hunter" not in given:
        raise ToolError("it does not take the credential")
    return f"holder-of-{given[-1]}"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(new_key("tools")))
    return path


Start = Callable[..., Any]


@pytest.fixture
def process(jetstream: Nats, key: Path) -> Start:
    @asynccontextmanager
    async def start(address: str = "https://api.github.com", *, has_key: bool = True) -> AsyncIterator[Process]:
        clock = itertools.count(step=60.0)
        keys = KeySource(parse_signing_key, path=key, setting="TEST", clock=lambda: next(clock))
        sealer = Sealer(keys) if has_key else None
        records = await KeyValueConnections.open(jetstream, sealer)
        following = asyncio.create_task(records.settings.follow())
        doors = {"github": Door(address, account)} if address else {}
        try:
            yield Process(ConnectionDesk(records, doors, DeviceLogins(sealer, lambda: NOW), lambda: NOW), records)
        finally:
            following.cancel()

    return start


async def test_own_connection_comes_before_the_tenants_and_is_nobody_elses(process: Start) -> None:
    async with process() as acme:
        assert await acme.offered(ANN) == set()
        await acme.desk.connect(ADMINISTRATOR, "github", "hunter1", shared=True)
        own = await acme.desk.connect(ANN, "github", SECRET, shared=False)
        assert (own.account, own.is_shared) == ("holder-of-2", False)
        assert (acme.used(ANN), acme.used(BOB)) == (SECRET, "hunter1")
        assert (acme.used(Principal("other", "ann")), acme.used(Principal("acme", "tenant"))) == ("", "hunter1")
        assert [each.subject for each in acme.desk.connections.of("acme", "bob")] == [""]
        assert "github_search" in await acme.offered(BOB)
        await acme.desk.forget(ANN, "github", shared=False)
        await acme.desk.forget(ANN, "github", shared=False)
        assert acme.used(ANN) == "hunter1"
        await acme.desk.forget(ADMINISTRATOR, "github", shared=True)
        assert await acme.offered(BOB) == set()


async def test_tenants_connection_is_for_administrators_to_change(process: Start) -> None:
    async with process() as acme:
        with pytest.raises(PermissionDenied):
            await acme.desk.connect(ANN, "github", SECRET, shared=True)
        with pytest.raises(PermissionDenied):
            await acme.desk.forget(ANN, "github", shared=True)


async def test_credential_is_sealed_in_the_store_and_in_no_log(process: Start, jetstream: Nats) -> None:
    with capture_logs() as logs:
        async with process() as acme:
            made = await acme.desk.connect(ANN, "github", SECRET, shared=False)
            listed = acme.desk.connections.of("acme", "ann")
    kept = await KeyValue.open(jetstream, CONNECTIONS.name)
    stored = [entry.value or b"" async for entry in kept.entries(">")]
    assert len(stored) == 1
    assert SECRET not in repr((logs, made, listed, stored))


async def test_restarted_process_and_a_second_one_know_it_and_a_moved_record_opens_nothing(
    process: Start, jetstream: Nats
) -> None:
    async with process() as one, process() as two:
        await one.desk.connect(ANN, "github", SECRET, shared=False)
        await two.records.settings.wait_for(lambda: two.used(ANN) == SECRET)
    bucket = await KeyValue.open(jetstream, CONNECTIONS.name)
    (entry,) = [entry async for entry in bucket.entries(">")]
    await bucket.put("acme.tenant.github", (entry.value or b"").replace(b'"ann"', b'""'))
    async with process() as again:
        assert again.used(ANN) == SECRET
        assert again.used(BOB) == ""
        (moved,) = again.desk.connections.of("acme", "bob")
        assert "connect the service again" in again.desk.connections.problem(moved)


async def test_removal_reaches_a_record_that_the_process_has_not_heard_of_or_cannot_read(
    process: Start, jetstream: Nats
) -> None:
    bucket = await KeyValue.open(jetstream, CONNECTIONS.name)
    async with process() as acme:
        await acme.desk.connect(ANN, "github", SECRET, shared=False)
        (entry,) = [entry async for entry in bucket.entries(">")]
        acme.records.secrets.forget(entry.key)  # as one whose watch stands still
        acme.records._known.clear()
        await acme.desk.forget(ANN, "github", shared=False)
        assert [each.value async for each in bucket.entries(">")] == [b"null"]
        unreadable = await bucket.put(entry.key, b"{}")
        await acme.records.settings.wait_for(lambda: acme.records.settings._applied_revision >= unreadable)
        await acme.desk.forget(ANN, "github", shared=False)
        assert [each.value async for each in bucket.entries(">")] == [b"null"]


async def test_changed_key_seals_anew_while_a_process_has_seen_both(process: Start, key: Path) -> None:
    async with process() as acme:
        await acme.desk.connect(ANN, "github", SECRET, shared=False)
        await asyncio.to_thread(key.write_text, json.dumps(new_key("tools")))
        await acme.records.secrets.reseal()
        async with process() as later:
            await later.records.settings.wait_for(lambda: later.used(ANN) == SECRET)


async def test_other_address_or_none_ends_the_use_and_says_why(process: Start) -> None:
    async with process() as acme:
        await acme.desk.connect(ANN, "github", SECRET, shared=False)
    for address, said in (("https://github.example.com/api/v3", "another address"), ("", "does not allow")):
        async with process(address) as changed:
            assert (changed.used(ANN), await changed.offered(ANN)) == ("", set())
            (connection,) = changed.desk.connections.of("acme", "ann")
            assert said in changed.desk.connections.problem(connection)


@pytest.mark.parametrize(
    ("service", "secret", "kind"),
    [
        ("gitlab", SECRET, InvalidArgument),
        ("github", "two words hunter", InvalidArgument),
        ("github", "", InvalidArgument),
        ("github", "hunter\r\nX: y", InvalidArgument),
        ("github", "wrong", FailedPrecondition),
        ("github", "away", Unavailable),
    ],
)
async def test_what_cannot_be_connected_leaves_what_is_there(
    process: Start, service: str, secret: str, kind: type[Exception]
) -> None:
    async with process() as acme:
        await acme.desk.connect(ANN, "github", SECRET, shared=False)
        with pytest.raises(kind) as refusal:
            await acme.desk.connect(ANN, service, secret, shared=False)
        assert (acme.used(ANN), secret in str(refusal.value) and secret not in ("", "away")) == (SECRET, False)


async def test_installation_without_a_key_keeps_nothing(process: Start) -> None:
    async with process(has_key=False) as acme:
        with pytest.raises(NoSealingKey):
            await acme.desk.connect(ANN, "github", SECRET, shared=False)
