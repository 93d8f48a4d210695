"""Records of other versions and of other hands: carried where they can be, refused in one way where they cannot."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.documents import life, records
from services.ingest.documents.models import (
    Collection,
    Content,
    DeadLetter,
    Document,
    Failure,
    IngestJob,
    Report,
    Revision,
    Status,
    Tries,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
CONTENT = Content("ab" * 32, 3, "text/plain")
DOCUMENT = Document(
    "local",
    "aa" * 16,
    "default",
    "naïve.txt",
    created_at=NOW,
    updated_at=NOW,
    status=Status.PROCESSING,
    content=CONTENT,
    revision_count=2,
    metadata={"team": "blue"},
    pending=Revision("r2", 2, CONTENT),
    active=Revision("r1", 1, CONTENT),
    error=Failure("PDF_BROKEN", "broken"),
    report=Report(page_statuses=("text", "ocr"), warnings=("page 2 was read from its picture",), languages=("de",)),
    tries=Tries(failures=1, last_failure=Failure("INTERNAL", "odd"), first_failed_at=NOW, last_failed_at=NOW),
)
COLLECTION = Collection("local", "papers", "Papers", NOW)
LETTER = DeadLetter(
    "local",
    "r2",
    2,
    "aa" * 16,
    "default",
    "a.txt",
    Failure("INTERNAL", "odd"),
    "parse",
    5,
    0,
    NOW,
    NOW,
    requeued_at=None,
)
JOB = IngestJob("local", "aa" * 16, "r2")
CODECS: list[Any] = [
    pytest.param(DOCUMENT, records.encode_document, records.decode_document, id="document"),
    pytest.param(COLLECTION, records.encode_collection, records.decode_collection, id="collection"),
    pytest.param(LETTER, records.encode_dead_letter, records.decode_dead_letter, id="dead letter"),
    pytest.param(JOB, records.encode_job, records.decode_job, id="job"),
]


@pytest.mark.parametrize(("record", "encode", "decode"), CODECS)
def test_record_comes_back_as_it_was(record: Any, encode: Any, decode: Any) -> None:
    assert decode(encode(record)) == record


@pytest.mark.parametrize(("record", "encode", "decode"), CODECS[:3])
def test_fields_of_a_newer_version_are_carried_through_a_change(record: Any, encode: Any, decode: Any) -> None:
    newer = json.loads(encode(record)) | {"colour": {"name": "red"}}
    read = decode(json.dumps(newer).encode())
    assert replace(read, newer_fields={}) == record
    written = json.loads(encode(replace(read, tenant_id="other")))
    assert written == newer | {"tenant_id": "other"}


def test_status_of_a_newer_version_is_carried_until_the_document_is_deleted() -> None:
    newer = json.loads(records.encode_document(DOCUMENT)) | {"status": "archived"}
    read = records.decode_document(json.dumps(newer).encode())
    assert read.status is Status.UNKNOWN
    assert json.loads(records.encode_document(read)) == newer
    deleted = records.decode_document(records.encode_document(life.delete(read, NOW)))
    assert deleted.status is Status.DELETED


def test_unknown_fields_and_values_within_a_record_do_not_matter() -> None:
    newer = json.loads(records.encode_document(DOCUMENT))
    newer["content"]["origin"] = newer["report"]["mood"] = newer["tries"]["luck"] = newer["error"]["hint"] = "new"
    newer["pending"]["priority"] = 3
    newer["report"]["page_statuses"] = "tx"
    read = records.decode_document(json.dumps(newer).encode())
    assert read.report is not None
    assert read.report.page_statuses == ("text", "x")
    assert json.loads(records.encode_document(read))["report"]["page_statuses"] == "tx"


BROKEN = [
    b"",
    b"null",
    b"[]",
    b"7",
    b"{}",
    b'"text"',
    b"\xff\xfe",
    b"[" * 100_000,
    json.dumps({"name": None}).encode(),
]


@pytest.mark.parametrize(("record", "encode", "decode"), CODECS)
@pytest.mark.parametrize("data", BROKEN, ids=lambda data: repr(data[:12]))
def test_bytes_that_are_no_record_are_unreadable(record: Any, encode: Any, decode: Any, data: bytes) -> None:
    with pytest.raises(records.Unreadable):
        decode(data)


@pytest.mark.parametrize(("record", "encode", "decode"), CODECS)
@given(st.integers(0, 5000), st.integers(0, 255))
def test_torn_byte_makes_a_record_unreadable_or_another_record(
    record: Any, encode: Any, decode: Any, place: int, byte: int
) -> None:
    data = bytearray(encode(record))
    data[place % len(data)] = byte
    try:
        read = decode(bytes(data))
    except records.Unreadable:
        return
    assert decode(encode(read)) == read


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None),
        ("name", 7),
        ("created_at", None),
        ("created_at", "yesterday"),
        ("updated_at", "2026-05-01T12:00:00"),
        ("revision_count", "seven"),
        ("metadata", None),
        ("metadata", {"a": 1}),
        ("content", None),
        ("content", {"a": 1}),
        ("swept", "no"),
        ("progress", None),
    ],
)
def test_field_of_the_wrong_type_makes_a_document_unreadable(field: str, value: object) -> None:
    wrong = json.loads(records.encode_document(DOCUMENT)) | {field: value}
    with pytest.raises(records.Unreadable):
        records.decode_document(json.dumps(wrong).encode())
