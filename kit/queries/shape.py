"""What a query looks like, and so which search finds what it is after: words (BM25), meaning (vectors), or both."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from kit.language.questions import AnswerKind, read_question
from kit.language.terms import Token
from kit.temporal.expressions import DateOrder
from kit.temporal.rules import find_expressions

LEXICAL, DENSE, HYBRID = "lexical", "dense", "hybrid"
VERY_SHORT_WORDS = 2
SHORT_WORDS = 5
LONG_WORDS = 8
"""Content words. A query of so many is a description: hardly a passage has them all, and vectors find what it means."""
ABSTRACT_WORDS = 2

_QUOTED = re.compile(r'"([^"\n]{2,200})"|«([^»\n]{2,200})»|„([^“”"\n]{2,200})[“”"]|“([^”\n]{2,200})”')
_ABSTRACT = {AnswerKind.REASON, AnswerKind.MANNER, AnswerKind.DESCRIPTION}


@dataclass(frozen=True)
class Shape:
    """A query, looked at."""

    quotes: tuple[str, ...]
    identifiers: tuple[str, ...]
    """Codes, paths, addresses, handles: what only its exact spelling finds."""
    has_operators: bool
    has_numbers: bool
    """Numbers or times outside of identifiers."""
    names: tuple[str, ...]
    content_words: int
    is_keywords: bool
    """Words to look up, not a question."""
    is_abstract: bool
    """It asks why or how, or for an explanation."""


@dataclass(frozen=True)
class QueryRoute:
    """Which search, and why, for a person."""

    strategy: str
    reasons: tuple[str, ...] = field(default=())


def route(text: str) -> QueryRoute:
    """By the query's shape alone; always the same for the same text."""
    shape = look_at(text)
    exact, hints, meaning = _exact(shape), _hints(shape), _meaning(shape)
    if exact and not meaning:
        return QueryRoute(LEXICAL, exact)
    if hints and not meaning and shape.is_keywords and shape.content_words <= SHORT_WORDS:
        return QueryRoute(LEXICAL, (*hints, "a few keywords"))
    if meaning and not exact and not hints:
        return QueryRoute(DENSE, meaning)
    return QueryRoute(HYBRID, (*exact, *hints, *meaning) or ("neither exact words nor a long or abstract question",))


def look_at(text: str) -> Shape:
    """The query's shape."""
    question = read_question(text)
    identifiers = _identifiers(text)
    rest = text
    for identifier in identifiers:
        rest = rest.replace(identifier, " ")
    terms = [term for term in read_question(rest).terms if not term.is_stopword]
    return Shape(
        quotes=quoted(text),
        identifiers=identifiers,
        has_operators=_operators().search(text) is not None,
        has_numbers=any(term.is_number for term in terms) or bool(find_expressions(text, DateOrder.DAY_FIRST)),
        names=tuple(term.surface for term in terms if term.is_name),
        content_words=_count(terms) + len(identifiers),
        is_keywords=question.kind is AnswerKind.KEYWORDS or not _asks(text, question.kind),
        is_abstract=question.kind in _ABSTRACT or _why().search(text) is not None,
    )


def _count(terms: "Sequence[Token]") -> int:
    """Words. Those of scripts without spaces come as overlapping pairs of characters: about two to a word."""
    pairs = sum(
        1
        for term in terms
        if len(term.surface) <= 2 and term.surface.lower() == term.surface.upper() and not term.is_number
    )
    return len(terms) - pairs + (pairs + 1) // 2


def quoted(text: str) -> tuple[str, ...]:
    """What stands in quotation marks, each once."""
    found = (next(part for part in match.groups() if part) for match in _QUOTED.finditer(text))
    return tuple(dict.fromkeys(" ".join(phrase.split()) for phrase in found if phrase.strip()))


def _asks(text: str, kind: AnswerKind) -> bool:
    """Whether it is put as a question or a request, in any language."""
    if text.rstrip().endswith(("?", "？", "؟")) or _asking().search(text):
        return True
    return kind not in {AnswerKind.FACT, AnswerKind.KEYWORDS}


def _exact(shape: Shape) -> tuple[str, ...]:
    reasons = []
    if shape.quotes:
        reasons.append("a phrase in quotation marks")
    if shape.identifiers:
        reasons.append(f"an exact identifier ({shape.identifiers[0]})")
    if shape.has_operators:
        reasons.append("search operators")
    if shape.content_words <= VERY_SHORT_WORDS and shape.is_keywords:
        reasons.append("very short")
    return tuple(reasons)


