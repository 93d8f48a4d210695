"""Words as the lexical cues see them: stems, stop words, names and numbers.

A light suffix stemmer instead of Porter: it only has to make inflections of one word meet ("refunds", "refunded"), and
questions and passages go through the same function, so a wrong stem costs nothing as long as it is the same on both sides.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kit.language.data import all_words
from kit.language.phrases import SIGNED_LETTER
from kit.language.segmentation import SEGMENTED, segments


def words(text: str) -> frozenset[str]:
    """The words of a list that is written as text: long lists stay readable."""
    return frozenset(text.split())


STOPWORDS = all_words("stop_words")
"""Of all languages: the language of a text is not asked for."""

MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    r"\u0900-\u0963\u0966-\u0dff\u0f71-\u0f84\u200c\u200d"
)
"""Vowel signs, accents and joiners within words, which are no letters to `re`: without them "किताब" would be three words of a
letter each, which every text has. Those of scripts that are segmented belong to their words."""
_LETTERS = rf"[^\W_{SEGMENTED}]*(?:[{MARKS}]+[^\W_{SEGMENTED}]*)*"
_ADDRESS = r"\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)"
"""Of a machine; the number of a port behind it is a word of its own."""
_VERSION = r"[vV](?=\d+(?:\.\d+)+)"
"""What may stand before a version: "v3.0.0" is "3.0.0"."""
_WORD = re.compile(
    rf"{SIGNED_LETTER}|[{SEGMENTED}]+|{_ADDRESS}|(?:{_VERSION})?\d+(?:[.,:/]\d+)*"
    rf"|[^\W\d_]{_LETTERS}(?:['’][^\W\d_]+)?"
)
_ELISION = re.compile(
    r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|dell|nell|dall|sull|all|un)['’](?=[^\W\d_]{2})", re.IGNORECASE
)
"""An article or a small word that French, Italian and Catalan join to the word behind it: "l'entrée", "d'AbbVie"."""
_BEFORE = re.compile(f"{_ELISION.pattern}|{_VERSION}", re.IGNORECASE)
"""What belongs to no word, and stands before one."""
_RUN = re.compile(r"[0-9A-Za-z_]+|[^0-9A-Za-z_]+")
_SEGMENTED = re.compile(f"[{SEGMENTED}]")
_IDEOGRAPH = re.compile(r"[぀-ヿ㐀-鿿豈-﫿가-힯]")
# (suffix, replacement, shortest stem that may remain), first match wins. ~ Porter's steps 1 and a few of 2 to 4.
_SUFFIXES = (
    ("ization", "iz", 3), ("isation", "iz", 3), ("ational", "at", 3), ("ations", "at", 3), ("ation", "at", 3),
    ("ically", "ic", 3), ("iness", "i", 3), ("ments", "", 4), ("ment", "", 4), ("ness", "", 4), ("ities", "", 4),
    ("ity", "", 4), ("ives", "", 4), ("ive", "", 4), ("ions", "", 4), ("ion", "", 4), ("ings", "", 3), ("ing", "", 3),
    ("ized", "iz", 3), ("ised", "iz", 3), ("izes", "iz", 3), ("ises", "iz", 3), ("ated", "at", 3), ("ates", "at", 3),
    ("ally", "al", 3), ("ly", "", 4), ("ies", "i", 2), ("ied", "i", 2), ("ers", "", 4), ("ors", "", 4), ("er", "", 4),
    ("or", "", 4), ("sses", "ss", 2), ("ed", "", 3), ("es", "", 3), ("s", "", 3), ("ate", "at", 3), ("e", "", 3),
    ("y", "i", 2),
)  # fmt: skip
_SAME_WORD = (
    # Irregular forms, and a few pairs that questions and documents use for each other; the first stands for all.
    "begin began begun start starts started starting", "birth born", "buy bought purchase purchased", "build built", "come came",
    "child children", "death die died dies dying", "fight fought", "find found", "give gave given", "hold held", "keep kept",
    "know knew", "lead led", "leave left", "lose lost", "make made", "man men", "meet met", "pay paid", "run ran", "say said",
    "see saw seen", "send sent", "sell sold", "speak spoke spoken", "take took taken", "teach taught", "think thought",
    "tell told", "go went", "woman women", "win won", "write wrote written", "grow grew", "fall fell", "choose chose chosen",
    "become became", "rise rose", "wear wore", "drive drove", "big large bigger larger",
    "biggest largest", "company companies firm firms",
    # What a thing costs is asked with a verb and stands under a noun, in other languages too (written as they are folded).
    ("cost costs price prices priced fee fees kosten kostet kostete preis preise gebuhr gebuhren couter coute coutent coutait prix "
    "costar cuesta cuestan costaba precio precios prezzo prezzi custa custam custava preco precos стоит стоят стоил стоила "
    "стоимость цена цены"),
    # Short names of days and months, as tables have them, but for those that are words of their own ("sat", "sun", "mar", "may").
    "monday mon", "tuesday tue tues", "wednesday wed", "thursday thu thur thurs", "friday fri", "january jan", "february feb",
    "april apr", "june jun", "july jul", "august aug", "september sep sept", "october oct", "november nov", "december dec",
)  # fmt: skip
_IRREGULAR = {form: family.split()[0] for family in _SAME_WORD for form in family.split()}
_OF_VERBS = words("ed ing ings es")


@dataclass(frozen=True)
class Token:
    """One word of a text."""

    surface: str
    stem: str
    start: int
    end: int
    is_name: bool
    """Capitalised although no sentence starts there, or written in capitals: a name, most likely."""

    @property
    def is_number(self) -> bool:
        """Whether it is written in digits."""
        return self.surface[0].isdigit()

    @property
    def is_exact(self) -> bool:
        """Whether nothing else can stand for it: a name, a number, an identifier such as "E104"."""
        return self.is_name or any(char.isdigit() for char in self.surface)

    @property
    def is_stopword(self) -> bool:
        """Whether it carries no content. A name never is one ("The Who", "IT")."""
        return self.surface.lower() in STOPWORDS and not (
            self.is_name and self.surface.isupper() and len(self.surface) > 1
        )


def tokens(text: str) -> list[Token]:
    """Words of `text` in order. Scripts without spaces give the words of a dictionary, or overlapping pairs of characters."""
    found: list[Token] = []
    for match in _WORD.finditer(text):
        surface, start = match.group(), match.start()
        if _SEGMENTED.match(surface):
            found.extend(_segmented(surface, start))
            continue
        if elided := _BEFORE.match(surface):
            surface, start = surface[elided.end() :], start + elided.end()
        if _IDEOGRAPH.search(surface):
            # "R380の売上": an identifier within a run without spaces is a word of its own.
            for part in _RUN.finditer(surface):
                place = start + part.start()
                if _IDEOGRAPH.search(part[0]):
                    found.extend(_pairs(part[0], place))
                else:
                    found.append(Token(part[0], stem(part[0]), place, place + len(part[0]), is_name=True))
            continue
        is_name = surface[0].isupper() and (not _starts_sentence(text, start) or surface[1:2].isupper())
        found.append(Token(surface, stem(surface), start, match.end(), is_name))
    return found


def _segmented(run: str, start: int) -> Iterator[Token]:
    for word in segments(run):
        yield Token(word, word, start, start + len(word), is_name=False)
        start += len(word)


def _pairs(run: str, start: int) -> list[Token]:
    if len(run) == 1:
        return [Token(run, run, start, start + 1, is_name=False)]
    return [Token(run[i : i + 2], run[i : i + 2], start + i, start + i + 2, is_name=False) for i in range(len(run) - 1)]


def _starts_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \t\n\"'“‘«*#-¿¡")
    if before.endswith(("(", "[")):
        return not before.rstrip("([ ")  # "Are dogs allowed? (Borealis)": what is in brackets is no sentence
    return not before or before[-1] in ".!?:。！？؟"


def irregular_forms(stem_: str) -> frozenset[str]:
    """The words, folded, that have a stem which they need not begin with: "purchase" has that of "buy". Empty for most stems."""
    return _IRREGULAR_FORMS.get(stem_, frozenset())


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Stem of one word: lower case, no accents, no possessive, no common English ending."""
    lowered = _fold(word)
    lowered = re.sub(r"['’]s?$", "", lowered).replace("’", "'")
    lowered = _IRREGULAR.get(lowered, lowered)
    if lowered[:1].isdigit():
        return lowered.replace(",", "")
    if len(lowered) <= 3 or not lowered.isascii():
        return lowered
    for suffix, replacement, shortest in _SUFFIXES:
        if lowered.endswith(suffix) and len(lowered) - len(suffix) >= shortest:
            if suffix == "s" and lowered[-2] in "us":
                continue
            if suffix == "y" and lowered[-2] in "aeou":  # "play" and "played"
                continue
            base = lowered[: len(lowered) - len(suffix)] + replacement
            if suffix in _OF_VERBS and base.endswith(("er", "or")) and len(base) >= 6:  # "discover" and "discovered"
                base = base[:-2]
            return base[:-1] if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "sl" else base
    return lowered


def _fold(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char)) or word.casefold()


_IRREGULAR_FORMS = {stem(family.split()[0]): words(family) for family in _SAME_WORD}
