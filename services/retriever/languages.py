"""How the words of a language become search terms, for both lexical engines: which stemmer reads it, and what has to be done to
a text before, because no engine does it without plugins.

A chunk is analysed in its own language and a query in every language of what it searches, so both must go through `prepared`.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from kit.language.phrases import folded

STEMMERS: Mapping[str, str] = MappingProxyType(
    {
        "ar": "arabic",
        "da": "danish",
        "de": "german",
        "el": "greek",
        "en": "english",
        "es": "spanish",
        "fi": "finnish",
        "fr": "french",
        "hu": "hungarian",
        "it": "italian",
        "nl": "dutch",
        "no": "norwegian",
        "pt": "portuguese",
        "ro": "romanian",
        "ru": "russian",
        "sv": "swedish",
        "ta": "tamil",
        "tr": "turkish",
    }
)
"""ISO 639-1 code → Snowball algorithm (https://snowballstem.org). German's reads ae, oe, ue as umlauts."""
HEBREW = "he"
FOLDED = ""
"""The analyser of languages without a stemmer: case, accents and vowel points do not count, endings do."""
ANALYSERS = (*STEMMERS, HEBREW, FOLDED)
"""Every way in which a text is analysed, named by the language it is for."""
ENGLISH_STOP_WORDS = (
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my no not "
    "of on or our shall should so such than that the their them then there these they this those to was we were what when "
    "where which who whom whose why will with would you your"
)
"""Function words and question words, of which the engines' own lists have the former only. Kept in the index, so that phrases that
hold them are found."""
_UNDETECTED = "en"
_SAME = MappingProxyType({"nb": "no", "nn": "no", "iw": "he", "arz": "ar"})

_POINTS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u200b-\u200f]"
)
_VARIANTS = MappingProxyType(
    {"آ": "ا", "أ": "ا", "إ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ک": "ك", "ё": "е", "Ё": "Е", "İ": "i", "’": "'"}
)
_VARIANT = re.compile(f"[{''.join(_VARIANTS)}]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]+")
_ARABIC_CONJUNCTION = re.compile(r"\b[وف](?=ال\w{3})")
_HEBREW_WORD = re.compile("[\u05d0-\u05ea]{2,}")
_HEBREW_FINALS = str.maketrans("ךםןףץ", "כמנפצ")
_HEBREW_PARTICLES = "משהוכלב"
_HEBREW_PLURALS = ("ימ", "ות")
_HEBREW_ENDINGS = ("ה", "ת", "י")
_MIN_STEM_CHARS = 3


def analyser_of(language: str) -> str:
    """The analyser, one of ANALYSERS, for text of a language (BCP 47). English where the language is not known: that is what
    codes, names and numbers look like."""
    code = language.partition("-")[0].lower()
    code = _SAME.get(code, code)
    if not code:
        return _UNDETECTED
    return code if code in ANALYSERS else FOLDED


def analysers_of(languages: Sequence[str]) -> tuple[str, ...]:
    """In which ways to analyse a query that searches these languages, each once: all when they are not known. What was not
    detected may always be there."""
    if not languages:
        return ANALYSERS
    return tuple(dict.fromkeys(map(analyser_of, (*languages, ""))))


def prepared(text: str, analyser: str) -> str:
    """The text as the analyser is to see it: written in one of several possible ways; pairs of neighbouring characters for
    words where a script has no spaces, as in Lucene's CJKAnalyzer; Hebrew words without particles and endings."""
    if text.isascii():
        return text
    text = _POINTS.sub("", unicodedata.normalize("NFKC", text))
    text = _VARIANT.sub(lambda found: _VARIANTS[found[0]], text)
    text = _UNSPACED.sub(_pairs, text)
    language_rule = _RULES.get(analyser)
    return language_rule(text) if language_rule else text


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    if len(characters) == 1:
        return f" {characters} "
    return f" {' '.join(characters[i : i + 2] for i in range(len(characters) - 1))} "


def _without_arabic_conjunction(text: str) -> str:
    """Snowball's stemmer leaves "and" and "so" in front of the article, which light10 strips (Larkey et al. 2002)."""
    return _ARABIC_CONJUNCTION.sub("", text)


def _hebrew(text: str) -> str:
    return _HEBREW_WORD.sub(lambda word: _hebrew_stem(word[0]), text)


def _hebrew_stem(word: str) -> str:
    """A light stem in the manner of light10: the plural, all one-letter particles (and, the, in, to, from, that, as), and a
    feminine or construct ending off, as long as three letters stay. It also takes a first letter of the word itself that
    looks like a particle: always the same way, so that the forms of a word still meet."""
    stem = _without_ending(word.translate(_HEBREW_FINALS), _HEBREW_PLURALS)
    while len(stem) > _MIN_STEM_CHARS and stem[0] in _HEBREW_PARTICLES:
        stem = stem[1:]
    return _without_ending(stem, _HEBREW_ENDINGS)


def _without_ending(word: str, endings: Sequence[str]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_CHARS:
            return word.removesuffix(ending)
    return word


_RULES: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"ar": _without_arabic_conjunction, HEBREW: _hebrew, FOLDED: folded}
)
