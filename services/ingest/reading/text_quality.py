"""Whether a page's text layer can be believed. Broken fonts make pages that look right and read as rubbish; such a page is read
from its picture instead."""

import re
import unicodedata
from collections.abc import Sequence

_CID = re.compile(r"\(cid:\d+\)")
# UTF-8 read as Latin-1 or Windows-1252: "Ã©", "â€™", "Ð¿Ñ€".
_CONTINUATION = "[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œ]"
_MOJIBAKE = re.compile(f"[ÂÃÐÑ]{_CONTINUATION}|â€{_CONTINUATION}")
WRONG_ENCODING = "its characters are in the wrong encoding"
_USUAL_RUSSIAN = "оеаинтсрвл"
_MIN_USUAL = 0.45  # ten letters that make up 0.62 of Russian and Bulgarian prose, and a third of letters at random
_MIN_CHARS = 20
_MAX_BAD_SHARE = 0.15  # bullets and arrows from symbol fonts stay below
_MAX_MOJIBAKE_SHARE = 0.03
_MAX_ACCENTED_SHARE = 0.5  # Vietnamese, the most accented of languages, has 0.3
_MIN_WORDS_CHARS = 200
_MAX_MEAN_WORD = 22  # German legal prose has 8, URLs and formulas included 12
_MAX_SINGLE_LETTERS = 0.6
_CASED = re.compile(r"[^\W\d_]+")


def garbage_reason(text: str, unmapped_count: int = 0) -> str:
    """What is wrong with the text of a page, for a person; empty when nothing is. `unmapped_count`: glyphs among it whose character
    the file does not say."""
    visible = [char for char in text if not char.isspace()]
    if len(visible) < _MIN_CHARS and not _CID.search(text):
        return "it is unreadable" if visible and _bad_count(text, unmapped_count) > 0.5 * len(visible) else ""
    if _mojibake_share(text, len(visible)) > _MAX_MOJIBAKE_SHARE or _accented_share(text) > _MAX_ACCENTED_SHARE:
        return WRONG_ENCODING
    if _bad_count(text, unmapped_count) > _MAX_BAD_SHARE * len(visible):
        return "its fonts do not say what their glyphs mean"
    if _is_glued(text):
        return "its words run into each other"
    if _is_spaced_out(text):
        return "its words fall into letters"
    return ""


def with_encoding_repaired(texts: Sequence[str]) -> list[str] | None:
    """The pieces of a page in the encoding that was meant: UTF-8 or Windows-1251 that was read as Western European. None when
    neither makes a text."""
    for meant, taken_for in (("utf-8", "cp1252"), ("utf-8", "latin-1"), ("cp1251", "cp1252"), ("cp1251", "latin-1")):
        try:
            pieces = [text.encode(taken_for).decode(meant) for text in texts]
        except UnicodeError:
            continue
        whole = " ".join(pieces)
        if not garbage_reason(whole) and (meant == "utf-8" or _looks_russian(whole)):
            return pieces
    return None


def _looks_russian(text: str) -> bool:
    letters = [char for char in text.lower() if "а" <= char <= "я"]
    return bool(letters) and sum(1 for char in letters if char in _USUAL_RUSSIAN) > _MIN_USUAL * len(letters)


def is_partly_readable(text: str) -> bool:
    """Whether most of the text is letters and digits of ordinary words, so that it is better than nothing."""
    visible = [char for char in _CID.sub("\ufffd", text) if not char.isspace()]
    good = sum(1 for char in visible if char.isalnum())
    return bool(visible) and good > 0.5 * len(visible) and not _mojibake_share(text, len(visible)) > _MAX_MOJIBAKE_SHARE


def _bad_count(text: str, unmapped_count: int) -> int:
    cids = sum(len(match[0]) for match in _CID.finditer(text))
    bad = sum(1 for char in text if unicodedata.category(char) in ("Co", "Cn", "Cs", "Cc") and char not in "\n\t\r")
    return cids + max(unmapped_count, bad + text.count("\ufffd"))


def _mojibake_share(text: str, length: int) -> float:
    return sum(len(match[0]) for match in _MOJIBAKE.finditer(text)) / length


def _accented_share(text: str) -> float:
    """Of accented Latin letters among letters: nearly all where Cyrillic, Greek or Hebrew was read as Western European."""
    letters = [char for char in text if char.isalpha()]
    return (
        sum(1 for char in letters if "\u00c0" <= char <= "\u00ff") / len(letters) if len(letters) >= _MIN_CHARS else 0.0
    )


def _is_glued(text: str) -> bool:
    """Whether words of a script that separates them are not separated."""
    letters = sum(1 for char in text if char.isalpha() and char < "\u0e00")
    if letters < _MIN_WORDS_CHARS or letters < 0.8 * sum(1 for char in text if char.isalpha()):
        return False
    words = [word for word in text.split() if any(char.isalpha() for char in word)]
    return bool(words) and sum(len(word) for word in words) > _MAX_MEAN_WORD * len(words)


def _is_spaced_out(text: str) -> bool:
    words = [word for word in _CASED.findall(text) if word[0] < "\u0e00"]
    single = sum(1 for word in words if len(word) == 1)
    return len(words) >= _MIN_WORDS_CHARS / 2 and single > _MAX_SINGLE_LETTERS * len(words)
