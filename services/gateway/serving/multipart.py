"""Uploads as they come in: a multipart/form-data body (RFC 7578) is parsed while it arrives and the file's bytes are handed on
at the pace of their reader. Nothing is spooled and at most one piece is held, whatever the size of the file."""

import asyncio
import json
import re
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Any
from urllib.parse import unquote_to_bytes

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from services.gateway.errors import BadForm, FileFieldMissing, MalformedMultipart, UnsupportedContentType, UploadStalled

FILE_FIELD = "file"
METADATA_FIELD = "metadata"
ENCODING_FIELD = "encoding"
LANE_FIELD = "lane"
ACCESS_FIELD = "access"
LANES = ("interactive", "bulk")
_MAX_ENCODING_CHARS = 40
MAX_FIELD_BYTES = 64 * 1024
"""Largest ordinary field. Metadata is a handful of short strings."""
PIECE_BYTES = 256 * 1024
"""Bytes are handed on in pieces of about this size: far below the contract's 1 MiB, large enough that messages cost little."""
LEAST_BYTES_PER_S = 1024
"""A client that has been waited for longer than the idle timeout in all must have sent this much for each second of it: with a
deadline for each piece alone, one byte a minute would hold a connection for an hour."""


@dataclass(frozen=True)
class _Header:
    field: str
    file_name: str | None
    data_offset: int
    """Bytes of the body before the part's first byte."""


@dataclass(frozen=True)
class _End:
    """End of a part."""


_Item = _Header | bytes | _End

_QUOTED = re.compile(rb'"(?:\\.|[^"\\])*"')
_EXTENDED_NAME = re.compile(rb";\s*filename\*\s*=\s*([^\s;']+'[^\s;']*'[^\s;']*)", re.IGNORECASE)
_ENCODED_WORDS = re.compile(r"=\?[^?\s]+\?[bqBQ]\?[^?\s]*\?=(?:\s+=\?[^?\s]+\?[bqBQ]\?[^?\s]*\?=)*")
"""RFC 2047, as a whole name."""


