"""What both lexical engines index and look for: terms made here, so that a chunk and a query meet in each of them alike.

Engines only split at spaces. A chunk is analysed in its own language and a query in those of what it searches; the terms of all
languages lie in one field.
"""

import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType

from services.retriever.analysis.identifiers import joined_neighbours
from services.retriever.analysis.stems import ANALYSERS, FOLDED, VIETNAMESE, Stem, stem_of
from services.retriever.analysis.stop_words import STOP_WORDS
from services.retriever.analysis.words import words_of

_UNDETECTED = "en"
_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")
"""Letters of the Latin script that are not ASCII."""
_SAME = MappingProxyType({"nb": "no", "nn": "no", "iw": "he", "arz": "ar", "ms": "id", "hr": "sr", "bs": "sr"})
MAX_WORDS = 128
MAX_TERMS = 384
"""Of a query. Each is looked for in two fields, and a server takes 1 024 conditions at least."""

_QUOTED = re.compile(r"[\"“”„«]([^\"“”„«»]{3,200})[\"“”„»]")
_MAX_PHRASES = 4


def analyser_of(language: str) -> str:
    """The analyser, one of ANALYSERS, for text of a language (BCP 47). English where the language is not known: that is what
    codes, names and numbers look like."""
    code = language.partition("-")[0].lower()
    code = _SAME.get(code, code)
    if not code:
        return _UNDETECTED
    return code if code in ANALYSERS else FOLDED


def analysers_of(languages: Sequence[str]) -> tuple[str, ...]:
    """In which ways to analyse a query in one of these languages, each once: all when they are not known."""
    return tuple(dict.fromkeys(map(analyser_of, languages))) or ANALYSERS


class Analysis:
    """Analysers of all languages, made when first needed. One thread at a time may use it."""

    def __init__(self) -> None:
        self._stems: dict[str, Stem] = {}

    def terms(self, text: str, language: str) -> list[str]:
        """The terms of a text in one language: those of its words in their order, then other spellings of identifiers."""
        words = words_of(text)
        return list(filter(None, map(self._stem(analyser_of(language)), (*words.in_order, *words.besides))))

    def query_terms(self, text: str, languages: Sequence[str]) -> list[tuple[str, ...]]:
        """What to look for: for each word the terms that it has in the languages, the first language's first, no term twice. Words
        that carry no meaning are left out unless nothing else is there. Bounded by MAX_WORDS and MAX_TERMS."""
        return list(self._bounded(text, analysers_of(languages)))

    def quoted_terms(self, text: str, languages: Sequence[str]) -> list[tuple[str, ...]]:
        """The terms of each of the first quoted phrases that have several words, in each language, each distinct list once."""
        phrases = (
            words for quoted in _QUOTED.findall(text)[:_MAX_PHRASES] if len(words := words_of(quoted).in_order) > 1
        )
        return list(
            dict.fromkeys(
                tuple(filter(None, map(self._stem(analyser), words)))
                for words in phrases
                for analyser in analysers_of(languages)
            )
        )

    def _bounded(self, text: str, analysers: Sequence[str]) -> Iterator[tuple[str, ...]]:
        seen: set[str] = set()
        for word in dict.fromkeys(_without_common_words(text, analysers)[:MAX_WORDS]):
            terms = tuple(term for term in dict.fromkeys(self._variants(word, analysers)) if term and term not in seen)
            seen.update(terms)
            if len(seen) > MAX_TERMS:
                return
            if terms:
                yield terms

    def _variants(self, word: str, analysers: Sequence[str]) -> Iterator[str]:
        """Its term in each language, and that in text of no known language, which may be anywhere: tables, names, codes. Not there
        for a Vietnamese word with accents, which without them is another word: on XQuAD it falls from 0.960 to 0.951."""
        for analyser in analysers:
            yield self._stem(analyser)(word)
        if _UNDETECTED not in analysers and not (VIETNAMESE in analysers and _ACCENTED.search(word)):
            yield self._stem(_UNDETECTED)(word)

    def _stem(self, analyser: str) -> Stem:
        if analyser not in self._stems:
            self._stems[analyser] = stem_of(analyser)
        return self._stems[analyser]


def _without_common_words(text: str, analysers: Sequence[str]) -> list[str]:
    """The words without the stop words of the language in which there are most: what means nothing in one language may be the
    word that counts in another ("die", "war")."""
    words = words_of(text, of_query=True)
    candidates = (_without_stop_words(words.in_order, analyser) for analyser in (*analysers, _UNDETECTED))
    telling = min(candidates, key=len) or words.in_order
    return [*telling, *words.besides, *joined_neighbours(telling)]


def _without_stop_words(words: Sequence[str], analyser: str) -> list[str]:
    stop_words = STOP_WORDS.get(analyser, frozenset())
    return [word for word in words if word.lower() not in stop_words]
