"""Text as the guard compares it: without what cannot be seen, in one form of each letter, and without the disguises that lookalikes
of other scripts and digits for letters are (Unicode Technical Standard 39)."""

import re
import unicodedata
from functools import cache
from string import ascii_lowercase, digits

import icu

HIDDEN = frozenset(
    [
        *range(0x200B, 0x2010),  # zero width, and marks of direction
        *range(0x202A, 0x202F),  # embeddings and overrides of direction
        *range(0x2060, 0x2070),  # word joiner, isolates of direction, invisible operators
        *range(0xFE00, 0xFE10),  # variation selectors
        *range(0xE0000, 0xE0200),  # tags, which spell whole sentences unseen, and more variation selectors
        0xAD,
        0x34F,
        0x61C,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        0x180E,
        0x3164,
        0xFEFF,
        0xFFA0,
    ]
)
"""Characters that are not seen and change no word (Default_Ignorable_Code_Point, without what scripts need between letters)."""
BIDI_OVERRIDES = frozenset("\u202d\u202e")
"""Characters that show text in another order than it is read in."""
TAGS = range(0xE0020, 0xE007F)
"""Invisible twins of ASCII."""
_PLAIN = {"ı": "i", "ł": "l", "đ": "d", "ø": "o", "ð": "d", "ħ": "h"}
"""Letters that Unicode takes for letters of their own, and people write without their stroke or with a dot."""
_LEET = str.maketrans({"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t", "@": "a", "$": "s", "!": "i"})
"""Digits and signs that stand for letters."""


class _Folded(dict[int, str]):
    """A table of `str.translate` that fills itself."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = fold_character(chr(code))
        return folded


def fold_character(character: str) -> str:
    """The character as it is compared: nothing for what is hidden, and the letter that a tag stands for."""
    code = ord(character)
    if code in TAGS:
        return chr(code - 0xE0000).lower()
    if code in HIDDEN or unicodedata.category(character) == "Cf":
        return ""
    plain = unicodedata.normalize("NFKC", character).casefold()
    if not plain.isascii():
        plain = "".join(each for each in unicodedata.normalize("NFKD", plain) if not _is_accent(each))
    return "".join(_PLAIN.get(each, each) for each in unicodedata.normalize("NFC", plain))


def _is_accent(character: str) -> bool:
    code = ord(character)
    return unicodedata.category(character) == "Mn" and (
        0x300 <= code < 0x370 or 0x591 <= code < 0x5C8 or 0x610 <= code < 0x61B or 0x64B <= code < 0x660
    )


_TABLE = _Folded()


def fold(text: str) -> str:
    """The text in lower case, NFKC, without marks of accents and without hidden characters."""
    return text.lower() if text.isascii() else text.translate(_TABLE)


def fold_with_places(text: str) -> tuple[str, list[int]]:
    """The folded text, and for each of its characters where it stands in `text`."""
    if text.isascii():
        return text.lower(), list(range(len(text)))
    folded, places = [], []
    for place, character in enumerate(text):
        plain = _TABLE[ord(character)]
        folded.append(plain)
        places += [place] * len(plain)
    return "".join(folded), places


@cache
def _checker() -> icu.SpoofChecker:
    return icu.SpoofChecker()


@cache
def _letters() -> dict[str, str]:
    """The ASCII letter or digit for each skeleton of one."""
    skeletons = {_checker().getSkeleton(0, letter): letter for letter in digits + ascii_lowercase}
    return skeletons | {letter: letter for letter in ascii_lowercase}


class _Lookalikes(dict[int, str]):
    """The ASCII letter that each character looks like; the character itself where it looks like none."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        letters = _letters()
        for each in (character, character.upper(), character.lower()):
            if (letter := letters.get(_checker().getSkeleton(0, each).lower())) is not None:
                break
        else:
            letter = character
        self[code] = letter
        return letter


_LOOKALIKES = _Lookalikes()


def undisguised(word: str) -> str:
    """The folded word in ASCII letters where it looks like such a word; else the word as it is."""
    plain = word
    if not plain.isascii():
        plain = plain.translate(_LOOKALIKES)
        if not plain.isascii():
            return word
    if not plain.isalpha() and any(map(str.isalpha, plain)):
        plain = plain.translate(_LEET)
    return plain


def hidden_in(text: str) -> list[tuple[int, int]]:
    """Spans of text that nobody sees and that a model reads: three tags or more, or text whose order is turned round."""
    if text.isascii():
        return []
    if _UNSEEN.search(text) is None:
        return []
    spans: list[tuple[int, int]] = []
    for place, character in enumerate(text):
        if ord(character) in TAGS or character in BIDI_OVERRIDES:
            if spans and spans[-1][1] == place:
                spans[-1] = (spans[-1][0], place + 1)
            else:
                spans.append((place, place + 1))
    return [span for span in spans if span[1] - span[0] > _FLAG or text[span[0]] in BIDI_OVERRIDES]


_UNSEEN = re.compile("[\u202d\u202e\U000e0020-\U000e007e]")
_FLAG = 7
"""Tags in a row that an emoji of a flag has at most."""
