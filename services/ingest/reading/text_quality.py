"""Whether a page's text layer can be believed. Broken fonts make pages that look right and read as rubbish; such a page is read
from its picture instead."""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

_CID = re.compile(r"\(cid:\d+\)")
# UTF-8 read as Latin-1 or Windows-1252: "Ã©", "â€™", "Ð¿Ñ€".
_CONTINUATION = "[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œ]"
_MOJIBAKE = re.compile(f"[ÂÃÐÑ]{_CONTINUATION}|â€{_CONTINUATION}")
WRONG_ENCODING = "its characters are in the wrong encoding"
_USUAL = {"cp1251": "оеаинтсрвл", "cp1255": "יוהלארתמבש", "cp1256": "اليىیمنورتهد"}
"""The usual letters of the alphabet that each encoding is for."""
_MIN_USUAL = 0.45  # they make up more than 0.6 of prose in these alphabets, and a third of letters at random
_MIN_LETTERS = 100
_MIN_MIXED_WORDS, _MAX_MIXED_SHARE = 2, 0.2
_MIN_WORDLIKE_SHARE = 0.4
_REPEATED = re.compile(r"(.)\1{3,}")
_RIGHT_TO_LEFT_WORD = re.compile("[\u0590-\u06ff]{3,}")
_HEBREW_FINALS, _ARABIC_ARTICLE = frozenset("ךםןףץ"), "ال"
_DIGITS = re.compile(r"\d[\d.,:/-]*\d")
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
    return _wordless_reason(text)


def _wordless_reason(text: str) -> str:
    if _mixed_word_share(text) > _MAX_MIXED_SHARE or not _has_usual_arabic_letters(text):
        return "its letters make no words"
    if _is_mostly_signs(text):
        return "it is mostly signs"
    if _is_glued(text):
        return "its words run into each other"
    return "its words fall into letters" if _is_spaced_out(text) else ""


def with_encoding_repaired(texts: Sequence[str]) -> list[str] | None:
    """The pieces of a page in the right encoding: UTF-8 or the Windows encoding of Russian, Hebrew or Arabic that was
    read as Western European. None when none of them makes a text."""
    found: list[tuple[float, list[str]]] = []
    for encoding, taken_for in itertools.product(("utf-8", *_USUAL), ("cp1252", "latin-1")):
        try:
            pieces = [text.encode(taken_for).decode(encoding) for text in texts]
        except UnicodeError:
            continue
        whole = " ".join(pieces)
        likeness = 1.0 if encoding == "utf-8" else _usual_share(encoding, filter(str.isalpha, whole.lower()))
        if likeness > _MIN_USUAL and not garbage_reason(whole):
            found.append((likeness, [_turned_round(piece) for piece in pieces] if _is_turned_round(whole) else pieces))
    return max(found, key=lambda each: each[0])[1] if found else None


def _usual_share(encoding: str, letters: Iterable[str]) -> float:
    """Of the usual letters of an encoding's alphabet among these; 0 without any."""
    counts = Counter(letters)
    return sum(counts[char] for char in _USUAL[encoding]) / max(counts.total(), 1)


def _has_usual_arabic_letters(text: str) -> bool:
    """False where enough Arabic letters are not as frequent as in prose: a font whose letters are not those that it names."""
    letters = [char for char in unicodedata.normalize("NFKC", text) if "\u0620" <= char <= "\u06d3" and char.isalpha()]
    return len(letters) < _MIN_LETTERS or _usual_share("cp1256", letters) > _MIN_USUAL


def _is_turned_round(text: str) -> bool:
    """Whether right-to-left words stand in the order in which they are painted: with the letters that end Hebrew words, or those of
    the Arabic article, at the other end."""
    words = _RIGHT_TO_LEFT_WORD.findall(text)
    as_read = sum(1 for word in words if word[-1] in _HEBREW_FINALS or word.startswith(_ARABIC_ARTICLE))
    as_painted = sum(1 for word in words if word[0] in _HEBREW_FINALS or word.endswith(_ARABIC_ARTICLE[::-1]))
    return as_painted > as_read


def _turned_round(text: str) -> str:
    return _DIGITS.sub(lambda found: found[0][::-1], text[::-1])


def _mixed_word_share(text: str) -> float:
    """Of words with Latin letters as well among those with Hebrew or Arabic ones. 0 where there are only a few."""
    words = [word for word in text.split() if any("\u0590" <= char <= "\u06ff" for char in word)]
    mixed = sum(1 for word in words if any(char < "\u0250" and char.isalpha() for char in word))
    return mixed / len(words) if mixed >= _MIN_MIXED_WORDS else 0.0


def _is_mark(char: str) -> bool:
    """Whether it belongs to the letter before it: a vowel sign, an accent."""
    return not char.isascii() and unicodedata.category(char) in ("Mn", "Mc")


def _is_mostly_signs(text: str) -> bool:
    visible = "".join(_REPEATED.sub(r"\1", text).split())  # without the dots of a table of contents
    wordlike = sum(1 for char in visible if char.isalnum() or _is_mark(char))
    return len(visible) >= _MIN_LETTERS and wordlike < _MIN_WORDLIKE_SHARE * len(visible)


def is_partly_readable(text: str) -> bool:
    """Whether most of the text is letters and digits of ordinary words, so that it is better than nothing."""
    visible = [char for char in _CID.sub("\ufffd", text) if not char.isspace()]
    good = sum(1 for char in visible if char.isalnum() or _is_mark(char))
    return (
        bool(visible)
        and good > 0.5 * len(visible)
        and _mojibake_share(text, len(visible)) <= _MAX_MOJIBAKE_SHARE
        and _mixed_word_share(text) <= _MAX_MIXED_SHARE
    )


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
    without_marks = "".join(char for char in text if not _is_mark(char))  # they stand within the words of Indic scripts
    words = [word for word in _CASED.findall(without_marks) if word[0] < "\u0e00"]
    single = sum(1 for word in words if len(word) == 1)
    return len(words) >= _MIN_WORDS_CHARS / 2 and single > _MAX_SINGLE_LETTERS * len(words)
