"""Exports of Telegram Desktop (result.json), of one chat or of all. A message is a unit of its own, with its chat, author and date
as fields to filter by; a reply quotes what it answers, a forward says where it comes from and which message of the export it
repeats.

The file is read as a stream: of an export that was cut off, all messages before the cut are kept.
"""

import datetime as dt
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import ijson

from services.ingest.errors import DocumentRejected
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.office.package import damaged
from services.ingest.reading.parsers.titles import title_from
from services.ingest.reading.source import Source

_BOM = b"\xef\xbb\xbf"
_MAX_DEPTH = 64
_QUOTE_CHARS = 200
_MAX_NAME_CHARS = 500
"""Of names and ids, which other messages repeat. The program allows names of 255 characters."""
# An escaped backslash, a pair of surrogates, a lone one: only the last is a mistake.
_SURROGATES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_CHAT_FIELDS = ("name", "type", "id")
_ONE_CHAT = ["messages", "[]"]
_ALL_CHATS = ("chats", "left_chats")


@dataclass(frozen=True, slots=True)
class _Message:
    """What is kept of a message. `number` is its id in its chat."""

    chat: str
    chat_id: str
    number: str
    author: str
    sender_id: str
    date: str
    date_is_utc: bool
    text: str
    reply_to: str
    forwarded_from: str
    forwarded_from_id: str

    @property
    def place(self) -> str:
        return f"{self.chat}/{self.number}"


def parse_telegram(source: Source, name: str) -> ParsedDocument:
    """Reads all messages that say something. Raises DocumentRejected: FILE_DAMAGED, UNSUPPORTED_TYPE."""
    with source.open("rb") as file:
        reader = _Reader(file, name)
    if reader.error:
        data = source.read_bytes()
        repaired = _repaired(data)
        if repaired != data:
            reader = _Reader(io.BytesIO(repaired), name)
    messages = reader.checked()
    blocks = tuple(_blocks(messages))
    chats = {message.chat for message in messages}
    title = next(iter(chats)) if len(chats) == 1 else title_from(name)
    warnings = [*reader.warnings]
    if reader.silent:
        warnings.append(f"{reader.silent} messages without text (pictures, stickers, calls) were left out")
    if any(not message.date_is_utc for message in messages):
        warnings.append("the export does not say its time zone; its times are taken as UTC")
    return ParsedDocument(title, blocks, warnings=tuple(warnings))


