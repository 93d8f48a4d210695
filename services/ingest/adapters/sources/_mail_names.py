"""What a message is called as a document: folder, day and subject, and a mark that no other message has."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Any

from services.ingest.adapters.source_patterns import path_part
from services.ingest.sources.models import SourceFile

_FOLDER_CHARS, _SUBJECT_CHARS, _ADDRESS_CHARS = 80, 100, 200
_SUBJECT_BYTES = 2000
"""Of a subject as it is sent: more than its characters take. The library's time grows with the square, by minutes at 150 KB."""


def described(key: str, folder: str, said: Mapping[bytes, Any]) -> SourceFile:
    """A message by its envelope. The name follows from the message and its place alone, so that it is the same every time."""
    envelope = said[b"ENVELOPE"]
    sent = envelope.date if isinstance(envelope.date, datetime) else said.get(b"INTERNALDATE")
    day = sent.date().isoformat() if isinstance(sent, datetime) else ""
    mark = hashlib.sha256(key.encode()).hexdigest()[:8]
    title = " ".join(part for part in (day, _subject(envelope.subject), f"[{mark}]") if part)
    parts = [path_part(part)[:_FOLDER_CHARS].strip() for part in folder.split("/")]
    path = "/".join(part for part in parts if part.strip(". "))[-_FOLDER_CHARS:].lstrip("/. ")
    sender = _address(envelope.from_)
    metadata = {"from": sender} if sender else {}
    if day:
        metadata["date"] = day
    size_bytes = said.get(b"RFC822.SIZE")
    name = f"{path}/{title}.eml" if path else f"{title}.eml"
    return SourceFile(key, mark, size_bytes if isinstance(size_bytes, int) else 0, name, metadata)


def _subject(raw: bytes | None) -> str:
    text = (raw or b"")[:_SUBJECT_BYTES].decode("utf-8", "replace")
    try:
        decoded = str(make_header(decode_header(text)))
    except (HeaderParseError, LookupError, ValueError):
        decoded = text
    return path_part(decoded)[:_SUBJECT_CHARS].strip()


def _address(senders: Any) -> str:
    """The first one's; empty where nobody or nothing readable is named."""
    first = senders[0] if senders else None
    parts = (getattr(first, "mailbox", None), getattr(first, "host", None))
    if not all(isinstance(part, bytes) and part.isascii() for part in parts):
        return ""
    address = f"{parts[0].decode()}@{parts[1].decode()}".lower()  # type: ignore[union-attr]
    return address if address.isprintable() and len(address) <= _ADDRESS_CHARS else ""
