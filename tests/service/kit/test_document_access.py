"""The map of access lists over a real bucket."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kit.access.principal import Principal
from kit.jetstream import KeyValue, Nats
from kit.shared_state import DOCUMENT_ACCESS
from kit.stores.document_access import DocumentAccess, DocumentAccessMap, DocumentAccessStale, decode, encode

ANN = Principal("acme", "ann")
CAROL = Principal("acme", "carol", groups=frozenset({"legal"}))
LEGAL = DocumentAccess("papers", frozenset({"bob"}), frozenset({"legal"}))


@pytest.fixture
async def bucket(jetstream: Nats) -> KeyValue:
    return await KeyValue.open(jetstream, DOCUMENT_ACCESS.name)


@pytest.fixture
async def known(jetstream: Nats, bucket: KeyValue) -> AsyncIterator[DocumentAccessMap]:
    await bucket.put("acme.d1", encode(LEGAL))
    known = await DocumentAccessMap.open_to_read(jetstream)
    following = asyncio.create_task(known.run())
    await known.wait_confirmed()
    yield known
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_hidden_is_what_has_a_list_without_the_caller(known: DocumentAccessMap, bucket: KeyValue) -> None:
    assert known.known("acme", "d1") == LEGAL
    assert known.hidden(ANN, "papers") == {"d1"}
    assert known.hidden(CAROL, "papers") == set()
    assert known.hidden(Principal("acme", "bob"), "papers") == set()
    assert known.hidden(ANN, "other") == set()
    assert known.hidden(Principal("umbrella", "ann"), "papers") == set()
    await known.wait_written(await bucket.put("acme.d2", encode(DocumentAccess("papers", frozenset({"ann"})))))
    assert known.hidden(ANN, "papers") == {"d1"}
    assert known.hidden(CAROL, "papers") == {"d2"}
    await known.wait_written(await bucket.put("acme.d2", encode(DocumentAccess("papers"))))
    assert known.hidden(ANN, "papers") == {"d1", "d2"}
    await bucket.purge("acme.d1")
    await known.wait_written(await bucket.last_revision())
    assert known.known("acme", "d1") is None
    assert known.hidden(ANN, "papers") == {"d2"}


async def test_list_that_cannot_be_read_hides_its_document(known: DocumentAccessMap, bucket: KeyValue) -> None:
    await known.wait_written(await bucket.put("acme.d3", b"[]"))
    assert known.hidden(CAROL, "papers") == known.hidden(CAROL, "other") == {"d3"}
    assert known.known("acme", "d3") == DocumentAccess("")


async def test_nothing_is_decided_before_all_is_known(bucket: KeyValue) -> None:
    with pytest.raises(DocumentAccessStale):
        DocumentAccessMap(bucket).hidden(ANN, "papers")


@pytest.mark.parametrize("value", [b"", b"\xff", b"[]", b"{}", b'{"collection_id": 1, "subjects": [], "groups": []}'])
def test_damaged_list_names_nobody(value: bytes) -> None:
    assert decode(value) == DocumentAccess("")


def test_list_is_read_as_it_was_written() -> None:
    assert decode(encode(LEGAL)) == LEGAL
