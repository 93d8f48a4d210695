"""The first API key: made once, at the start or by command, on a real message store."""

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pydantic import SecretStr
from typer.testing import CliRunner

from cli.main import app
from kit.access.api_keys import read_shown
from kit.access.principal import OPERATOR
from kit.jetstream import Nats
from kit.stores.api_key_store import ApiKeyStore
from services.standalone import first_key
from services.standalone.settings import StandaloneSettings

Command = Callable[..., Result]


@pytest.fixture
def command(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("GROUNDWORK_NATS_URL", nats_url)
    monkeypatch.setenv("GROUNDWORK_LOCAL_SUBJECT", "olga")
    return lambda *options: CliRunner().invoke(app, ["keys", "bootstrap", *options], catch_exceptions=False)


async def test_the_start_says_a_key_once(jetstream: Nats, nats_url: str) -> None:
    said: list[str] = []
    settings = StandaloneSettings(auth="api_keys", local_tenant_id="acme", local_subject="olga")
    for _ in range(2):
        await first_key.at_start(nats_url, settings, said.append, "groundwork")
    (text,) = said
    shown = read_shown(next(word for word in text.split() if word.startswith("gw_")))
    (key,) = await (await ApiKeyStore.open(jetstream)).all()
    assert (key.key_id, key.tenant_id, key.subject, key.scopes) == (shown.key_id, "acme", "olga", (OPERATOR,))


async def test_the_start_makes_no_key_where_one_stands_in_the_settings(jetstream: Nats, nats_url: str) -> None:
    said: list[str] = []
    settings = StandaloneSettings(auth="api_keys", bootstrap_key=SecretStr("correct-horse-battery-staple"))
    await first_key.at_start(nats_url, settings, said.append, "groundwork")
    assert not said
    assert not await (await ApiKeyStore.open(jetstream)).all()


async def test_the_command_makes_one_key_and_another_when_that_is_lost(command: Command, tmp_path: Path) -> None:
    first = await asyncio.to_thread(command)
    assert read_shown(first.stdout.strip())
    refused = await asyncio.to_thread(command)
    assert (refused.exit_code, refused.stdout, "--another" in refused.stderr) == (1, "", True)
    assert (await asyncio.to_thread(command, "--if-none", "--output", str(tmp_path / "none"))).exit_code == 0
    assert not (tmp_path / "none").exists()
    file = tmp_path / "key"
    made = await asyncio.to_thread(command, "--another", "--output", str(file))
    assert (made.exit_code, made.stdout) == (0, "")
    assert read_shown(file.read_text().strip())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = await asyncio.to_thread(command, "--another", "--output", str(file))
    assert (again.exit_code, "exists already" in again.stderr) == (1, True)
