"""Messages of Outlook (.msg), with python-oxmsg: who wrote what to whom and when, then the text, as other e-mails are read."""

import datetime as dt
import email.utils
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.ingest.errors import DocumentRejected
from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.messages.compressed_rtf import unpacked_rtf
from services.ingest.reading.parsers.messages.mail import attachment_heading
from services.ingest.reading.parsers.messages.mail_headers import (
    MAX_HEADER_CHARS,
    below_headers,
    header_lines,
    people_lines,
)
from services.ingest.reading.parsers.office.rtf import read_rtf
from services.ingest.reading.parsers.text.plain import paragraphs
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.parsers.web.html import blocks_of_html
from services.ingest.reading.source import Source

_MAX_ATTACHMENTS = 1000
_BODY, _HTML, _COMPRESSED_RTF = 0x1000, 0x1013, 0x1009  # [MS-OXPROPS]
_DISPLAY_TO, _DISPLAY_CC, _MESSAGE_ID, _FILE_NAME = 0x0E04, 0x0E03, 0x1035, 0x3704


def parse_outlook(source: Source, name: str) -> ParsedDocument:
    """Reads a message. Raises DocumentRejected: MAIL_BROKEN."""
    from oxmsg import Message  # noqa: PLC0415 - only the child that meets such a file pays for it

    try:
        message = Message.load(source.read_bytes())
        return _Reader(message).document(name)
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # the library checks nothing: a damaged file is any mistake in it
        raise DocumentRejected(
            "MAIL_BROKEN", f"{name} is damaged or no message of Outlook; open it there, save it again and upload that"
        ) from error


class _Reader:
    def __init__(self, message: Any) -> None:
        self._message = message
        self._warnings: list[str] = []

    def document(self, name: str) -> ParsedDocument:
        message, properties = self._message, self._message.properties
        sent = message.sent_date
        shown = {
            "From": message.sender,
            "To": properties.str_prop_value(_DISPLAY_TO),
            "Cc": properties.str_prop_value(_DISPLAY_CC),
            "Date": f"{sent:%Y-%m-%d %H:%M} UTC" if sent else "",
            "Subject": message.subject,
        }
        headers = {
            key: " ".join(str(value or "").split()).strip("\0 ")[:MAX_HEADER_CHARS] for key, value in shown.items()
        }
        found = [*self._body(), *self._attachments()]
        metadata = _metadata(headers["From"], sent)
        if message_id := " ".join((properties.str_prop_value(_MESSAGE_ID) or "").split()).strip("<> \0"):
            metadata = {**metadata, "message_id": message_id[:MAX_HEADER_CHARS]}
        blocks = [*people_lines(headers), *found] if found else header_lines(headers)
        return ParsedDocument(
            title_or_name(headers["Subject"], name),
            tuple(below_headers(blocks, headers, metadata)),
            warnings=tuple(self._warnings),
        )

    def _body(self) -> Iterator[Block]:
        """The text in the plainest of its forms."""
        properties = self._message.properties
        if text := (properties.str_prop_value(_BODY) or "").strip("\0\r\n "):
            yield from paragraphs(text)
        elif html := properties.binary_prop_value(_HTML):
            yield from blocks_of_html(decode(html, is_html=True).text)
        elif html_text := properties.str_prop_value(_HTML):
            yield from blocks_of_html(html_text)
        elif packed := properties.binary_prop_value(_COMPRESSED_RTF):
            yield from self._rich_text(packed)

    def _rich_text(self, packed: bytes) -> Sequence[Block]:
        try:
            blocks, losses = read_rtf(unpacked_rtf(packed))
        except (ValueError, LookupError, OverflowError):
            self._warnings.append("the rich text of the message is damaged and was left out; save it as .html")
            return ()
        self._warnings += losses
        return blocks

    def _attachments(self) -> Iterator[Block]:
        """The names of those that are not read, then the text of the others."""
        read: list[Block] = []
        for at, attachment in enumerate(self._message.attachments):
            if at >= _MAX_ATTACHMENTS:
                self._warnings.append(f"only the first {_MAX_ATTACHMENTS} attachments were read")
                break
            name = attachment.file_name or attachment.properties.str_prop_value(_FILE_NAME) or ""
            name = " ".join(name.split())[:200] or "without a name"
            data = attachment.file_bytes
            kind = str(attachment.mime_type)
            if data and kind.startswith("text/"):
                text = decode(data, is_html=kind == "text/html").text
                blocks = blocks_of_html(text) if kind == "text/html" else paragraphs(text)
                read += [attachment_heading(name), *blocks]
            else:
                yield Block(BlockKind.TEXT, f"Attachment: {name}")
                self._warnings.append(f"the attachment {name} was not read; upload it on its own")
        yield from read


def _metadata(sender: str, sent: dt.datetime | None) -> Mapping[str, str]:
    """The sender and the date in UTC, to filter by."""
    name, address = email.utils.parseaddr(sender)
    date = f"{sent.astimezone(dt.UTC) if sent.tzinfo else sent:%Y-%m-%dT%H:%M:%SZ}" if sent else ""
    return {key: value for key, value in (("author", name or address), ("date", date)) if value}
