"""API keys in a real message store."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from kit.access.api_keys import encode, new_key
from kit.access.principal import OPERATOR, QUERY
from kit.jetstream import KeyValue, Nats
from kit.shared_state import API_KEYS
from kit.stores.api_key_store import ApiKeyNotFound, ApiKeyStore, bootstrap_key

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
async def store(jetstream: Nats) -> ApiKeyStore:
    return await ApiKeyStore.open(jetstream)


bootstrap = partial(bootstrap_key, "local", "local-user", NOW)


async def test_of_many_who_make_the_first_key_at_once_one_does(jetstream: Nats) -> None:
    stores = [await ApiKeyStore.open(jetstream) for _ in range(8)]
    texts = await asyncio.gather(*(store.create_first_operator(bootstrap) for store in stores))
    assert len([text for text in texts if text]) == 1
    (key,) = await stores[0].all()
    assert (key.tenant_id, key.subject, key.scopes) == ("local", "local-user", (OPERATOR,))


async def test_a_first_key_is_made_again_only_when_no_operator_gets_in(store: ApiKeyStore) -> None:
    weak, _ = new_key(name="k", tenant_id="acme", subject="anna", scopes=(QUERY,), created_at=NOW, created_by="olga")
    await store.create(weak)
    assert await store.create_first_operator(bootstrap) is not None
    assert await store.create_first_operator(bootstrap) is None
    for key in await store.all():
        await store.change(key.tenant_id, key.key_id, lambda each: each.revoked(NOW))
    assert await store.create_first_operator(bootstrap) is not None


async def test_changes_at_once_are_all_made(store: ApiKeyStore) -> None:
    key, _ = bootstrap()
    await store.create(key)
    names = [f"name {number}" for number in range(4)]

    async def rename(name: str) -> None:
        await store.change(key.tenant_id, key.key_id, lambda each: replace(each, name=f"{each.name}|{name}"))

    await asyncio.gather(*map(rename, names))
    (after,) = await store.all()
    assert sorted(after.name.split("|")[1:]) == names
    with pytest.raises(ApiKeyNotFound):
        await store.change("other", key.key_id, lambda each: each.revoked(NOW))


async def test_what_is_no_record_opens_nothing_and_stops_nothing(store: ApiKeyStore, jetstream: Nats) -> None:
    key, _ = bootstrap()
    bucket = await KeyValue.open(jetstream, API_KEYS.name)
    await bucket.put("local.00", b"\xff")
    await bucket.put("other.11", encode(key))
    await bucket.put("local.22", json.dumps({**json.loads(encode(key)), "id": "22", "version": 99}).encode())
    await store.create(key)
    assert await store.all() == [key]
    seen = []
    async with aclosing(store.watch()) as changes:
        async for change in changes:
            if change is None:
                break
            seen.append((change.key_id, change.key))
    assert seen == [("00", None), ("11", None), ("22", None), (key.key_id, key)]
