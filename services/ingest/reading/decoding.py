"""Bytes to text. What the uploader says decides, then a byte order mark; else UTF-8 if it is valid or nearly so; else UTF-16 if it
reads as that; else what chardet thinks of a sample (`evals/reading` compares detectors). Never fails: a wrong guess shows as
replacement characters and is reported."""

import codecs
import contextlib
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache

from services.ingest.reading.alphabets import encoding_of_one_language, is_of_one_language

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE_BYTES = 64 * 1024
_BINARY_BYTES = bytes(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 27}) + b"\x7f"
_UTF16_BYTES = 4096
_TOGETHER = {
    "HIRAGANA": "CJK",
    "KATAKANA": "CJK",
    "FULLWIDTH": "CJK",
    "IDEOGRAPHIC": "CJK",
    "LEFT": "CJK",
    "RIGHT": "CJK",
}
"""Scripts and signs that stand in one text, by the first words of their characters' names."""
_TEXT_CONTROLS = frozenset("\t\n\v\f\r")
_MAX_BINARY_SHARE = 0.05
_MIN_VALID_PER_BROKEN = 4
_LATIN = re.compile(r"cp125[0-8]|iso8859[-_]\d+", re.IGNORECASE)
"""Encodings of one byte a letter that today's files are in: what is guessed among them stands."""
_SUPERSETS = {
    "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-8": "cp1255", "euc_kr": "cp949", "gb2312": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932", "tis-620": "cp874", "iso8859-11": "cp874",
}  # fmt: skip
"""What the beginning of a file is in, to what all of it may be in: with quotation marks, dashes and rare letters."""
_MAX_GUESSES = 6
_MOST_LETTERS = 0.6
"""Of a text that may have names of other languages."""
_FAIRLY_SURE = 0.2
_WORDS_LOOKED_AT = 2000
_SIGNS_AT_WORDS = frozenset("\u2019\u2018\u201c\u201d\u201e\u201a«»\u2039\u203a\u2013—…¿¡·\xad\xa0§™®©ªº†•№")
_DEGREES = re.compile(r"°[CFKNESWO](?![A-Za-z\xc0-\u024f])")
_ALPHABETS = frozenset(("LATIN", "CYRILLIC", "GREEK", "HEBREW", "ARABIC", "THAI", "ARMENIAN", "GEORGIAN"))
_UTF16_BLOCK = 0.9
"""Of the characters of a text in UTF-16: those in the commonest script, spaces and punctuation."""
_UTF16_FOREIGN = 0.1
_UTF16_CHARS = 12
"""Of one script: binary data have no run of so many."""
_UTF16_COMMON = frozenset("\n\t \u3000\u3001\u3002\uff0c\u060c.,")
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


_named: ContextVar[str] = ContextVar("_named", default="")
_usual: ContextVar[str] = ContextVar("_usual", default="")


@contextmanager
def known_encodings(*, named: str, usual: str) -> Iterator[None]:
    """While a file is read: `named` is the encoding that its uploader says, `usual` the one to take before any is guessed."""
    tokens = (_named.set(named), _usual.set(usual))
    try:
        yield
    finally:
        _named.reset(tokens[0])
        _usual.reset(tokens[1])


def decode(data: bytes, *, is_html: bool = False) -> DecodedText:
    """Decodes a whole file. An HTML file's own declaration is believed where it fits."""
    if named := _named.get():
        return DecodedText(data.decode(named, "replace").removeprefix("\ufeff"), named, guessed=False)
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return DecodedText(data[len(bom) :].decode(encoding, "replace"), encoding, guessed=False)
    encoding, guessed = _encoding_of(data, is_html=is_html)
    return DecodedText(data.decode(encoding, "replace"), encoding, guessed)


def _encoding_of(data: bytes, *, is_html: bool) -> tuple[str, bool]:
    if wide := _utf16_without_mark(data) or _with_escapes(data):
        return wide, True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        declared = _declared_encoding(data) if is_html else None
        if declared:
            return declared, False
        return ("utf-8", False) if _is_damaged_utf8(data) else (_guess(data), True)
    return "utf-8", False


def _with_escapes(data: bytes) -> str | None:
    """The encoding that switches character sets by escape sequences (ISO 2022), as old mails and files do."""
    if b"\x1b$" in data:
        for encoding in ("iso2022_jp_2", "iso2022_kr"):
            with contextlib.suppress(UnicodeDecodeError):
                if not data.decode(encoding).isascii():
                    return encoding
    return None


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
    if (usual := _usual.get()) and "\ufffd" not in data.decode(usual, "replace"):
        return usual
    sample = _informative_sample(data)
    guess = _guess_by_statistics(sample)
    if is_of_one_language(sample.decode(guess, "replace"), _MOST_LETTERS):
        return guess
    return encoding_of_one_language(sample) or guess


