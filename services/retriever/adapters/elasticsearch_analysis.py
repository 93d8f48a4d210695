"""How text becomes terms in Elasticsearch: `languages.prepared` first, as for tantivy, then an analyser for each language made
of what every server has, without plugins.

Each language has a second analyser for queries, which leaves out words that carry no meaning. They are in the index all the
same, so that phrases that hold them are found, and queries of nothing else.
"""

from typing import Any

from services.retriever.languages import ANALYSERS, ENGLISH_STOP_WORDS, FOLDED

Json = dict[str, Any]
_STEMMERS = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "porter2",  # Snowball's English; "english" is the older algorithm
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
    "tr": "turkish",
}
"""ISO 639-1 code → `language` of Elasticsearch's stemmer filter. Of the languages that tantivy can stem, Tamil is missing."""
_STOP_LISTS = {
    "ar": "_arabic_",
    "da": "_danish_",
    "de": "_german_",
    "el": "_greek_",
    "es": "_spanish_",
    "fi": "_finnish_",
    "fr": "_french_",
    "hu": "_hungarian_",
    "it": "_italian_",
    "nl": "_dutch_",
    "no": "_norwegian_",
    "pt": "_portuguese_",
    "ro": "_romanian_",
    "ru": "_russian_",
    "sv": "_swedish_",
    "tr": "_turkish_",
}
"""Lists that the server has. English has our own: the server's lacks question words."""
_LOWERCASE = {"el": "groundwork_lowercase_el", "tr": "groundwork_lowercase_tr"}
"""Whose stemmers need a lower case of their own: the dotless i, the final sigma."""


def field_name(analyser: str) -> str:
    """The sub-field of `text` and `title` for one of languages.ANALYSERS."""
    return "folded" if analyser == FOLDED else analyser


def index_analyser(analyser: str) -> str:
    """Name of the analyser of that field."""
    return f"groundwork_{field_name(analyser)}"


def telling_analyser(analyser: str) -> str | None:
    """Name of the analyser that leaves out the words without meaning, or None where none are known."""
    return f"{index_analyser(analyser)}_telling" if _has_stop_words(analyser) else None


def analysis() -> Json:
    """`settings.index.analysis` of the index."""
    telling = {name: _custom(analyser, telling=True) for analyser in ANALYSERS if (name := telling_analyser(analyser))}
    return {
        "tokenizer": {
            # Like tantivy's, and unlike "standard", which would cut the pairs of Chinese and Japanese characters in two.
            "groundwork_words": {"type": "pattern", "pattern": r"[^\p{L}\p{M}\p{N}]+"}
        },
        "filter": {
            "groundwork_length": {"type": "length", "max": 64},  # longer ones are noise: base64, addresses
            "groundwork_lowercase_el": {"type": "lowercase", "language": "greek"},
            "groundwork_lowercase_tr": {"type": "lowercase", "language": "turkish"},
            "groundwork_stop_en": {"type": "stop", "stopwords": ENGLISH_STOP_WORDS.split()},
            **{f"groundwork_stop_{code}": {"type": "stop", "stopwords": name} for code, name in _STOP_LISTS.items()},
            **{f"groundwork_stem_{code}": {"type": "stemmer", "language": name} for code, name in _STEMMERS.items()},
        },
        "analyzer": {index_analyser(analyser): _custom(analyser) for analyser in ANALYSERS} | telling,
    }


def _custom(analyser: str, *, telling: bool = False) -> Json:
    """English loses its accents before it is stemmed, for its stemmer knows none; the others know those of theirs."""
    stop = [f"groundwork_stop_{analyser}"] if telling else []
    stem = [f"groundwork_stem_{analyser}"] if analyser in _STEMMERS else []
    normalised = ["arabic_normalization"] if analyser == "ar" else []
    stemmed_and_folded = ["asciifolding", *stem] if analyser == "en" else [*normalised, *stem, "asciifolding"]
    lowercase = _LOWERCASE.get(analyser, "lowercase")
    return {
        "type": "custom",
        "tokenizer": "groundwork_words",
        "filter": ["groundwork_length", lowercase, *stop, *stemmed_and_folded],
    }


def _has_stop_words(analyser: str) -> bool:
    return analyser == "en" or analyser in _STOP_LISTS
