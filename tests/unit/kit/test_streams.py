"""Questions to the message store that may not be asked twice without need."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kit.errors import DataLoss
from kit.jetstream import streams
from kit.jetstream.cluster import ServerChoice
from kit.jetstream.connection import Nats
from kit.jetstream.failures import StoreSilent, translated_errors
from kit.jetstream.streams import api_request

PEER_OFFLINE = {
    "error": {"code": 400, "err_code": 10005, "description": "no suitable peers for placement, peer offline"}
}
NAME_IN_USE = {"error": {"code": 400, "err_code": 10058, "description": "stream name already in use"}}
DONE = {"deliver_subject": "there"}


@dataclass
class Message:
    data: bytes


@dataclass
class FakeClient:
    """Gives its answers in turn, the last again and again. `asked`: when, by the loop's clock."""

    answers: Sequence[dict[str, Any]]
    asked: list[float] = field(default_factory=list)

    async def request(self, subject: str, body: bytes, timeout: float) -> Message:
        self.asked.append(asyncio.get_running_loop().time())
        return Message(json.dumps(self.answers[min(len(self.asked), len(self.answers)) - 1]).encode())


async def ask(client: FakeClient) -> dict[str, Any]:
    nats = Nats(cast("Any", client), cast("Any", None), ServerChoice())
    with translated_errors("stream S"):
        return await api_request(nats, "$JS.API.STREAM.RESTORE.S", {}, "S")


async def test_what_the_store_cannot_do_now_is_asked_for_again() -> None:
    client = FakeClient([PEER_OFFLINE, PEER_OFFLINE, DONE])
    assert await ask(client) == DONE
    assert len(client.asked) == 3


async def test_what_the_store_says_no_to_is_asked_for_once() -> None:
    client = FakeClient([NAME_IN_USE, DONE])
    with pytest.raises(DataLoss, match="stream name already in use"):
        await ask(client)
    assert len(client.asked) == 1


async def test_store_that_never_can_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PATIENCE_S", 0.3)
    client = FakeClient([PEER_OFFLINE])
    with pytest.raises(StoreSilent, match="peer offline"):
        await ask(client)
    assert len(client.asked) > 1
