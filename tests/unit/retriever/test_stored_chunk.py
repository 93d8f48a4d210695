"""What an index holds of chunks, when a newer version wrote it or something broke it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from services.retriever.indexes.chunk_encoding import decode, encode
from services.retriever.indexes.stored_chunk import ChunkUnreadable, StoredChunk
from services.retriever.models import BoundingBox, RevisionKey
from tests.unit.retriever.core_over_fakes import Core, texts
from tests.unit.retriever.fakes import make_chunk

KEY = RevisionKey("local", "d1", "r1")
CHUNK = make_chunk("solar", key=KEY)


def _with_body(body: str) -> StoredChunk:
    return replace(decode(encode(CHUNK)), body=body)


def test_fields_of_a_newer_version_are_passed_over() -> None:
    body = json.loads(decode(encode(CHUNK)).body)
    assert _with_body(json.dumps(body | {"tables": [1]})).chunk == CHUNK


def test_fields_that_an_older_version_did_not_store_have_their_defaults() -> None:
    body = json.loads(decode(encode(CHUNK)).body)
    del body["embedded_prefix"], body["language"]
    assert _with_body(json.dumps(body)).chunk == CHUNK


def test_boxes_come_back_with_the_characters_they_are_of() -> None:
    boxed = make_chunk("solar", key=KEY, bounding_boxes=(BoundingBox(1, 72.25, 10.5, 90.0, 22.0, 0, 5),))
    assert decode(encode(boxed)).chunk == boxed
    body = json.loads(decode(encode(boxed)).body)
    assert body["bounding_boxes"] == [[1, 72.25, 10.5, 90.0, 22.0]], "as the release before reads it"
    del body["box_spans"]
    assert _with_body(json.dumps(body)).chunk.bounding_boxes == (BoundingBox(1, 72.25, 10.5, 90.0, 22.0),)


@pytest.mark.parametrize("body", ["", "{", "[]", "7", "{}", '{"heading_path": 5}'])
def test_broken_record_names_its_chunk(body: str) -> None:
    with pytest.raises(ChunkUnreadable, match="r1-0"):
        _ = _with_body(body).chunk


@pytest.mark.parametrize("options", [{}, {"window": 1}, {"must_phrases": ("solar",)}, {"explain": True}])
async def test_broken_chunk_is_set_aside_and_the_others_are_found(core: Core, options: dict[str, object]) -> None:
    await core.publish(KEY, ["solar one", "solar two", "solar three"])
    for index in (core.dense, core.lexical):
        index.rows[1] = replace(index.rows[1], stored=replace(index.rows[1].stored, body='{"torn'))
    assert set(texts(await core.search("solar", **options))) == {"solar one", "solar three"}
    windows = await core.reader.fetch("local", ["r1-0", "r1-1", "r1-2"], 1)
    assert [window.chunk.text for window in windows] == ["solar one", "solar three"]