def _hints(shape: Shape) -> tuple[str, ...]:
    reasons = []
    if shape.has_numbers:
        reasons.append("a number or a date")
    if shape.names:
        reasons.append(f"a name ({shape.names[0]})")
    return tuple(reasons)


def _meaning(shape: Shape) -> tuple[str, ...]:
    reasons = []
    if shape.content_words >= LONG_WORDS:
        reasons.append("a long description")
    if shape.is_abstract and shape.content_words >= ABSTRACT_WORDS:
        reasons.append("an abstract question")
    return tuple(reasons)


def _identifiers(text: str) -> tuple[str, ...]:
    times = [range(one.start, one.end) for one in find_expressions(text, DateOrder.DAY_FIRST)]
    found: dict[str, None] = {}
    for match in _identifier().finditer(text):
        if not any(match.start() in time for time in times):
            found[match.group().rstrip(".,;:!?)")] = None
    return tuple(found)


def _joined(parts: Sequence[str], flags: int = 0) -> "re.Pattern[str]":
    return re.compile("|".join(f"(?:{part})" for part in parts), flags)


@cache
def _identifier() -> "re.Pattern[str]":
    return _joined(
        (
            r"\bhttps?://\S+|\bwww\.\S+",
            r"\b[\w.+-]+@[\w-]+\.[\w.-]+",  # e-mail
            r"(?<!\w)[@#][A-Za-zА-Яа-яЁё_]\w{2,}",  # handle, tag
            r"(?<!\w)--?[a-z][\w-]{2,}",  # option
            r"(?<!\w)(?:[A-Za-z]:\\|~?/)[\w.\\/-]{3,}",  # path
            r"\b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}\b",  # UUID, hash
            r"\b[A-Za-z]\w*(?:\.[A-Za-z]\w*)*\.(?:py|js|ts|md|txt|pdf|docx?|xlsx?|csv|json|ya?ml|toml|sql|html?|cfg|ini|log)\b",
            r"\b\w+(?:_\w+)+\b|\b\w+\(\)",  # snake_case, call()
            r"\b[a-z]+[A-Z]\w+\b",  # camelCase
            r"\b[A-Za-zА-Яа-яЁё]{1,10}[-/]?\d[\w./-]*\b",  # E104, CVE-2024-1234, ГОСТ-34
            r"\b\d+[-/]?[A-ZА-ЯЁ]{1,6}\d*\b",  # 12AB
            r"\b\d+(?:\.\d+){2,}\b",  # 1.2.3
            r"§\s?\d\w*",
        )
    )


@cache
def _operators() -> "re.Pattern[str]":
    return _joined((r"(?<!\w)(?:AND|OR|NOT)(?!\w)", r"(?:^|\s)[+-]\w", r"(?<!\S)[a-z_]{2,20}:(?!//)\w", r"\w\*(?!\w)"))


@cache
def _asking() -> "re.Pattern[str]":
    """Question words and requests that begin a query, in languages other than English, whose forms kit.language knows."""
    return _joined(
        (
            r"^\W*(?:кто|что|где|когда|как|какой|какая|какие|какое|каков|почему|зачем|сколько|чем|чей|расскажи|объясни|опиши|покажи)\b",
            r"^\W*(?:wer|was|wo|wann|wie|warum|wieso|weshalb|welche[rsn]?|wieviel|erkläre?|beschreibe?)\b",
            r"^\W*(?:qui|que|quoi|où|quand|comment|pourquoi|quel(?:le)?s?|combien|explique[rz]?|décri[srvez]+|qu['’])",
            r"^\W*(?:quién(?:es)?|qué|dónde|cuándo|cómo|por\s+qué|cuál(?:es)?|cuánt[oa]s?|explica|describe)\b",
        ),
        re.IGNORECASE,
    )


@cache
def _why() -> "re.Pattern[str]":
    return _joined(
        (
            r"\bwhy\b|\bhow\s+(?:do|does|did|can|to|is|are|was|were)\b|\bexplain\b",
            r"\b(?:почему|зачем|объясни|расскажи|опиши|как\s+(?:работает|устроен\w*|сделать|можно))\b",
            r"\b(?:warum|wieso|weshalb|erkläre?|beschreibe?|wie\s+(?:funktioniert|kann|geht))\b",
            r"\b(?:pourquoi|comment|explique[rz]?)\b",
            r"\b(?:por\s+qué|cómo|explica)\b",
        ),
        re.IGNORECASE,
    )
