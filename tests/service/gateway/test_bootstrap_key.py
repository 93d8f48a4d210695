"""The API key that stands in a setting, with a real message store behind the gateway."""

import asyncio
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr, ValidationError
from starlette.datastructures import Headers

from kit.access.api_keys import new_text
from kit.access.principal import OPERATOR
from kit.errors import FailedPrecondition
from kit.jetstream import Nats
from kit.testing.nats import NatsServer
from services.gateway.access.keys import Keys
from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import Clocks, Live, Settings, World, in_process
from tests.service.gateway.key_desk import KeyDesk, bearer
from tests.service.gateway.sse_reader import received

TEXT = "correct-horse-battery-staple"
KEY = SecretStr(TEXT)


@pytest.fixture
def keyed(settings: Settings, nats_url: str) -> Settings:
    def make(**changes: Any) -> GatewaySettings:
        return settings(auth="api_keys", nats_url=nats_url, wrong_api_keys_per_minute=5, **changes)

    return make


async def status(client: httpx.AsyncClient, text: str) -> int:
    return (await client.get("/v1/runs", headers=bearer(text))).status_code


async def test_its_holder_is_the_local_user_with_every_right(keyed: Settings, world: World) -> None:
    path = "/v1/collections/default/documents"
    async with in_process(keyed(bootstrap_key=KEY, local_tenant_id="acme", local_subject="root")) as client:
        for headers in (bearer(TEXT), {"X-API-Key": TEXT}):
            assert (await client.post(path, headers=headers, files={"file": ("a.txt", b"hello")})).status_code == 202
    (caller,) = {(each.tenant_id, each.subject, each.scopes) for each in world.ingest.callers}
    assert caller == ("acme", "root", frozenset({OPERATOR}))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("hunter2-hunter2", id="a-passphrase"),
        pytest.param("gw_short-and-odd", id="begins-like-a-key"),
        pytest.param(new_text("0" * 24).get_secret_value(), id="has-the-form-of-a-key"),
    ],
)
async def test_any_text_is_a_key_also_one_that_looks_like_another(keyed: Settings, text: str) -> None:
    async with in_process(keyed(bootstrap_key=SecretStr(text))) as client:
        assert await status(client, text) == 200
        for wrong in (text[:-1], text + "x", text.upper()):
            assert await status(client, wrong) == 401


async def test_it_makes_further_keys_and_the_audit_log_names_it(
    keyed: Settings, jetstream: Nats, logs: list[MutableMapping[str, Any]]
) -> None:
    desk = await KeyDesk.open(jetstream)
    async with in_process(keyed(bootstrap_key=KEY), key=TEXT) as client:
        made = (await client.post("/v1/keys", json={"name": "k", "subject": "anna", "scopes": ["query"]})).json()
        assert await status(client, made["key"]) == 200
        assert [key["id"] for key in (await client.get("/v1/keys")).json()["keys"]] == [made["id"]]
        keys: Keys = client._transport.app.state.api_keys  # type: ignore[attr-defined]
        await keys._uses.flush(desk.store)
    lines = [line for line in logs if line["event"] == "audit"]
    assert [(line["action"], line["key_id"], line["subject"]) for line in lines] == [
        ("key_created", "bootstrap", "local-user"),
        ("request", "bootstrap", "local-user"),
    ]
    assert TEXT not in repr(logs)
    assert "bootstrap" not in await desk.store.last_uses("local"), "it has no record"


async def test_wrong_ones_are_limited_and_the_right_one_is_let_in(keyed: Settings) -> None:
    async with in_process(keyed(bootstrap_key=KEY), clocks=Clocks()) as client:
        answers = [await status(client, TEXT[:-1]) for _ in range(6)]
        assert answers == [401] * 5 + [429]
        assert await status(client, TEXT) == 200


async def test_it_is_good_while_the_message_store_is_silent(keyed: Settings, nats: NatsServer) -> None:
    clocks = Clocks()
    async with in_process(keyed(bootstrap_key=KEY), clocks=clocks) as client:
        await nats.stop()
        clocks.seconds += 31
        assert await status(client, TEXT) == 200
        assert await status(client, new_text("0" * 24).get_secret_value()) == 503
        ready = await client.get("/readyz", headers=bearer(TEXT))
        assert "has not answered" in ready.json()["services"]["gateway"]["detail"]


async def test_it_is_good_before_the_message_store_has_ever_answered(keyed: Settings, nats: NatsServer) -> None:
    await nats.stop()
    keys = Keys(keyed(bootstrap_key=KEY), now=Clocks().now, clock=Clocks().clock)
    admission = await keys.door.admit(Headers(bearer(TEXT)), "127.0.0.1")
    assert (admission.key and admission.key.key_id) == "bootstrap"


async def until(client: httpx.AsyncClient, text: str, expected: int) -> None:
    """A changed file is noticed within a second or two."""
    async with asyncio.timeout(60):
        while await status(client, text) != expected:
            await asyncio.sleep(0.1)


async def test_a_file_is_read_again_when_it_changes(keyed: Settings, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{TEXT}\n")
    settings = keyed(bootstrap_key_file=file).model_copy(update={"wrong_api_keys_per_minute": 1_000_000})
    async with in_process(settings) as client:
        assert await status(client, TEXT) == 200
        file.write_text("another-text-of-it")
        await until(client, "another-text-of-it", 200)
        assert await status(client, TEXT) == 401
        file.write_text("")
        await until(client, "another-text-of-it", 401)
        file.write_text(TEXT)
        await until(client, TEXT, 200)
        file.unlink()
        await until(client, TEXT, 401)


async def test_an_event_stream_ends_when_the_key_is_replaced(live: Live, nats_url: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(TEXT)
    async with (
        live(auth="api_keys", nats_url=nats_url, bootstrap_key_file=file) as client,
        client.stream("GET", "/v1/events", headers=bearer(TEXT)) as response,
    ):
        events = received(response)
        seen = [await anext(events)]
        file.write_text("another-text-of-it")
        async with asyncio.timeout(60):
            seen += [event async for event in events]
    assert (seen[-1].event, seen[-1].data["reason"]) == ("error", "API_KEY_REVOKED")


@pytest.mark.parametrize("text", ["", "too-short", "with a space in it", "ключ-ключ-ключ", "x" * 1001])
def test_what_cannot_be_one_is_refused_with_a_sentence(keyed: Settings, tmp_path: Path, text: str) -> None:
    with pytest.raises(ValidationError, match="12 to 1000 printable ASCII characters"):
        keyed(bootstrap_key=SecretStr(text))
    file = tmp_path / "key"
    file.write_text(text)
    with pytest.raises(FailedPrecondition, match="12 to 1000 printable ASCII characters"):
        Keys(keyed(bootstrap_key_file=file), now=Clocks().now, clock=Clocks().clock)


def test_settings_that_do_not_go_together_are_refused(settings: Settings, keyed: Settings, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="set GROUNDWORK_AUTH=api_keys"):
        settings(bootstrap_key=KEY)
    with pytest.raises(ValidationError, match="set GROUNDWORK_AUTH=api_keys"):
        settings(bootstrap_key_file=tmp_path)
    with pytest.raises(ValidationError, match="set one of the two"):
        keyed(bootstrap_key=KEY, bootstrap_key_file=tmp_path)
    with pytest.raises(FailedPrecondition, match="missing"):
        Keys(keyed(bootstrap_key_file=tmp_path / "missing"), now=Clocks().now, clock=Clocks().clock)
