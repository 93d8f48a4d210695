"""Which languages a query may be in. A word has another term in each language, so a query that is analysed in those of all
documents finds words that it does not have; and a few words are too little to tell languages apart, unless it is known what is
searched.
"""

from collections.abc import Collection, Mapping

from services.retriever.ports import LanguageDetector

_CERTAINTY = 0.95
"""Of the languages that are chosen, together. In a collection of twelve languages (XQuAD) they are 1.0 to 1.2 and the right one is
among them for 99.3 to 100 % of the questions; of their last three words alone 1.0 to 2.3, and for 93 to 100 %."""
_FOREIGN = 0.9
"""Certainty that a query is in none of the documents' languages, from which it is taken to be so. Of XQuAD's questions, asked in
the language of their documents, 0 to 2 % are."""
_LEAST = 1e-4
"""Of a language of the documents that the detector does not think of: a query may be a name."""


class QueryLanguages:
    """Decides by what the detector says of the query, with the languages of the documents as prior."""

    def __init__(self, detector: LanguageDetector) -> None:
        self._detector = detector

    def of(self, query_text: str, documents: Mapping[str, int]) -> tuple[str, ...]:
        """The languages of the documents that the query may be in, likeliest first; as many as it takes to be certain. `documents`:
        how many there are in each language; empty when that is not known, and then each language is as likely as any other."""
        if len(documents) == 1:
            return tuple(documents)
        certainties = self._detector.certainties(" ".join(query_text.lower().split()))
        weights = {
            language: max(certainties.get(language, 0.0), _LEAST) * count
            for language, count in (documents or dict.fromkeys(certainties, 1)).items()
        }
        return _likeliest(weights)

    def spoken(self, query_text: str, documents: Collection[str]) -> tuple[str, ...] | None:
        """Those of the documents' languages that the query itself is in, however few documents there are in them: its words are met
        in no other. None at all where it is in a language of its own; None where it may be in all of them, or nothing is known."""
        certainties = self._detector.certainties(" ".join(query_text.lower().split()))
        total = sum(certainties.values())
        if not documents or not total:
            return None
        inside = {language: max(certainties.get(language, 0.0), _LEAST) for language in documents}
        if sum(certainties.get(language, 0.0) for language in documents) <= (1 - _FOREIGN) * total:
            return ()
        chosen = _likeliest(inside)
        return None if len(chosen) == len(inside) else chosen


def _likeliest(weights: Mapping[str, float]) -> tuple[str, ...]:
    """As many as it takes to be certain, the likeliest first."""
    left = (1 - _CERTAINTY) * sum(weights.values())
    remaining = sum(weights.values())
    chosen = []
    for language in sorted(weights, key=weights.__getitem__, reverse=True):
        chosen.append(language)
        remaining -= weights[language]
        if remaining <= left:
            break
    return tuple(chosen)
