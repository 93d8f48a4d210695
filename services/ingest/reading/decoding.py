"""Bytes to text. A byte order mark decides; else UTF-8 if it is valid or nearly so; else UTF-16 if every other byte is zero; else
what charset-normalizer thinks of a sample. Never fails: a wrong guess shows as replacement characters and is reported."""

import codecs
import re
from dataclasses import dataclass

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE_BYTES = 64 * 1024
_BINARY_BYTES = bytes(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 27}) + b"\x7f"
_TEXT_CONTROLS = frozenset("\t\n\v\f\r")
_MAX_BINARY_SHARE = 0.05
_MIN_VALID_PER_BROKEN = 4
_WESTERN_LOOKALIKES = frozenset({"cp1250", "cp1254", "cp1257", "cp1258", "mac_roman", "mac_iceland", "iso8859_15"})
_LATIN = frozenset({"cp1250", "iso8859_2", "cp1254", "iso8859_9", "cp1257", "iso8859_4", "iso8859_13"})
"""Encodings of today's files in Latin letters, besides cp1252: what is guessed among them stands."""
_WITHIN_WORDS = frozenset("\u2019\u2013\u2014\xad")
"""Signs that may stand between two letters: apostrophe, dashes, soft hyphen."""
_RARE_IN_WESTERN = frozenset("ŠšŽžŸƒˆ")
"""Where cp1252 has letters and encodings of DOS and Macintosh have commoner ones."""
_NOT_FOR_TEXTS = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape"})
"""Codecs of names and of source code. The first two take time with the square of a text."""
_DECLARED = re.compile(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)


@dataclass(frozen=True)
class DecodedText:
    """Text with the encoding that it was read as. `guessed` when nothing in the file said so."""

    text: str
    encoding: str
    guessed: bool


def decode(data: bytes, *, is_html: bool = False) -> DecodedText:
    """Decodes a whole file. An HTML file's own declaration is believed where it fits."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return DecodedText(data[len(bom) :].decode(encoding, "replace"), encoding, guessed=False)
    encoding, guessed = _encoding_of(data, is_html=is_html)
    return DecodedText(data.decode(encoding, "replace"), encoding, guessed)


def _encoding_of(data: bytes, *, is_html: bool) -> tuple[str, bool]:
    wide = _utf16_without_mark(data)
    if wide:
        return wide, True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        declared = _declared_encoding(data) if is_html else None
        if declared:
            return declared, False
        return ("utf-8", False) if _is_damaged_utf8(data) else (_guess(data), True)
    return "utf-8", False


def _is_damaged_utf8(data: bytes) -> bool:
    """Whether what is no UTF-8 is a small part of what is: a file cut within a letter, a line of another encoding in a log. Text in
    other encodings looks like UTF-8 only here and there."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    letters = len(text) - len(text.encode("ascii", "ignore")) - broken
    return letters >= _MIN_VALID_PER_BROKEN * broken


def _declared_encoding(data: bytes) -> str | None:
    found = _DECLARED.search(data[:4096])
    if not found:
        return None
    try:
        name = codec_of_texts(found[1].decode("ascii"))
        data.decode(name)
    except (LookupError, UnicodeDecodeError):
        return None
    return name


def codec_of_texts(encoding: str) -> str:
    """The name of the codec for what a file says is its encoding. Raises LookupError when there is none for texts."""
    name = codecs.lookup(encoding).name
    if name in _NOT_FOR_TEXTS:
        raise LookupError(f"{encoding} is no encoding of texts")
    return name


def _guess(data: bytes) -> str:
    from charset_normalizer import from_bytes  # noqa: PLC0415 - 50 ms to load, needed for few files

    sample = _informative_sample(data)
    matches = from_bytes(sample)
    best = matches.best()
    if best is None or best.encoding in ("latin_1", "ascii"):
        return "cp1252"
    # Short texts fit several encodings equally well; then the commonest of them is the best guess. (Every Latin-1 text is
    # also a cp1252 text; the reverse loses quotation marks and dashes.)
    as_good = {name for match in matches if match.chaos <= best.chaos for name in match.could_be_from_charset}
    western = best.encoding in _WESTERN_LOOKALIKES and "cp1252" in as_good
    return "cp1252" if western or (best.encoding not in _LATIN and _reads_as_western(sample)) else best.encoding


def _reads_as_western(sample: bytes) -> bool:
    """Whether it is cp1252 by its words: Latin letters, of which some have an accent. Other scripts would be words of nothing but
    such letters, and those of old Latin encodings signs within words ("Se¤or")."""
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    if re.search(r"[^\W\d_a-zA-Z]{3}", text) or not _RARE_IN_WESTERN.isdisjoint(text):
        return False
    letters = [char for char in text if char.isalpha()]
    signs = re.findall(r"(?<=[^\W\d_])[^\x00-\x7f\w](?=[^\W\d_])", text)
    return 2 * sum(char > "\x7f" for char in letters) <= len(letters) and _WITHIN_WORDS.issuperset(signs)


def _informative_sample(data: bytes) -> bytes:
    """The part around the first byte that is not ASCII: only there do encodings differ."""
    found = re.search(rb"[\x80-\xff]", data)
    first = found.start() if found else 0
    start = max(data.rfind(b"\n", 0, first) + 1, first - 1024, 0)
    return data[start : start + _SAMPLE_BYTES]


def _utf16_without_mark(data: bytes) -> str | None:
    sample = data[:4096]
    if len(sample) < 4:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd > 0.4 * half and even < 0.05 * half:
        encoding = "utf-16-le"
    elif even > 0.4 * half and odd < 0.05 * half:
        encoding = "utf-16-be"
    else:
        return None
    # Numbers of 16 bits in a binary file look the same; as text they are control characters.
    text = sample.decode(encoding, "replace")
    return (
        encoding
        if sum(char < " " and char not in _TEXT_CONTROLS for char in text) <= _MAX_BINARY_SHARE * half
        else None
    )


def looks_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are not text in any encoding that `decode` reads."""
    if any(head.startswith(bom) for bom, _ in _BOMS) or _utf16_without_mark(head):
        return False
    return len(head) - len(head.translate(None, _BINARY_BYTES)) > _MAX_BINARY_SHARE * len(head)
