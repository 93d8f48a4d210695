"""Names of messages: whatever a sender writes, the name is one that a document can have."""

from datetime import UTC, datetime

import pytest
from imapclient.response_types import Address, Envelope

from services.ingest.adapters.sources._mail_names import described
from services.ingest.documents.uploads.naming import checked_metadata, file_name
from services.ingest.sources.models import SourceFile

SENT = datetime(2026, 3, 2, 10, tzinfo=UTC)


def of(subject: bytes | None, folder: str = "INBOX", sender: bytes | None = b"Bo", sent: object = SENT) -> SourceFile:
    senders = (Address(b"", None, sender, b"Example.com"),) if sender else None
    envelope = Envelope(sent, subject, senders, None, None, None, None, None, None, None)
    return described(f"{folder}/1-7", folder, {b"ENVELOPE": envelope, b"RFC822.SIZE": 9})


@pytest.mark.parametrize(
    ("subject", "folder", "begins"),
    [
        (b"Budget", "INBOX", "INBOX/2026-03-02 Budget ["),
        (b"=?utf-8?q?K=C3=A4se?= =?koi8-r?B?0NLJ18XU?=", "INBOX", "INBOX/2026-03-02 Käseпривет ["),
        (b"=?no-such-charset?q?K=C3?=", "INBOX", "INBOX/2026-03-02 =?no-such-charset?q?K=C3?= ["),
        (b"=?utf-8?b?*?=", "INBOX", "INBOX/2026-03-02 "),
        (b"../../etc/passwd\\x\r\n\x00\xe2\x80\xae", "../a//b/..", "a/b/2026-03-02 .. .. etc passwd x"),
        (None, "", "2026-03-02 ["),
        (b"x" + b" " * 150_000 + b"y", "INBOX", "INBOX/2026-03-02 x ["),
        (b"=?utf-8?q?=F0=9F=98=80=F0=9F=98=80?= " * 10_000, "INBOX", f"INBOX/2026-03-02 {'😀' * 100} ["),
        (b"x" * 5000, "y" * 500, f"{'y' * 80}/2026-03-02 {'x' * 100} ["),
    ],
)
def test_name_of_a_message_is_one_that_a_document_can_have(subject: bytes | None, folder: str, begins: str) -> None:
    name = of(subject, folder).name
    assert name.startswith(begins)
    assert name.endswith("].eml")
    assert file_name(f"a source/{name}") == f"a source/{name}"


def test_two_messages_have_two_names_and_one_has_the_same_every_time() -> None:
    assert of(b"Daily", "a").name == of(b"Daily", "a").name
    assert of(b"Daily", "a b").name.partition("/")[2] != of(b"Daily", "a").name.partition("/")[2]


@pytest.mark.parametrize(
    ("sender", "fields"), [(b"Bo", {"from": "bo@example.com"}), (None, {}), (b"\xff", {}), (b"b\r\no", {})]
)
def test_sender_and_day_are_fields_where_they_can_be_read(sender: bytes | None, fields: dict[str, str]) -> None:
    assert of(b"x", sender=sender, sent=None).metadata == fields
    assert checked_metadata(of(b"x", sender=sender).metadata) == {**fields, "date": "2026-03-02"}
