"""E-mails (.eml): who wrote what to whom and when, then the text. Attachments that are text are read too; others are named, so that
they are found by their names and can be uploaded on their own."""

import datetime as dt
import email.utils
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import EmailPolicy
from typing import Any

from services.ingest.errors import DocumentRejected
from services.ingest.reading.decoding import codec_of_texts
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.messages.mail_headers import (
    MAX_HEADER_CHARS,
    SHOWN,
    below_headers,
    header_lines,
    people_lines,
)
from services.ingest.reading.parsers.records.calendars import UNREADABLE_CALENDAR, calendar_blocks
from services.ingest.reading.parsers.text.plain import paragraphs
from services.ingest.reading.parsers.titles import title_from, title_or_name
from services.ingest.reading.parsers.web.html import blocks_of_html
from services.ingest.reading.source import Source

_KEPT = ("text/plain", "text/calendar")
_MESSAGE_START = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From [^\r\n]*\r?\n(?=[!-9;-~]+:)")
_QUOTED_START = re.compile(rb"^(>*)>From ", re.MULTILINE)
_MAX_PARTS = 1000
_MAX_DEPTH = 100
_MAX_PARSED_HEADER_CHARS = 4 * MAX_HEADER_CHARS
# The standard library's parsers of headers and charsets raise these on what senders make of the rules.
_UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, AssertionError, RecursionError)


class _Message(EmailMessage):
    """A message or a part of one. The standard library compares each line with the boundaries of all parts around it."""

    depth = 0

    def attach(self, payload: Any) -> None:
        """Called as soon as a part begins. Raises RecursionError, as the library does where parts are nested still deeper."""
        payload.depth = self.depth + 1
        if payload.depth > _MAX_DEPTH:
            raise RecursionError(f"more than {_MAX_DEPTH} parts within parts")
        super().attach(payload)


