"""Text to terms, in each language, before tantivy sees it.

A field of tantivy has one analyser, and each field costs a dictionary at each commit; so the terms of all languages go into one
field that is only split at spaces.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import tantivy

from services.retriever.languages import ENGLISH_STOP_WORDS, FOLDED, STEMMERS, analyser_of, analysers_of, prepared

_MAX_TERM_CHARS = 64
"""What is longer is noise: base64, addresses."""
_WITH_MARKS = r"[\p{L}\p{M}\p{N}]+"
"""Words of the scripts of India, whose vowel signs tantivy's own tokenizer takes for punctuation."""
_STOP_WORDS: dict[str, Callable[[], Any]] = {
    "en": lambda: tantivy.Filter.custom_stopword(ENGLISH_STOP_WORDS.split()),
    **{
        code: partial(tantivy.Filter.stopword, STEMMERS[code])
        for code in ("da", "de", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ru", "sv")
    },
}
"""Makes the filter for the languages that have one."""


class Analysis:
    """Analysers of all languages, made when first needed. One thread at a time may use it."""

    def __init__(self) -> None:
        self._analysers: dict[str, Any] = {}
        self._stoppers: dict[str, Any] = {}

    def terms(self, text: str, language: str) -> list[str]:
        """The terms of a text in one language, in order."""
        return self._terms(text, analyser_of(language))

    def query_terms(self, text: str, languages: Sequence[str]) -> list[tuple[str, ...]]:
        """What to look for, each once: for each word the terms that it has in the languages, the first language's first. Words
        that carry no meaning are left out unless nothing else is there."""
        analysers = analysers_of(languages)
        words = self._telling(text, analysers).split()
        return list(dict.fromkeys(terms for word in words for terms in self._variants(word, analysers)))

    def _variants(self, word: str, analysers: Iterable[str]) -> Iterable[tuple[str, ...]]:
        """The terms of a word side by side; one after the other where languages divide it differently."""
        ways = list(dict.fromkeys(tuple(self._terms(word, each)) for each in analysers))
        if len({len(way) for way in ways}) == 1:
            return (tuple(dict.fromkeys(terms)) for terms in zip(*ways, strict=True))
        return ((term,) for way in ways for term in way)

    def phrases(self, text: str, languages: Sequence[str]) -> list[list[str]]:
        """The terms of a phrase in each language, each distinct list once."""
        return [
            list(terms) for terms in dict.fromkeys(tuple(self._terms(text, each)) for each in analysers_of(languages))
        ]

    def _terms(self, text: str, analyser: str) -> list[str]:
        if analyser not in self._analysers:
            self._analysers[analyser] = _analyser(analyser)
        terms: list[str] = self._analysers[analyser].analyze(prepared(text, analyser))
        return terms

    def _telling(self, text: str, analysers: Iterable[str]) -> str:
        """The text without the stop words of the language in which it has most: what means nothing in one language may be
        the word that counts in another ("die", "war")."""
        candidates = [self._without_stop_words(text, each) for each in analysers if each in _STOP_WORDS]
        shortest = min(candidates, key=len, default=[])
        return " ".join(shortest) or text

    def _without_stop_words(self, text: str, analyser: str) -> list[str]:
        if analyser not in self._stoppers:
            self._stoppers[analyser] = _built([tantivy.Filter.lowercase(), _STOP_WORDS[analyser]()])
        words: list[str] = self._stoppers[analyser].analyze(text)
        return words


def _analyser(name: str) -> Any:
    """English loses its accents before it is stemmed, for its stemmer knows none; the others know those of theirs."""
    fold = [tantivy.Filter.ascii_fold()]
    stem = [tantivy.Filter.stemmer(STEMMERS[name])] if name in STEMMERS else []
    filters = fold + stem if name == "en" else stem + fold
    tokenizer = tantivy.Tokenizer.regex(_WITH_MARKS) if name in (FOLDED, "ta") else tantivy.Tokenizer.simple()
    return _built([tantivy.Filter.remove_long(_MAX_TERM_CHARS), tantivy.Filter.lowercase(), *filters], tokenizer)


def _built(filters: Iterable[Any], tokenizer: Any = None) -> Any:
    builder = tantivy.TextAnalyzerBuilder(tokenizer or tantivy.Tokenizer.simple())
    for each in filters:
        builder = builder.filter(each)
    return builder.build()
