"""How often detectors of encodings read texts right, in the languages of `evals/data/reading/languages.txt` and the encodings that
their texts were written in."""

import importlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
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


Results = dict[EncodedText, bool]
"""Of each text whether it was read as it was written."""


def results_of(reader: Callable[[bytes], str]) -> Results:
    return {each: reader(each.data) == each.text for each in encoded_texts()}


def share_right(results: Results, is_meant: Callable[[EncodedText], bool]) -> float:
    """The share of the chosen texts that are read as they were written."""
    meant = [is_right for text, is_right in results.items() if is_meant(text)]
    return sum(meant) / len(meant)


def encoding_tables() -> list[str]:
    """Lines of two tables: a detector a row by shapes of text, and a language a row by detectors."""
    found: dict[str, Results] = {}
    lines = [f"{'detector':<20}{'sentence':>10}{'text':>8}{'table':>8}{'UTF-16':>8}"]
    for name, reader in READERS.items():
        try:
            results = found[name] = results_of(reader)
        except ModuleNotFoundError as missing:
            lines.append(f"{name:<20}  not installed ({missing.name})")
            continue
        short, long, table = (
            share_right(results, partial(_is_of_shape, shape)) for shape in ("short", "long", "table")
        )
        lines.append(f"{name:<20}{short:>10.0%}{long:>8.0%}{table:>8.0%}{share_right(results, _is_wide):>8.0%}")
    return [*lines, "", *_language_table(found)]


def _language_table(found: dict[str, Results]) -> list[str]:
    lines = [f"{'language':<10}{'encodings':<44}" + "".join(f"{name:>20}" for name in found)]
    languages: dict[str, dict[str, None]] = defaultdict(dict)
    for each in encoded_texts():
        if not _is_wide(each):
            languages[each.language][each.encoding] = None
    for language, encodings in languages.items():
        shares = (share_right(results, partial(_is_in_language, language)) for results in found.values())
        lines.append(f"{language:<10}{' '.join(encodings):<44}" + "".join(f"{share:>20.0%}" for share in shares))
    return lines


def _is_wide(text: EncodedText) -> bool:
    return text.encoding in _WIDE


def _is_of_shape(shape: str, text: EncodedText) -> bool:
    return text.shape == shape and not _is_wide(text)


def _is_in_language(language: str, text: EncodedText) -> bool:
    return text.language == language and not _is_wide(text)