class MultipartForm:
    """A form with one `file` and, before it, the optional fields `metadata`, `encoding` and `lane`. Call `open()` once, then
    iterate `pieces()` once."""

    def __init__(
        self, body: AsyncIterator[bytes], content_type: str, *, content_length: int | None, idle_timeout_s: float
    ) -> None:
        self.file_name = ""
        self.declared_size_bytes = 0
        """The file's size as the request tells it; 0 when unknown."""
        self.metadata: dict[str, str] = {}
        self.access: dict[str, list[str]] | None = None
        self.late_metadata: dict[str, str] = {}
        """What was found behind the file; complete once `pieces()` has ended."""
        self.encoding = ""
        """Of the file where it is text; empty where the sender does not say."""
        self.lane = ""
        """Where its job waits, one of LANES; empty where the sender does not say."""
        self._body = body
        self._boundary = _boundary(content_type)
        self._content_length = content_length
        self._idle_timeout_s = idle_timeout_s
        self._items: deque[_Item] = deque()
        self._ended = False
        self.file_bytes = 0
        """Bytes of the file handed out so far."""
        self._chunk_offset = 0
        self._waited_s = 0.0
        """Seconds in which the client was waited for; those in which ingest took what had come do not count."""
        self._data_offset = 0
        self._file_offset = 0
        self._header: list[tuple[bytes, bytes]] = []
        self._header_name = b""
        self._header_value = b""
        self._parser = self._new_parser()

    def _new_parser(self) -> MultipartParser:
        try:
            return MultipartParser(
                self._boundary,
                {
                    "on_header_field": self._on_header_field,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": lambda data, start, end: self._items.append(data[start:end]),
                    "on_part_end": lambda: self._items.append(_End()),
                    "on_end": self._on_end,
                },
            )
        except FormParserError as error:
            raise MalformedMultipart(f"the Content-Type's boundary is not usable: {error}") from error

    def _announced_size(self) -> int:
        if self._ended and not any(isinstance(item, _Header) for item in self._items):
            return sum(len(item) for item in self._items if isinstance(item, bytes))
        if self._content_length is None:
            return 0
        closing = len(self._boundary) + len("\r\n----\r\n")
        return max(0, self._content_length - self._file_offset - closing)

    async def open(self) -> None:
        """Reads up to the file's first byte. Raises InvalidArgument errors that name the field and what to do."""
        while True:
            header = await self._next()
            if header is None:
                raise FileFieldMissing(f"the form has no field {FILE_FIELD!r}; send the document in it")
            if not isinstance(header, _Header):
                continue
            if header.field == FILE_FIELD:
                self._open_file(header)
                return
            await self._take_early(header.field)

    async def _take_early(self, name: str) -> None:
        """A part before the file. Raises BadForm."""
        if name == METADATA_FIELD:
            self.metadata = _metadata(await self._field())
        elif name == ENCODING_FIELD:
            self.encoding = (await self._field()).decode("latin-1").strip()[:_MAX_ENCODING_CHARS]
        elif name == ACCESS_FIELD:
            self.access = _access(await self._field())
        elif name == LANE_FIELD:
            self.lane = _lane(await self._field())
        else:
            raise BadForm(
                f"the form has an unknown field {name!r}; send {METADATA_FIELD!r}, {ENCODING_FIELD!r}, "
                f"{ACCESS_FIELD!r} and {LANE_FIELD!r} (optional), then {FILE_FIELD!r}"
            )

    async def pieces(self) -> AsyncIterator[bytes]:
        """The file's bytes. Ends only once the whole form has been read and was well-formed; raises before that otherwise."""
        held = bytearray()
        while isinstance(item := await self._next(), bytes):
            held += item
            self.file_bytes += len(item)
            while len(held) >= PIECE_BYTES:
                yield bytes(held[:PIECE_BYTES])
                del held[:PIECE_BYTES]
        if held:
            yield bytes(held)
        while (extra := await self._next()) is not None:
            await self._take_late(extra.field if isinstance(extra, _Header) else "?")

    async def _take_late(self, name: str) -> None:
        """A part behind the file. Raises BadForm."""
        raise BadForm(
            f"the form goes on with {name!r} after the file; send one file a request, and {METADATA_FIELD!r} before it"
        )

    def check_size(self) -> None:
        """Raises BadForm when the form was read to its end and its file was not as long as the request had announced."""
        announced = self.declared_size_bytes
        if self._ended and not self._items and announced and announced != self.file_bytes:
            raise BadForm(
                f"the file has {self.file_bytes} bytes where the Content-Length announced {announced}; "
                "end the form with the closing boundary and one line break, and send nothing after it"
            )

    def _open_file(self, header: _Header) -> None:
        if not header.file_name:
            raise BadForm(f"the field {FILE_FIELD!r} carries no file name; send it as a file, not as a plain value")
        self.file_name = header.file_name
        self._file_offset = header.data_offset
        self.declared_size_bytes = self._announced_size()

    async def _field(self) -> bytes:
        value = bytearray()
        while isinstance(item := await self._next(), bytes):
            value += item
            if len(value) > MAX_FIELD_BYTES:
                raise BadForm(f"a field of the form is larger than {MAX_FIELD_BYTES} bytes")
        return bytes(value)

    async def _next(self) -> _Item | None:
        """The next item of the form; None once it has ended."""
        while not self._items:
            if self._ended:
                return None
            await self._read()
        return self._items.popleft()

    async def _read(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._idle_timeout_s):
                chunk = await anext(self._body, b"")
        except TimeoutError as error:
            raise UploadStalled(f"nothing was received for {self._idle_timeout_s:g} s; send the file again") from error
        self._waited_s += time.monotonic() - began
        if self._waited_s > self._idle_timeout_s and self._chunk_offset < self._waited_s * LEAST_BYTES_PER_S:
            raise UploadStalled(
                f"only {self._chunk_offset} bytes were received in {self._waited_s:.0f} s; send the file again over a faster line"
            )
        if not chunk:
            raise MalformedMultipart(
                "the form ended before its closing boundary; the upload is incomplete, send it again"
            )
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise MalformedMultipart(f"the form is not valid multipart/form-data: {error}") from error
        self._chunk_offset += len(chunk)

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]
        self._data_offset = self._chunk_offset + end + len("\r\n\r\n")

    def _on_header_end(self) -> None:
        self._header.append((self._header_name.lower(), self._header_value))
        self._header_name = self._header_value = b""

    def _on_headers_finished(self) -> None:
        disposition = dict(self._header).get(b"content-disposition", b"")
        kind, options = parse_options_header(disposition)
        if kind != b"form-data" or b"name" not in options:
            raise MalformedMultipart("a part of the form has no `Content-Disposition: form-data; name=…` header")
        name = _file_name(options.get(b"filename"), disposition)
        self._items.append(_Header(_text(options[b"name"]), name, self._data_offset))
        self._header.clear()

    def _on_end(self) -> None:
        self._ended = True