class _BriefHeaders(EmailPolicy):
    """The standard library takes time with the square of a header's length to understand it, and far less than this is shown."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_MAX_PARSED_HEADER_CHARS]


_POLICY = _BriefHeaders(message_factory=_Message)


def parse_mail(source: Source, name: str) -> ParsedDocument:
    """Reads a message. Raises DocumentRejected: MAIL_BROKEN, and RecursionError where it is too deeply nested."""
    with source.open("rb") as file:
        message = BytesParser(policy=_POLICY).parse(file)
    assert isinstance(message, EmailMessage)  # what the policy makes
    warnings: list[str] = []
    blocks = list(_blocks_of(message, warnings))
    if not any(_header(message, header) for header in SHOWN):
        raise DocumentRejected(
            "MAIL_BROKEN",
            f"{name} has no sender, date or subject: it is not an e-mail; save it as .txt and upload that",
        )
    title = title_or_name(_header(message, "Subject"), name)
    return ParsedDocument(title, tuple(blocks), warnings=tuple(warnings))


def parse_mailbox(source: Source, name: str) -> ParsedDocument:
    """Reads the messages of a mailbox (mbox, RFC 4155), each below its subject. Raises DocumentRejected: MAIL_BROKEN."""
    blocks: list[Block] = []
    warnings: list[str] = []
    for data in _messages(source.read_bytes()):
        message = BytesParser(policy=_POLICY).parsebytes(data)
        assert isinstance(message, EmailMessage)  # what the policy makes
        subject = _header(message, "Subject") or _header(message, "From") or "Message"
        found = list(_blocks_of(message, warnings, has_heading=True))
        if found:
            heading = Block(BlockKind.HEADING, subject, level=1, begins_part=True)
            blocks += below_headers([heading], _headers(message), _metadata(message), has_heading=True)
            # A heading of level 0 is that of an attachment, which is one of this message.
            blocks += [
                replace(each, level=each.level + 2) if each.kind is BlockKind.HEADING else each for each in found
            ]
    if not blocks:
        raise DocumentRejected("MAIL_BROKEN", f"{name} holds no messages; export the mailbox again and upload that")
    return ParsedDocument(title_from(name), tuple(blocks), warnings=tuple(dict.fromkeys(warnings)))


def _messages(data: bytes) -> Iterator[bytes]:
    """The messages between the lines that begin with `From `, with what was quoted for them put right."""
    starts = [found.start() for found in _MESSAGE_START.finditer(data)]
    for start, end in itertools.pairwise((*starts, len(data))):
        _, _, message = data[start:end].partition(b"\n")
        yield _QUOTED_START.sub(rb"\1From ", message)


def _blocks_of(message: EmailMessage, warnings: list[str], *, has_heading: bool = False) -> Iterator[Block]:
    """The text of a message and of those that it forwards, each below its headers."""
    found = _parts(message, warnings)
    headers = _headers(message)
    lead = people_lines(headers) if found else header_lines(headers)
    yield from below_headers(lead, headers, _metadata(message), has_heading=has_heading)
    for writer, blocks in itertools.groupby(found, key=lambda each: each[0]):
        is_forwarded = writer is not message
        yield from below_headers(
            [block for _, block in blocks], _headers(writer), _metadata(writer), has_heading=has_heading or is_forwarded
        )


def _headers(message: EmailMessage) -> Mapping[str, str]:
    return {header: _header(message, header) for header in SHOWN}


def attachment_heading(name: str) -> Block:
    """What stands above the text of an attachment. Headings within it are below."""
    return Block(BlockKind.HEADING, f"Attachment: {name}", level=0, begins_part=True)


def _parts(message: EmailMessage, warnings: list[str]) -> Sequence[tuple[EmailMessage, Block]]:
    """The body in its plainest form and the names of what is not read, then what is forwarded, then the attachments that are read.
    Each block with the message that it is of: this one, or one that it forwards."""
    body: list[tuple[EmailMessage, Block]] = []
    forwarded: list[tuple[EmailMessage, Block]] = []
    attachments: list[tuple[EmailMessage, Block]] = []
    alternatives: set[int] = set()
    writers: dict[int, EmailMessage] = {}
    for number, part in enumerate(message.walk()):
        if number >= _MAX_PARTS:
            warnings.append(f"only the first {_MAX_PARTS} parts were read")
            break
        writer = writers.get(id(part), message)
        own = body if writer is message else forwarded
        if part.is_multipart():
            if part.get_content_type() == "multipart/alternative":
                alternatives.update(map(id, _unwanted(part.get_payload())))
            inner = _forwarded(part)
            writers.update((id(each), inner or writer) for each in part.get_payload())
            if inner:
                forwarded += ((inner, block) for block in _lead_of_forwarded(inner))
            continue
        if id(part) in alternatives:
            continue
        attached = _file_name(part)
        is_text = part.get_content_maintype() in (
            "text",
            "multipart",
        )  # it may claim to be of several parts, and be none
        if not attached:
            own += ((writer, block) for block in (_text(part) if is_text else ()))
        elif is_text:
            attachments += ((writer, block) for block in (attachment_heading(attached), *_text(part)))
        else:
            own.append((writer, Block(BlockKind.TEXT, f"Attachment: {attached}")))
            warnings.append(f"the attachment {attached} was not read; upload it on its own")
    return [*body, *forwarded, *attachments]


def _forwarded(part: EmailMessage) -> EmailMessage | None:
    """The message within a part."""
    inner = part.get_payload() if part.get_content_type() == "message/rfc822" else None
    first = inner[0] if isinstance(inner, list) and inner else None
    return first if isinstance(first, EmailMessage) else None


def _lead_of_forwarded(message: EmailMessage) -> Iterator[Block]:
    """The subject of a message within a message as a heading, and who wrote it; its text follows as a part."""
    headers = _headers(message)
    yield Block(BlockKind.HEADING, f"Forwarded: {headers['Subject'] or 'Message'}", level=0, begins_part=True)
    yield from people_lines(headers)


def _unwanted(versions: object) -> Iterator[EmailMessage]:
    """The HTML of a message that has plain text as well. Calendars are no other form of the text."""
    parts = [part for part in versions if isinstance(part, EmailMessage)] if isinstance(versions, list) else []
    if any(part.get_content_type() == "text/plain" and _content(part).strip() for part in parts):
        yield from (inner for part in parts if part.get_content_type() not in _KEPT for inner in part.walk())


def _text(part: EmailMessage) -> Iterator[Block]:
    text = _content(part)
    if part.get_content_subtype() == "html":
        yield from blocks_of_html(text)
    elif part.get_content_subtype() == "calendar":
        try:
            yield from list(calendar_blocks(text))
        except UNREADABLE_CALENDAR:
            yield from paragraphs(text)
    else:
        yield from paragraphs(text)


def _content(part: EmailMessage) -> str:
    try:
        codec_of_texts(part.get_content_charset("ascii"))
        return str(part.get_content())
    except _UNREADABLE:  # a charset that nobody knows, base64 that is none
        decoded = part.get_payload(decode=True)
        return decoded.decode("utf-8", "replace") if isinstance(decoded, bytes) else str(part.get_payload())


def _header(message: EmailMessage, header: str) -> str:
    try:
        return " ".join(str(message.get(header, "")).split())[:MAX_HEADER_CHARS]
    except _UNREADABLE:
        return ""


def _file_name(part: EmailMessage) -> str:
    try:
        return " ".join((part.get_filename() or "").split())[:200]
    except _UNREADABLE:
        return ""


def _metadata(message: EmailMessage) -> Mapping[str, str]:
    """The sender, the date in UTC and the Message-ID, to filter by and to cite."""
    sender, address = email.utils.parseaddr(_header(message, "From"))
    try:
        date = email.utils.parsedate_to_datetime(_header(message, "Date"))
        utc = f"{date.astimezone(dt.UTC) if date.tzinfo else date:%Y-%m-%dT%H:%M:%SZ}"
    except (*_UNREADABLE, OverflowError):
        utc = ""
    fields = {"author": sender or address, "date": utc, "message_id": _header(message, "Message-ID").strip("<> ")}
    return {key: value for key, value in fields.items() if value}
