"""What a gateway knows of API keys, over a store that the test plays."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from starlette.datastructures import Headers

from kit import deadline
from kit.access.api_keys import ApiKeyExpired, ApiKeyInvalid, read_shown
from kit.errors import Unavailable
from kit.stores.api_key_store import ApiKeyStore, KeyChange, bootstrap_key
from services.gateway.access import key_ring
from services.gateway.access.auth import KeyDoor
from services.gateway.access.bootstrap_key import BootstrapKey
from services.gateway.access.key_ring import ApiKeysUnknown, KeyRing
from services.gateway.serving.rate_limiter import RateLimiter
from services.gateway.settings import GatewaySettings

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@dataclass
class PlayedStore:
    """A bucket as a watcher sees it: what is listed, what is told, and what its leader says of itself."""

    listed: list[KeyChange] = field(default_factory=list)
    told: "asyncio.Queue[KeyChange | None]" = field(default_factory=asyncio.Queue)
    revision: int = 0
    is_away: bool = False
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self) -> AsyncGenerator[KeyChange | None]:
        for each in self.listed:
            yield each
        yield None
        while (change := await self.told.get()) is not None:
            yield change
        raise Unavailable("the watch broke")

    async def last_revision(self) -> int:
        self.asked.set()
        if self.is_away:
            raise Unavailable("the message store does not answer")
        return self.revision


@dataclass
class Played:
    """A ring that follows a played store, and its clocks."""

    store: PlayedStore = field(default_factory=PlayedStore)
    day: datetime = NOW
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.ring = KeyRing(stale_after_s=30.0, now=lambda: self.day, clock=lambda: self.seconds)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[KeyRing]:
        task = asyncio.create_task(self.ring.follow(cast("ApiKeyStore", self.store)))
        try:
            async with asyncio.timeout(60):
                yield self.ring
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until_asked(self) -> None:
        """The store was asked once more than now."""
        for _ in range(2):
            self.store.asked.clear()
            await self.store.asked.wait()


@pytest.fixture(autouse=True)
def _rounds_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_PROVE_EVERY_S", "_RETRY_S", "_RECHECK_S"):
        monkeypatch.setattr(key_ring, name, 0.01)


def key(revision: int, **changes: Any) -> tuple[KeyChange, str]:
    """An entry of the bucket, and the key's text."""
    made, text = bootstrap_key("acme", "olga", NOW)
    return KeyChange(made.key_id, replace(made, **changes), revision), text.get_secret_value()


async def test_who_shows_an_unknown_key_waits_a_few_seconds_for_the_store_at_most() -> None:
    played, left = Played(), list[float | None]()
    _, text = key(1)

    async def latest_revision() -> int:
        left.append(deadline.remaining_s())
        return 0

    async with played.following() as ring:
        await ring.wait_fresh()
        wrong_keys = RateLimiter(20, lambda: 0.0)
        bootstrap = BootstrapKey(GatewaySettings(), lambda: NOW)
        door = KeyDoor(
            ring,
            wrong_keys,
            (),
            begun_logins=wrong_keys,
            latest_revision=latest_revision,
            used=lambda _: None,
            bootstrap=bootstrap,
        )
        with pytest.raises(ApiKeyInvalid):
            await door.admit(Headers({"Authorization": f"Bearer {text}"}), "192.0.2.1")
    assert [seconds is not None and seconds <= 5.0 for seconds in left] == [True]
    assert deadline.remaining_s() is None


async def test_a_watch_that_lags_behind_the_store_lets_nobody_in() -> None:
    played = Played()
    first, text = key(1)
    second, _ = key(2)
    played.store.listed, played.store.revision = [first], 1
    async with played.following() as ring:
        await ring.wait_fresh()
        assert ring.require_good(read_shown(text)) == first.key
        played.store.revision = 2  # written, and the watch does not tell
        await played.until_asked()
        played.seconds = 31.0
        await played.until_asked()
        with pytest.raises(ApiKeysUnknown, match="may have been revoked"):
            ring.require_good(read_shown(text))
        (trouble,) = ring.troubles()
        assert trouble.stops_service
        played.store.told.put_nowait(second)
        await ring.wait_fresh()
        assert not ring.troubles()
        assert ring.require_good(read_shown(text)) == first.key


async def test_before_all_keys_are_read_nobody_is_told_that_their_key_is_wrong() -> None:
    played = Played()
    played.store.is_away = True
    _, text = key(1)
    async with played.following() as ring:
        await played.until_asked()
        with pytest.raises(ApiKeysUnknown, match="have not been read yet"):
            ring.require_good(read_shown(text))


async def test_who_asks_a_gateway_that_has_just_started_waits_until_the_keys_are_read() -> None:
    played = Played()
    played.store.is_away = True
    async with played.following() as ring:
        await played.until_asked()
        waiting = asyncio.create_task(ring.read_first(600.0))
        await played.until_asked()
        assert not waiting.done()
        played.store.is_away = False
        await waiting
        ring.require_fresh()
        await ring.read_first(0.0)


async def test_what_went_while_the_watch_was_broken_is_gone_when_all_is_read_again() -> None:
    played = Played()
    (first, _), (second, _) = key(1), key(2)
    played.store.listed, played.store.revision = [first, second], 2
    async with played.following() as ring:
        await ring.wait_fresh()
        assert {each.key_id for each in ring.of_tenant("acme")} == {first.key_id, second.key_id}
        played.store.listed = [second]
        played.store.told.put_nowait(None)
        while ring.find(first.key_id):
            await played.until_asked()
        assert ring.find(second.key_id) == second.key


async def test_a_key_that_goes_while_all_are_read_does_not_stay() -> None:
    played = Played()
    (first, _), (second, _) = key(1), key(2)
    played.store.listed = [first, second, KeyChange(first.key_id, None, 3)]
    played.store.revision = 3
    async with played.following() as ring:
        await ring.wait_fresh()
        assert ring.find(first.key_id) is None
        assert ring.find(second.key_id) == second.key


async def test_who_waits_for_the_end_of_a_key_hears_of_its_expiry_and_not_of_a_silent_store() -> None:
    played = Played()
    entry, text = key(1, expires_at=NOW + timedelta(hours=1))
    played.store.listed, played.store.revision = [entry], 1
    async with played.following() as ring:
        await ring.wait_fresh()
        waiting = asyncio.create_task(ring.ended(read_shown(text)))
        played.store.is_away = True
        played.seconds = 1000.0
        await played.until_asked()
        assert not waiting.done()
        played.day += timedelta(hours=1)
        assert isinstance(await waiting, ApiKeyExpired)