def _boundary(content_type: str) -> str:
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise UnsupportedContentType(
            f"an upload must be multipart/form-data, not {content_type or 'without a Content-Type'!r}; "
            f"send the document in the form field {FILE_FIELD!r}"
        )
    if not options.get(b"boundary"):
        raise MalformedMultipart("the Content-Type names no boundary; let your HTTP library set that header")
    return options[b"boundary"].decode("latin-1")


def _text(raw: bytes) -> str:
    """A name from a header: UTF-8 as browsers send it, else latin-1; with the escapes of the HTML standard undone."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return text.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")


def _file_name(plain: bytes | None, disposition: bytes) -> str | None:
    """The name in `filename*` (RFC 8187), which some HTTP libraries add although RFC 7578 has no such thing, else in `filename`."""
    extended = _EXTENDED_NAME.search(_QUOTED.sub(b'""', disposition))
    if extended:
        charset, _, escaped = extended[1].decode("ascii", "replace").split("'", 2)
        with suppress(LookupError, UnicodeError):
            return unquote_to_bytes(escaped).decode(charset)
    if plain is None:
        return None
    name = _text(plain)
    if _ENCODED_WORDS.fullmatch(name):
        with suppress(LookupError, UnicodeError, HeaderParseError):
            return str(make_header(decode_header(name)))
    return name


def _lane(raw: bytes) -> str:
    lane = raw.decode("latin-1").strip()
    if lane not in LANES:
        raise BadForm(f"the field {LANE_FIELD!r} is {lane[:40]!r}; send one of {', '.join(LANES)}, or leave it out")
    return lane


def _access(raw: bytes) -> dict[str, list[str]]:
    value = _json(ACCESS_FIELD, raw, "an object with lists of subjects and groups")
    is_list = isinstance(value, dict) and value.keys() <= {"subjects", "groups"}
    if not is_list or not all(
        isinstance(each, list) and all(isinstance(name, str) for name in each) for each in value.values()
    ):
        raise BadForm(
            f'the field {ACCESS_FIELD!r} must be an object such as {{"subjects": ["anna"], "groups": ["sales"]}}, with '
            "lists of texts"
        )
    lists: dict[str, list[str]] = value
    return lists


def _json(field: str, raw: bytes, wanted: str) -> Any:
    try:
        value = json.loads(raw.decode("utf-8"))
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # a lone surrogate is JSON but no text
    except (UnicodeError, ValueError, RecursionError) as error:
        raise BadForm(f"the field {field!r} is not JSON ({error}); send {wanted}") from error
    return value


def _metadata(raw: bytes) -> dict[str, str]:
    value = _json(METADATA_FIELD, raw, "an object of strings")
    if not isinstance(value, dict) or not all(isinstance(member, str) for member in value.values()):
        raise BadForm(f"the field {METADATA_FIELD!r} must be a JSON object whose values are strings")
    return value
