"""Lines of a script that text recognition does not know, which it took for letters of one that it does: Hebrew for `AGLU LAIL`,
Greek for Greek without half of its letters. Such lines count as unread.

Measured on 803 pictures: what is written in Latin, Chinese or Japanese is read with a mean score of 0.94 and more, or 0.8 and few
odd words where it is blurred and noisy; Hebrew, Arabic, Armenian, Hindi and Thai with 0.5 to 0.85."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from services.ingest.reading.recognition import RecognizedLine, RecognizedPicture, mean_score

_MIN_SCORE = 0.8
"""Of the lines of a picture, whatever their words are like."""
_DOUBTFUL = ((0.85, 0.1), (0.93, 0.2))
"""Mean scores below which a picture may have odd words up to this share."""
_MAX_LINE_SCORE, _ODD_LINE_SHARE = 0.9, 0.4
"""Of a line with odd words in a picture that is read well otherwise."""
_POORLY_READ_SHARE = 0.08
"""Of odd words: PDFs that were typed have 0.03 and less, but for pages of formulas; a poorly recognised one has 0.11."""
_GREEK_SHARE = 1 / 3
_MIN_WORD = 3
_WORD = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGIT_WITHIN = re.compile(r"[a-z]\d+[a-z]|^\d[a-z]{3,}|\d[a-z]{2,}\d", re.IGNORECASE)
_CODE_DIGITS, _CODE_DIGIT_SHARE = 2, 0.4
"""Of what is no word but the number of a part ("M8x20", "E7F8G"). Misread letters have a digit here and there ("LI4LO")."""
_WRITTEN_SO = frozenset(("gmbh", "mbh", "phd", "khz", "mhz", "ghz", "kwh", "mwh"))
_CAPITAL_WITHIN = re.compile(r"[a-z][A-Z]")
_VOWEL = re.compile(r"[aeiouyøæœı]")
_ODD_RUN = re.compile(r"[aeiouy]{4}|^[aeiou]{3,}$|(.)\1\1|[^aeiouy]{5}|^uu|[uia]uu|iu[iaou]")


def with_misread_lines_unread(picture: RecognizedPicture, scripts: str) -> RecognizedPicture:
    """The picture without the lines that were taken for letters that they are not. `scripts`: what the recogniser reads."""
    kept = (
        ()
        if _is_misread(picture.lines)
        else tuple(line for line in picture.lines if not _is_misread_line(line, scripts))
    )
    return replace(picture, lines=kept, unread_count=picture.unread_count + len(picture.lines) - len(kept))


def has_misread_words(text: str) -> bool:
    """Whether a text that is known to be recognised is so poorly: it has many words that no language writes."""
    return _odd_share(text) >= _POORLY_READ_SHARE


def _is_misread(lines: Sequence[RecognizedLine]) -> bool:
    score, odd = mean_score(lines), _odd_share(" ".join(line.text for line in lines))
    return score < _MIN_SCORE or any(score < limit and odd >= share for limit, share in _DOUBTFUL)


def _is_misread_line(line: RecognizedLine, scripts: str) -> bool:
    if "Greek" not in scripts and _greek_share(line.text) >= _GREEK_SHARE:
        return True
    return line.score < _MAX_LINE_SCORE and _odd_share(line.text) >= _ODD_LINE_SHARE


def _odd_share(text: str) -> float:
    """Of odd words among those in Latin letters; 0 where most of the text is in others."""
    letters = [char for char in text if char.isalpha()]
    if 2 * sum(map(_is_latin, letters)) < len(letters):
        return 0.0
    words = [word for word in _WORD.findall(text) if len(word) >= _MIN_WORD and all(map(_is_latin, word))]
    words = [word for word in words if not word.isdigit()]
    return sum(map(_is_odd, words)) / len(words) if words else 0.0


def _is_odd(word: str) -> bool:
    """Whether no language writes a word so: digits or capitals within it, no vowel, or too many vowels or consonants together."""
    plain = "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char))
    digits = sum(map(str.isdigit, plain))
    if digits >= _CODE_DIGITS and digits >= _CODE_DIGIT_SHARE * len(plain):
        return False
    if digits:
        return bool(_DIGIT_WITHIN.search(plain))
    lower = plain.lower()
    if lower in _WRITTEN_SO:
        return False
    return bool(_CAPITAL_WITHIN.search(plain) or not _VOWEL.search(lower) or _ODD_RUN.search(lower))


def _greek_share(text: str) -> float:
    """Of Greek words among the words. A letter in a formula is no word: `Σx`, `2πf`, `NFκB`."""
    words = [word for word in _LETTERS.findall(text) if len(word) >= _MIN_WORD and word[0] < "\u2000"]
    return sum(map(_is_greek, words)) / len(words) if words else 0.0


def _is_greek(word: str) -> bool:
    greek = sum(1 for char in word if "\u0370" <= char < "\u0400")
    return greek > 1 or (greek == 1 and word.isupper() and len(word) > _MIN_WORD)


def _is_latin(char: str) -> bool:
    return char < "\u0250" or "\u1e00" <= char < "\u1f00"