def _guess_by_statistics(sample: bytes) -> str:
    import chardet  # noqa: PLC0415 - needed for few files

    unlikely: list[str] = []
    first = ""
    for _ in range(_MAX_GUESSES):
        found = chardet.detect(sample, compat_names=False, exclude_encodings=unlikely or None)
        encoding = _SUPERSETS.get(found["encoding"] or "", found["encoding"])
        if not encoding or encoding == "ascii":
            break
        first = first or encoding
        if _is_likely(sample.decode(encoding, "replace")):
            is_unsure = found["confidence"] < _FAIRLY_SURE and not _LATIN.match(encoding)
            return "cp1252" if is_unsure and _reads_as_western(sample) else encoding
        unlikely.append(encoding)
    return "cp1252" if not first or _reads_as_western(sample) else first


def _is_likely(text: str) -> bool:
    """Whether the words of a text look like words: of one alphabet, no capital behind a small letter, no sign at a letter."""
    for word in re.findall(r"\S*[^\x00-\x7f]\S*", _DEGREES.sub("", text))[:_WORDS_LOOKED_AT]:
        scripts = {script for char in word if char.isalpha() and (script := _script(char)) in _ALPHABETS}
        odd_sign = re.search(r"[^\W\d_][^\x00-\x7f\w]|[^\x00-\x7f\w][^\W\d_]|[\u02c6\u02dc]", word)
        if len(scripts) > 1 or re.search(r"[a-z\xdf-\xff][\xc0-\xde]", word):
            return False
        if odd_sign and not (
            _SIGNS_AT_WORDS.intersection(odd_sign[0]) or _has_marks(odd_sign[0]) or _is_of_own_script(odd_sign[0])
        ):
            return False
    return True


def _has_marks(text: str) -> bool:
    """Whether signs on letters are among the characters: Thai and Hebrew have them, and scripts without words are no words."""
    return any(unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Mc") for char in text) or any(
        char >= "\u2e80" for char in text
    )


def _is_of_own_script(text: str) -> bool:
    """Whether a letter and a sign are of one script other than Latin: the Arabic comma stands at a word as a comma does."""
    scripts = {_script(char) for char in text}
    return len(scripts) == 1 and not scripts.isdisjoint(_ALPHABETS)


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


def _reads_as_western(sample: bytes) -> bool:
    """Whether it is cp1252 by its words: Latin letters, some with an accent. Other scripts would be words of nothing but
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
    sample = data[: _UTF16_BYTES - _UTF16_BYTES % 2]
    sample = sample[: len(sample) - len(sample) % 2]
    if len(sample) < 4:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le" if _is_text(sample.decode("utf-16-le", "replace")) else None
    if even > 0.4 * half and odd < 0.05 * half:
        return "utf-16-be" if _is_text(sample.decode("utf-16-be", "replace")) else None
    # Every text in another script has many bytes that are no letters of ASCII, and some that no other encoding has.
    binary = _count_binary(sample)
    if not binary or binary + sum(byte > 0x7F for byte in sample) < _UTF16_FOREIGN * len(sample):
        return None
    return next((each for each in ("utf-16-le", "utf-16-be") if _is_of_one_script(sample, each)), None)


def _is_text(text: str) -> bool:
    """Whether there are no more control characters than in a text: numbers of 16 bits in a binary file look the same."""
    return sum(char < " " and char not in _TEXT_CONTROLS for char in text) <= _MAX_BINARY_SHARE * len(text)


def _is_of_one_script(sample: bytes, encoding: str) -> bool:
    """Whether nearly all characters are of one script, and spaces or punctuation are among them or they are many."""
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError:
        return False
    scripts: dict[str, int] = {}
    for char in text:
        script = "" if char < "\x80" or char in _UTF16_COMMON else _script(char)
        scripts[_TOGETHER.get(script, script)] = scripts.get(_TOGETHER.get(script, script), 0) + 1
    common = scripts.pop("", 0)
    most = max(scripts.values(), default=0)
    is_enough = len(text) >= _UTF16_CHARS or any(char in _UTF16_COMMON for char in text)
    return is_enough and _is_text(text) and 2 * most > len(text) - common and most + common >= _UTF16_BLOCK * len(text)


def _count_binary(data: bytes) -> int:
    return len(data) - len(data.translate(None, _BINARY_BYTES))


def looks_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are not text in any encoding that `decode` reads."""
    if any(head.startswith(bom) for bom, _ in _BOMS) or _utf16_without_mark(head):
        return False
    return _count_binary(head) > _MAX_BINARY_SHARE * len(head)