class _Reader:
    """Reads all messages, without holding more of the JSON than one of them."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._name = name
        self._messages: list[_Message] = []
        self._walk = _Walk()
        self.warnings: list[str] = []
        self.silent = 0
        """Messages without words."""
        self.error: Exception | None = None
        """What ended the reading before the end of the file."""
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
        try:
            for event, value in ijson.basic_parse(file, use_float=True):
                raw = self._walk.next(event, value)
                if raw is not None:
                    self._add(raw)
        except (ijson.JSONError, ValueError, ArithmeticError, _TooDeep) as error:
            self.error = error

    def _add(self, raw: Mapping[str, Any]) -> None:
        message = _message(self._walk.chat, raw)
        if message.text:
            self._messages.append(message)
        elif raw.get("type", "message") == "message":
            self.silent += 1

    def checked(self) -> list[_Message]:
        """The messages, if this was an export of Telegram that could be read at least in part. Raises DocumentRejected."""
        if self.error and not self._messages:
            what = "deeper nested than any export" if isinstance(self.error, _TooDeep) else "cut off or not JSON at all"
            raise damaged(self._name, f"its content is {what}")
        if self.error:
            self.warnings.append(
                f"the file is damaged or cut off; {len(self._messages)} messages before that place were read"
            )
        if not self._walk.has_messages:
            raise DocumentRejected(
                "UNSUPPORTED_TYPE",
                f"{self._name} is JSON, but no export of Telegram: it has no messages. Export the chat again from "
                "Telegram Desktop, in the format JSON",
            )
        return self._messages


class _TooDeep(Exception):
    """JSON that is nested as no export is."""


class _Walk:
    """Where in the file the parser is: for each open object the current key, for each open array "[]"."""

    def __init__(self) -> None:
        self.chat: dict[str, Any] = {}
        self.has_messages = False
        self._path: list[str] = []
        self._builder: Any = None
        self._message_depth = 0

    def next(self, event: str, value: Any) -> Mapping[str, Any] | None:
        """Takes one event; returns a message when it is complete."""
        if event == "start_map" and self._builder is None:
            self._begin()
        if self._builder is not None:
            self._builder.event(event, value)
        elif self._at_chat() and event in ("string", "number") and self._path[-1] in _CHAT_FIELDS:
            self.chat[self._path[-1]] = _short(value)
        return self._follow(event, value)

    def _begin(self) -> None:
        """An object opens: a chat of several, a message, or neither."""
        if self._path[1:] == ["list", "[]"] and self._path[0] in _ALL_CHATS:
            self.chat = {}
        elif self._path == _ONE_CHAT or (
            self._path[:1] and self._path[0] in _ALL_CHATS and self._path[3:] == _ONE_CHAT
        ):
            self._builder = ijson.ObjectBuilder()
            self._message_depth = len(self._path)

    def _at_chat(self) -> bool:
        return len(self._path) == 1 or (len(self._path) == 4 and self._path[0] in _ALL_CHATS)

    def _follow(self, event: str, value: Any) -> Mapping[str, Any] | None:
        if event == "map_key":
            self._path[-1] = str(value)
        elif event in ("start_map", "start_array"):
            self.has_messages |= event == "start_array" and self._path[-1:] == ["messages"]
            self._path.append("[]" if event == "start_array" else "")
            if len(self._path) > _MAX_DEPTH:
                raise _TooDeep(f"it is nested more than {_MAX_DEPTH} levels deep")
        elif event in ("end_map", "end_array"):
            self._path.pop()
            if self._builder is not None and len(self._path) == self._message_depth:
                message, self._builder = self._builder.value, None
                return message if isinstance(message, dict) else None
        return None


def _message(chat: Mapping[str, Any], raw: Mapping[str, Any]) -> _Message:
    kind = chat.get("type")
    chat_name = _string(chat.get("name")) or ("Saved Messages" if kind == "saved_messages" else "Deleted Account")
    date, is_utc = _date(raw)
    return _Message(
        chat=chat_name,
        chat_id=_string(chat.get("id")),
        number=_short(raw.get("id")),
        author=_short(raw.get("author")) or _short(raw.get("from")) or (chat_name if "from" not in raw else ""),
        sender_id=_short(raw.get("from_id")),
        date=date,
        date_is_utc=is_utc,
        text=_content(raw) if raw.get("type", "message") == "message" else "",
        reply_to=_short(raw.get("reply_to_message_id")),
        forwarded_from=_short(raw.get("forwarded_from")),
        forwarded_from_id=_short(raw.get("forwarded_from_id")),
    )


def _content(raw: Mapping[str, Any]) -> str:
    """The words of a message: its text, a poll, the name of a file, a place."""
    parts = [_text(raw.get("text"))]
    poll = raw.get("poll")
    if isinstance(poll, dict):
        answers = [_text(answer.get("text")) for answer in poll.get("answers") or () if isinstance(answer, dict)]
        parts.append("\n".join([_text(poll.get("question")), *(f"- {answer}" for answer in answers if answer)]))
    parts.extend(_string(raw.get(field)) for field in ("place_name", "address", "title", "performer"))
    if file_name := _string(raw.get("file_name")):
        parts.append(f"[file: {file_name}]")
    contact = raw.get("contact_information")
    if isinstance(contact, dict):
        parts.append(" ".join(_string(contact.get(field)) for field in ("first_name", "last_name", "phone_number")))
    return "\n".join(part for part in parts if part.strip())


def _text(value: Any) -> str:
    """Text that is a string, or a list of strings and entities. A link behind other words is written out behind them."""
    if isinstance(value, str):
        return value
    parts = []
    for piece in value if isinstance(value, list) else ():
        entity = piece if isinstance(piece, dict) else {"text": piece}
        words, link = entity.get("text"), _string(entity.get("href"))
        if isinstance(words, str):
            parts.append(f"{words} ({link})" if link and link != words else words)
    return "".join(parts)


def _date(raw: Mapping[str, Any]) -> tuple[str, bool]:
    """ISO 8601 in UTC, and whether the export says so: before 2022 it gave only the exporter's local time."""
    seconds = _string(raw.get("date_unixtime"))
    try:
        if re.fullmatch(r"\d{1,11}", seconds):
            return f"{dt.datetime.fromtimestamp(int(seconds), dt.UTC):%Y-%m-%dT%H:%M:%SZ}", True
        local = dt.datetime.fromisoformat(_string(raw.get("date")))
    except (ValueError, OverflowError, OSError):
        return "", True
    known = local.tzinfo is not None
    return f"{local.astimezone(dt.UTC) if known else local:%Y-%m-%dT%H:%M:%SZ}", known


