"""How often detectors of encodings read texts right, in the languages of `evals/data/reading/languages.txt` and the encodings that
their texts were written in."""

import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from services.ingest.reading.decoding import decode

LANGUAGES = Path(__file__).parents[1] / "data" / "reading" / "languages.txt"
_WIDE = ("utf-16-le", "utf-16-be")
_SENTENCE_END = re.compile(r"(?<=[.。;])\s?")
_WORD = re.compile(r"\w{2,}")


@dataclass(frozen=True)
class EncodedText:
    """A text in an encoding, as a file would hold it."""

    language: str
    encoding: str
    shape: str
    """`short`: a sentence; `long`: several; `table`: a word a row."""
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode(self.encoding)


def encoded_texts() -> Iterator[EncodedText]:
    """Every language in each of its encodings, and in UTF-16 without a mark."""
    for line in LANGUAGES.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        language, encodings, text = line.split(" | ")
        rows = "".join(f"{at};{word};{3 * at}\r\n" for at, word in enumerate(_WORD.findall(text)))
        shapes = {"short": _SENTENCE_END.split(text)[0], "long": text, "table": f"Code;Name;Price\r\n{rows}"}
        for encoding in (*encodings.split(), *_WIDE):
            for shape, content in shapes.items():
                yield EncodedText(language, encoding, shape, content.encode(encoding))


def read_by_us(data: bytes) -> str:
    """What ingestion makes of it."""
    return decode(data).text


def read_by_charset_normalizer(data: bytes) -> str:
    """What ingestion asked before."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - a part of the evaluation only

    return str(from_bytes(data).best() or "")


def read_by_chardet(data: bytes) -> str:
    """What ingestion asks where it cannot tell by itself."""
    import chardet  # noqa: PLC0415 - see above

    encoding = chardet.detect(data, compat_names=False)["encoding"]
    return data.decode(encoding, "replace") if encoding else ""


def read_by_cchardet(data: bytes) -> str:
    """A port of Mozilla's detector; measured where the package faust-cchardet is installed."""
    encoding = importlib.import_module("cchardet").detect(data)["encoding"]
    try:
        return data.decode(encoding, "replace") if encoding else ""
    except LookupError:
        return ""


READERS: dict[str, Callable[[bytes], str]] = {
    "Groundwork": read_by_us,
    "chardet": read_by_chardet,
    "charset-normalizer": read_by_charset_normalizer,
    "faust-cchardet": read_by_cchardet,
}


def shares_right(reader: Callable[[bytes], str]) -> dict[str, float]:
    """By shape, and for UTF-16: the share of texts that are read as they were written."""
    right: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for each in encoded_texts():
        shape = "utf-16" if each.encoding in _WIDE else each.shape
        count[shape] += 1
        right[shape] += reader(each.data) == each.text
    return {shape: right[shape] / count[shape] for shape in count}


def encoding_table() -> list[str]:
    """Lines of a table: a detector a row."""
    lines = [f"{'detector':<20}{'sentence':>10}{'text':>8}{'table':>8}{'UTF-16':>8}"]
    for name, reader in READERS.items():
        try:
            shares = shares_right(reader)
        except ModuleNotFoundError as missing:
            lines.append(f"{name:<20}  not installed ({missing.name})")
            continue
        lines.append(
            f"{name:<20}{shares['short']:>10.0%}{shares['long']:>8.0%}{shares['table']:>8.0%}{shares['utf-16']:>8.0%}"
        )
    return lines
