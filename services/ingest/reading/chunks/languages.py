"""In which language a chunk is written: it decides how the lexical index cuts and stems its words.

Detection reads bounded samples of each chunk. A sample may mislead (names, tables, code), so a chunk is said to be in another
language than its document only when that is fairly certain.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from services.ingest.reading.models import Chunk

MAX_LANGUAGES = 16
"""As many as the index takes for a document."""
_SAMPLE_CHARS = 160
_MIN_LETTERS = 12
_MIN_LETTERS_UNSPACED = 4
_MIN_SHARE = 0.35
"""Of the letters sampled, weighted by certainty: below it no language is the document's. Source code has about 0.25."""
_MIN_CERTAINTY = 0.8
"""Of a chunk that is in another language than its document."""
_MIN_CERTAINTY_ALONE = 0.5
"""Of a chunk whose document has no language."""
_NOISE = re.compile(r"https?://\S+|[\d_|#*=<>{}\[\]()/\\~^+@•·…-]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


class LanguageDetector(Protocol):
    """Tells languages apart."""

    def detect(self, text: str) -> tuple[str, float]:
        """The likeliest language of one line of lower-case text, as ISO 639-1 code (639-3 where there is none), and how
        certain that is, from 0 to 1."""


@dataclass(frozen=True)
class _Guess:
    language: str
    certainty: float
    letters: int


def with_languages(chunks: Sequence[Chunk], detector: LanguageDetector) -> list[Chunk]:
    """The chunks of a document, each with its language; "" where nothing can be said."""
    guesses = [_guess(chunk.text, detector) for chunk in chunks]
    document_language = _common(guesses)
    least = _MIN_CERTAINTY if document_language else _MIN_CERTAINTY_ALONE
    languages = (guess.language if guess.certainty >= least else document_language for guess in guesses)
    return [replace(chunk, language=language) for chunk, language in zip(chunks, languages, strict=True)]


def languages_of(chunks: Sequence[Chunk]) -> tuple[str, ...]:
    """The languages of a document, most common first; none when none is known."""
    counts = Counter(chunk.language for chunk in chunks if chunk.language)
    return tuple(language for language, _ in counts.most_common(MAX_LANGUAGES))


def _common(guesses: Sequence[_Guess]) -> str:
    weights: dict[str, float] = {}
    for guess in guesses:
        weights[guess.language] = weights.get(guess.language, 0.0) + guess.certainty * guess.letters
    language = max(weights, key=weights.__getitem__, default="")
    letters = sum(guess.letters for guess in guesses)
    return language if weights.get(language, 0.0) >= _MIN_SHARE * letters else ""


def _guess(text: str, detector: LanguageDetector) -> _Guess:
    """By words from the middle, where prose is likelier than in headings and footers. Where a table or code stands there, by the
    beginning or the end if those are certain."""
    last = max(0, len(text) - _SAMPLE_CHARS)
    middle = _guess_at(text, last // 2, detector)
    if middle.certainty >= _MIN_CERTAINTY or not last:
        return middle
    ends = (_guess_at(text, start, detector) for start in (0, last))
    return next((each for each in ends if each.certainty >= _MIN_CERTAINTY), middle)


def _guess_at(text: str, start: int, detector: LanguageDetector) -> _Guess:
    sample = " ".join(_NOISE.sub(" ", text[start : start + _SAMPLE_CHARS]).lower().split())
    if len(sample) < _MIN_LETTERS and len(_UNSPACED.findall(sample)) < _MIN_LETTERS_UNSPACED:
        return _Guess("", 0.0, 0)
    language, certainty = detector.detect(sample)
    return _Guess(language, certainty, len(sample))
