"""What e-mails become."""

import io
from email.message import EmailMessage
from pathlib import Path

import pytest

from services.ingest.errors import DocumentRejected
from services.ingest.reading import detection
from services.ingest.reading.chunks.chunking import chunk
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.cleaning import clean
from services.ingest.reading.models import ParsedDocument
from services.ingest.reading.parsers.registry import parse


def mail(text: str = "The pier is closed.") -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Änne Müller <anne@example.org>"
    message["To"] = "harbour@example.org"
    message["Date"] = "Wed, 16 Jul 2008 09:24:06 +0300"
    message["Subject"] = "Pier"
    message["Message-ID"] = "<17@example.org>"
    message.set_content(text)
    return message


def read(tmp_path: Path, message: EmailMessage | bytes) -> ParsedDocument:
    path = tmp_path / "spooled"
    path.write_bytes(message if isinstance(message, bytes) else message.as_bytes())
    return parse(path, detection.detect_media_type(io.BytesIO(path.read_bytes()), "a.eml"), "a.eml")


ABOVE = ("From: Änne Müller <anne@example.org>; To: harbour@example.org; Date: Wed, 16 Jul 2008 09:24:06 +0300", "Pier")


def test_mail_has_its_text_below_its_headers_and_fields_to_filter_by(tmp_path: Path) -> None:
    document = read(tmp_path, mail())
    assert document.title == "Pier"
    texts = [block.text.strip() for block in document.blocks]
    assert texts == ["From: Änne Müller <anne@example.org>", "The pier is closed."]
    assert {block.context for block in document.blocks} == {ABOVE}
    assert {tuple(block.metadata.items()) for block in document.blocks} == {
        (("author", "Änne Müller"), ("date", "2008-07-16T06:24:06Z"), ("message_id", "17@example.org"))
    }


def test_no_passage_of_a_mail_holds_its_date_or_subject_as_text_and_each_is_below_them(tmp_path: Path) -> None:
    long = "\n\n".join(
        f"Step {number}: look at the crane from below and write down what you see." for number in range(200)
    )
    passages = chunk(clean(read(tmp_path, mail(long))), EstimatedTokens(), window_tokens=512)
    assert len(passages) > 2
    assert {each.heading_path for each in passages} == {ABOVE}
    assert not any("2008" in each.text or "Pier" in each.text for each in passages)
    assert all("2008" in each.embedded_text and "Pier" in each.embedded_text for each in passages)


def test_mail_of_headers_alone_has_them_as_its_text(tmp_path: Path) -> None:
    texts = [block.text.strip() for block in read(tmp_path, mail("")).blocks]
    assert [text.partition(":")[0] for text in texts] == ["From", "To", "Date", "Subject"]


def test_long_lists_of_people_are_text(tmp_path: Path) -> None:
    message = mail()
    message["Cc"] = ", ".join(f"person{number}@example.org" for number in range(40))
    document = read(tmp_path, message)
    assert "person39@example.org" in document.blocks[1].text
    assert document.blocks[1].context == ABOVE


def test_forwarded_message_has_its_own_headers_and_what_follows_it_those_of_the_outer(tmp_path: Path) -> None:
    inner, message = mail("Berth C-14 is yours."), mail("See below.")
    inner.replace_header("From", "Tomo <tomo@example.org>")
    inner.replace_header("Subject", "Berth")
    message.add_attachment(inner)
    message.attach(EmailMessage())
    message.get_payload()[-1].set_content("Sent by a list.")
    blocks = read(tmp_path, message).blocks
    assert [(block.text.strip(), block.metadata["author"]) for block in blocks] == [
        ("From: Änne Müller <anne@example.org>", "Änne Müller"),
        ("See below.", "Änne Müller"),
        ("Sent by a list.", "Änne Müller"),
        ("Forwarded: Berth", "Tomo"),
        ("From: Tomo <tomo@example.org>", "Tomo"),
        ("Berth C-14 is yours.", "Tomo"),
    ]
    assert blocks[2].context == ABOVE
    assert blocks[-1].context == (
        "From: Tomo <tomo@example.org>; To: harbour@example.org; Date: Wed, 16 Jul 2008 09:24:06 +0300",
    )


def test_html_is_read_only_where_there_is_no_plain_text(tmp_path: Path) -> None:
    both, only_html = mail(), mail("")
    both.add_alternative("<p>Same in colour.</p>", subtype="html")
    only_html.add_alternative("<h1>News</h1><p>In colour.</p>", subtype="html")
    assert [block.text.strip() for block in read(tmp_path, both).blocks[1:]] == ["The pier is closed."]
    assert [block.text for block in read(tmp_path, only_html).blocks[1:]] == ["News", "In colour."]


def test_text_attachments_are_read_and_others_named(tmp_path: Path) -> None:
    message = mail()
    message.add_attachment("Tide at noon.", filename="tides.txt")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="plan.pdf")
    document = read(tmp_path, message)
    assert [block.text.strip() for block in document.blocks[1:]] == [
        "The pier is closed.",
        "Attachment: plan.pdf",
        "Attachment: tides.txt",
        "Tide at noon.",
    ]
    assert document.warnings == ("the attachment plan.pdf was not read; upload it on its own",)


def test_text_of_an_attachment_is_found_under_its_name(tmp_path: Path) -> None:
    message = mail()
    message.add_attachment("Tide at noon.", filename="tides.txt")
    message.add_attachment("<h1>Winter</h1><p>No ferry.</p>", subtype="html", filename="table.html")
    passages = chunk(clean(read(tmp_path, message)), EstimatedTokens(), window_tokens=512)
    assert [each.heading_path for each in passages] == [
        ABOVE,
        (*ABOVE, "Attachment: tides.txt"),
        (*ABOVE, "Attachment: table.html", "Winter"),
    ]
    assert passages[1].text == "Attachment: tides.txt\n\nTide at noon."


def test_file_without_headers_is_no_mail(tmp_path: Path) -> None:
    with pytest.raises(DocumentRejected, match="not an e-mail") as rejected:
        read(tmp_path, b"just words")
    assert rejected.value.reason == "MAIL_BROKEN"


def test_what_a_message_of_a_mailbox_carries_stands_below_its_subject_alone(tmp_path: Path) -> None:
    first, second = mail(), mail("The crane is free.")
    first.add_attachment("<h1>Winter</h1><p>No ferry.</p>", subtype="html", filename="table.html")
    second.replace_header("Subject", "Crane")
    box = b"".join(b"From a@b Mon Jun  3 16:40:00 2024\n" + each.as_bytes() + b"\n" for each in (first, second))
    path = tmp_path / "box"
    path.write_bytes(box)
    passages = chunk(clean(parse(path, "application/mbox", "box.mbox")), EstimatedTokens(), window_tokens=512)
    assert [each.heading_path for each in passages] == [
        (ABOVE[0], "Pier"),
        (ABOVE[0], "Pier", "Attachment: table.html", "Winter"),
        (ABOVE[0], "Crane"),
    ]
