"""From a word to its term: the part that its forms have in common, in one language.

Snowball's stemmers (https://snowballstem.org) where they exist, with what they were found to do wrong to pairs of forms mended
before or after; ADR 16 has the figures. Languages without one are folded: case, accents and vowel points do not count, endings
do.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import Stemmer

from kit.language.phrases import folded
from services.retriever.analysis.words import is_piece

Stem = Callable[[str], str]

FOLDED = ""
"""The analyser of languages without a stemmer."""
HEBREW = "he"
VIETNAMESE = "vi"
_SNOWBALL: Mapping[str, str] = MappingProxyType(
    {
        "ar": "arabic",
        "ca": "catalan",
        "cs": "czech",
        "da": "danish",
        "de": "german",
        "el": "greek",
        "en": "english",
        "es": "spanish",
        "et": "estonian",
        "fa": "persian",
        "fi": "finnish",
        "fr": "french",
        "ga": "irish",
        "hi": "hindi",
        "hu": "hungarian",
        "hy": "armenian",
        "id": "indonesian",
        "it": "italian",
        "lt": "lithuanian",
        "nl": "dutch",
        "no": "norwegian",
        "pl": "polish",
        "pt": "portuguese",
        "ro": "romanian",
        "ru": "russian",
        "sr": "serbian",
        "sv": "swedish",
        "ta": "tamil",
        "tr": "turkish",
        "uk": "russian",
    }
)
"""ISO 639-1 code → algorithm. German's reads ae, oe, ue as umlauts; Ukrainian's endings are Russian ones in other letters."""
ANALYSERS = (*_SNOWBALL, HEBREW, VIETNAMESE, FOLDED)
"""Every way in which a word is analysed, named by the language it is for."""
_CACHED_WORDS = 5_000
"""Of each language: most words of a text are among those that were seen before."""
_MIN_STEM_CHARS = 3
_TURKISH_STEM_CHARS = 5
"""Stems of Snowball end where a suffix was recognised, which differs between the forms of a word; cut to five letters (Can et al.,
JASIST 2008, find that the first five letters alone do as well as a lemmatiser) they meet."""


def stem_of(analyser: str) -> Stem:
    """From a word to its term, in one of ANALYSERS. Remembers words, for its own use only: one thread at a time may call it."""
    algorithm = _SNOWBALL.get(analyser)
    snowball = (Stemmer.Stemmer(algorithm).stemWord,) if algorithm else ()
    steps: Sequence[Stem] = (*_BEFORE.get(analyser, ()), *snowball, *_AFTER.get(analyser, (_without_accents,)))

    @lru_cache(maxsize=_CACHED_WORDS)
    def stem(word: str) -> str:
        if is_piece(word):
            return word
        for step in steps:
            word = step(word)
        return word

    return stem


def _without_accents(word: str) -> str:
    return folded(word).translate(_LETTERS)


_LETTERS = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ł": "l", "þ": "th"})
"""Letters that Unicode does not take apart, and people type so."""


def _french_singular(word: str) -> str:
    """Snowball takes "dégât" and "crédit" for forms of verbs, and "dégâts" and "crédits" for what they are."""
    word = word.translate(_CIRCUMFLEXES)
    if len(word) > _MIN_STEM_CHARS and (_FRENCH_PLURAL.search(word) or word in _FRENCH_PLURALS_IN_EUX):
        return word[:-1]
    return word


_CIRCUMFLEXES = str.maketrans("âêîôû", "aeiou")
_FRENCH_PLURAL = re.compile("(?:[^s]s|eaux|oux)$")
_FRENCH_PLURALS_IN_EUX = frozenset(
    ["adieux", "aveux", "cheveux", "enjeux", "feux", "jeux", "lieux", "milieux", "neveux", "pieux", "voeux", "vœux"]
)
"""Their singular ends in -eu; that of adjectives in -eux."""


def _spanish_singular(word: str) -> str:
    """Snowball takes the end of "ciudad" for that of a verb, and "-ernos" of "gobiernos" too."""
    if len(word) <= _MIN_STEM_CHARS or not word.endswith("s"):
        return word
    if word.endswith("ces"):
        return f"{word[:-3]}z"
    if _SPANISH_PLURAL_AFTER_CONSONANT.search(word):
        return word[:-2]
    return word[:-1] if word[-2] in "aeoáéiíóú" else word


_SPANISH_PLURAL_AFTER_CONSONANT = re.compile("..[dljnrsy]es$")


def _italian_singular(word: str) -> str:
    """One ending for both genders and numbers of nouns and adjectives: Snowball takes "-erti" and "-ano" for those of verbs."""
    if len(word) < 5 or _ITALIAN_VERB.search(word) or word[-1] not in "aei":
        return word
    if word.endswith("ri") and not word.endswith("tri"):
        return f"{word[:-1]}e"
    return f"{word.removesuffix(word[-2:]) if word[-2] == 'h' else word[:-1]}o"


_ITALIAN_VERB = re.compile("(?:[aei]re|[aiu]t[ao])$")


def _arabic_word(word: str) -> str:
    """Without "and" and "so" in front of the article, which Snowball leaves and light10 strips (Larkey et al. 2002), and without a
    particle of one letter in front of a word that is long enough to do without its first letter."""
    word = _ARABIC_CONJUNCTION.sub("", word)
    if word.startswith(_ARABIC_ARTICLES):
        return word
    if len(word) > 4 and word[0] in "وف":
        word = word[1:]
    return word[1:] if len(word) > 5 and word[0] in "بلك" else word


_ARABIC_CONJUNCTION = re.compile(r"^[وف](?=ال\w{3})")
_ARABIC_ARTICLES = ("ال", "بال", "كال", "لل")


def _turkish_lower(word: str) -> str:
    return word.replace("I", "ı").replace("İ", "i").lower()


def _turkish_end(word: str) -> str:
    return _without_accents(word).replace("ı", "i")[:_TURKISH_STEM_CHARS]


def _ukrainian_letters(word: str) -> str:
    return word.translate(_UKRAINIAN)


_UKRAINIAN = str.maketrans("іїєґ", "ииег")


def _hebrew_stem(word: str) -> str:
    """A light stem in the manner of light10: the plural, all one-letter particles (and, the, in, to, from, that, as), and a
    feminine or construct ending off, as long as three letters stay. It also takes a first letter of the word itself that
    looks like a particle: always the same way, so that the forms of a word still meet."""
    if not _HEBREW_WORD.fullmatch(word):
        return word
    stem = _without_ending(word.translate(_HEBREW_FINALS), _HEBREW_PLURALS)
    while len(stem) > _MIN_STEM_CHARS and stem[0] in _HEBREW_PARTICLES:
        stem = stem[1:]
    return _without_ending(stem, _HEBREW_ENDINGS)


def _without_ending(word: str, endings: Sequence[str]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_CHARS:
            return word.removesuffix(ending)
    return word


_HEBREW_WORD = re.compile("[\u05d0-\u05ea]{2,}")
_HEBREW_FINALS = str.maketrans("ךםןףץ", "כמנפצ")
_HEBREW_PARTICLES = "משהוכלב"
_HEBREW_PLURALS = ("ימ", "ות")
_HEBREW_ENDINGS = ("ה", "ת", "י")

_BEFORE: Mapping[str, Sequence[Stem]] = MappingProxyType(
    {
        **dict.fromkeys(_SNOWBALL, (str.lower,)),
        "ar": (str.lower, _arabic_word),
        "en": (_without_accents,),  # its stemmer knows no accents; the others know those of theirs
        "es": (str.lower, _spanish_singular),
        "fr": (str.lower, _french_singular),
        "it": (str.lower, _italian_singular),
        "tr": (_turkish_lower,),
        "uk": (str.lower, _ukrainian_letters),
    }
)
_AFTER: Mapping[str, Sequence[Stem]] = MappingProxyType(
    {
        "en": (),
        "tr": (_turkish_end,),
        HEBREW: (_without_accents, _hebrew_stem),
        VIETNAMESE: (
            str.lower,
        ),  # whose accents are half of a word: without them nDCG@10 on XQuAD falls from 0.960 to 0.939
    }
)