def _blocks(messages: Sequence[_Message]) -> Iterator[Block]:
    by_number = {(message.chat_id, message.chat, message.number): message for message in messages}
    originals = _originals(messages)
    for message in messages:
        answered = by_number.get((message.chat_id, message.chat, message.reply_to)) if message.reply_to else None
        original = next((originals[key] for key in _source_keys(message) if key in originals), None)
        who = message.author if message.author != message.chat else ""
        above = f"{who}, {message.date[:16].replace('T', ' ')}".strip(", ")
        fields = {
            "channel": message.chat,
            "author": message.author,
            "date": message.date,
            "message_id": message.number,
            "forwarded_from": message.forwarded_from,
            "forward_of": original.place if original and original is not message else "",
        }
        yield Block(
            BlockKind.MESSAGE,
            "\n".join([*_introduction(message, answered), message.text]),
            context=tuple(name for name in (message.chat, above) if name),
            metadata={key: value for key, value in fields.items() if value},
        )


def _introduction(message: _Message, answered: _Message | None) -> Iterator[str]:
    if message.forwarded_from:
        yield f"Forwarded from {message.forwarded_from}:"
    if answered is not None:
        quote = " ".join(answered.text[: 4 * _QUOTE_CHARS].split())
        if len(quote) > _QUOTE_CHARS:
            quote = quote[:_QUOTE_CHARS].rpartition(" ")[0] + " …"
        yield f"In reply to {answered.author}: “{quote}”"


def _originals(messages: Sequence[_Message]) -> dict[tuple[str, str], _Message]:
    """First messages by who said what, to find what a forward repeats: the export does not name it."""
    found: dict[tuple[str, str], _Message] = {}
    for message in messages:
        if not message.forwarded_from:
            sources = (message.chat, message.author, message.sender_id, f"channel{message.chat_id}")
            for source in sources:
                found.setdefault((source, message.text), message)
    return found


def _source_keys(message: _Message) -> list[tuple[str, str]]:
    sources = (message.forwarded_from_id, message.forwarded_from) if message.forwarded_from else ()
    return [(source, message.text) for source in sources if source]


def _string(value: Any) -> str:
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, (int, float)) else ""


def _short(value: Any) -> str:
    return _string(value)[:_MAX_NAME_CHARS]


def _repaired(data: bytes) -> bytes:
    """The file in valid UTF-8, and without halves of characters: a text cut in the middle of an emoji ends in one."""
    text = data.decode("utf-8", "replace").encode()
    return _SURROGATES.sub(lambda found: found[0] if len(found[0]) != len(rb"\ud800") else rb"\ufffd", text)
