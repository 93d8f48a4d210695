"""Exports of Telegram: each message a unit, with what it answers, repeats and belongs to."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.ingest.reading import detection
from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.models import PreparedDocument, PrepareRequest

Read = Callable[..., PreparedDocument]


def message(number: int, text: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": "message",
        "date": "2024-01-15T10:30:00",
        "date_unixtime": str(1705311000 + number),
        "from": "Anna",
        "from_id": "user1",
        "text": text,
        **more,
    }


def chat(
    *messages: dict[str, Any], name: str = "Harbour", number: int = 7, kind: str = "private_group"
) -> dict[str, Any]:
    return {"name": name, "type": kind, "id": number, "messages": list(messages)}


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(export: Any, name: str = "result.json") -> PreparedDocument:
        path = tmp_path / name
        path.write_bytes(export if isinstance(export, bytes) else json.dumps(export).encode())
        media_type = detection.detect_media_type(io.BytesIO(path.read_bytes()), name)
        assert media_type == detection.TELEGRAM
        return prepare(PrepareRequest(str(path), media_type, name, "", 128), lambda _: None, EstimatedTokens())

    return read


def test_each_message_is_a_chunk_with_fields_to_filter_by(read: Read) -> None:
    prepared = read(chat(message(1, "The ferry is late."), message(2, "How late?", **{"from": "Ben"})))
    assert prepared.chunker == "messages"
    assert prepared.title == "Harbour"
    assert [chunk.text for chunk in prepared.chunks] == ["The ferry is late.", "How late?"]
    assert [dict(chunk.metadata) for chunk in prepared.chunks] == [
        {"channel": "Harbour", "author": "Anna", "date": "2024-01-15T09:30:01Z", "message_id": "1"},
        {"channel": "Harbour", "author": "Ben", "date": "2024-01-15T09:30:02Z", "message_id": "2"},
    ]
    assert prepared.chunks[0].heading_path == ("Harbour", "Anna, 2024-01-15 09:30")
    assert prepared.chunks[0].embedded_text == "Harbour\nAnna, 2024-01-15 09:30\n\nThe ferry is late."
    assert prepared.warnings == ()


def test_message_too_long_for_a_chunk_is_split_and_each_part_keeps_its_fields(read: Read) -> None:
    long = " ".join(f"This is sentence number {i} of a long message." for i in range(40))
    prepared = read(chat(message(1, long), message(2, "Short.")))
    parts = [chunk for chunk in prepared.chunks if chunk.metadata["message_id"] == "1"]
    assert len(parts) > 2
    assert all(chunk.embedded_text.startswith("Harbour\nAnna, 2024-01-15 09:30\n\n") for chunk in parts)
    assert all(chunk.token_count <= 128 for chunk in parts)
    assert [chunk.text for chunk in prepared.chunks if chunk.metadata["message_id"] == "2"] == ["Short."]


def test_reply_quotes_what_it_answers(read: Read) -> None:
    long = "word " * 100
    prepared = read(chat(message(1, "Is the bridge open?"), message(2, "Yes.", reply_to_message_id=1),
                         message(3, long), message(4, "Too long.", reply_to_message_id=3),
                         message(5, "Lost.", reply_to_message_id=99)))  # fmt: skip
    by_id = {chunk.metadata["message_id"]: chunk.text for chunk in prepared.chunks}
    assert by_id["2"] == "In reply to Anna: “Is the bridge open?”\nYes."
    quote = by_id["4"].partition("\n")[0]
    assert quote.endswith(" …”")
    assert len(quote) < 240
    assert by_id["5"] == "Lost."


def test_forward_names_its_source_and_the_original_in_the_export(read: Read) -> None:
    news = chat(message(5, "Storm tomorrow, no ferries."), name="Weather", number=9, kind="public_channel")
    own = chat(
        message(1, "Storm tomorrow, no ferries.", forwarded_from="Weather"),
        message(2, "Something else.", forwarded_from="Weather"),
        message(3, "Storm tomorrow, no ferries.", forwarded_from="Renamed", forwarded_from_id="channel9"),
    )
    prepared = read({"about": "Here is the data you requested.", "chats": {"about": "x", "list": [own, news]}})
    found = {(c.metadata["channel"], c.metadata["message_id"]): c for c in prepared.chunks}
    forward = found["Harbour", "1"]
    assert forward.text == "Forwarded from Weather:\nStorm tomorrow, no ferries."
    assert (forward.metadata["forwarded_from"], forward.metadata["forward_of"]) == ("Weather", "Weather/5")
    assert "forward_of" not in found["Harbour", "2"].metadata
    assert found["Harbour", "3"].metadata["forward_of"] == "Weather/5"
    assert "forwarded_from" not in found["Weather", "5"].metadata


def test_full_export_keeps_chats_apart(read: Read) -> None:
    chats = [
        chat(message(1, "Hi"), name="A", number=1),
        chat(message(1, "Yo", reply_to_message_id=1), name="B", number=2),
    ]
    prepared = read(
        {"personal_information": {"user_id": 1}, "contacts": {"list": [{"first_name": "C"}]}, "chats": {"list": chats}}
    )
    assert [chunk.metadata["channel"] for chunk in prepared.chunks] == ["A", "B"]
    assert prepared.title == "result"


def test_entities_links_polls_and_file_names_are_words(read: Read) -> None:
    pieces = [
        "Read ",
        {"type": "bold", "text": "this"},
        {"type": "text_link", "text": " page", "href": "https://e.x/1"},
    ]
    poll = {"question": "Which day?", "answers": [{"text": "Monday", "voters": 1}, {"text": "Friday", "voters": 0}]}
    prepared = read(chat(message(1, pieces), message(2, "", poll=poll),
                         message(3, "", file_name="plan.pdf", media_type="file"), message(4, "", photo="p.jpg")))  # fmt: skip
    assert [chunk.text for chunk in prepared.chunks] == [
        "Read this page (https://e.x/1)",
        "Which day?\n- Monday\n- Friday",
        "[file: plan.pdf]",
    ]
    assert prepared.warnings == ("1 messages without text (pictures, stickers, calls) were left out",)


def test_service_messages_are_left_out(read: Read) -> None:
    service = {
        "id": 1,
        "type": "service",
        "date": "2024-01-15T10:30:00",
        "actor": "Anna",
        "action": "create_group",
        "text": "",
    }
    assert [chunk.text for chunk in read(chat(service, message(2, "Hello."))).chunks] == ["Hello."]


def test_channel_post_is_not_said_to_be_by_its_channel_twice(read: Read) -> None:
    post = message(1, "Open from May.", **{"from": "Harbour", "from_id": "channel7"})
    signed = message(2, "Closed.", **{"from": "Harbour", "author": "Ben"})
    chunks = read(chat(post, signed, kind="public_channel")).chunks
    assert chunks[0].heading_path == ("Harbour", "2024-01-15 09:30")
    assert chunks[1].metadata["author"] == "Ben"


def test_times_without_a_zone_are_taken_as_utc_and_it_is_said(read: Read) -> None:
    old = {"id": 1, "date": "2020-05-01T08:00:00", "from": "Anna", "text": "Old."}
    prepared = read(chat(old))
    assert prepared.chunks[0].metadata["date"] == "2020-05-01T08:00:00Z"
    assert prepared.warnings == ("the export does not say its time zone; its times are taken as UTC",)


def test_export_that_was_cut_off_gives_the_messages_before_the_cut(read: Read) -> None:
    data = json.dumps(chat(*(message(i, f"Message {i}.") for i in range(50)))).encode()
    prepared = read(data[: len(data) // 2])
    assert 15 < len(prepared.chunks) < 30
    assert prepared.chunks[-1].text == f"Message {len(prepared.chunks) - 1}."
    assert f"{len(prepared.chunks)} messages before that place were read" in prepared.warnings[0]


def test_json_without_messages_is_read_as_what_it_is(read: Read) -> None:
    prepared = read({"name": "package", "messages": {"hello": "Hallo"}})
    assert [chunk.text for chunk in prepared.chunks] == ["name: package; messages.hello: Hallo"]
