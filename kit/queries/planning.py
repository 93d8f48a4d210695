"""A plan for a search, from the question alone: what to search for, what must be in a passage, and where and when to look."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from kit.language.terms import Token, tokens
from kit.queries.rewriting import about, distinct, keywords, wordings
from kit.queries.shape import look_at, quoted
from kit.temporal.calendar import Moment
from kit.temporal.reading import Period, preposition_before, read_periods

QUERIES_MIN, QUERIES_MAX = 3, 6
PHRASES_MAX = 8
"""As many as a search takes."""
_PART_WORDS_MIN = 2


@dataclass(frozen=True)
class SearchPlan:
    """What to search for."""

    queries: list[str]
    """The question itself first. Fewer than QUERIES_MIN where there are no other wordings."""
    must_phrases: list[str]
    should_phrases: list[str]
    """Names and identifiers: a good passage has some of them."""
    channels: list[str]
    periods: list[Period]


def plan(question: str, moment: Moment, known_channels: Sequence[str] = ()) -> SearchPlan:
    """The plan for a question; the same for the same question and moment. `known_channels` are names that may stand in it."""
    text = " ".join(question.split())
    periods = read_periods(text, moment)
    mentions = [*_channel_mentions(text, known_channels)]
    asides = [(one.start, one.end) for one in mentions if one.is_aside]
    bare = _without(text, [*asides, *(_with_preposition(text, one) for one in periods)]) or text
    phrases = [phrase for phrase in quoted(text) if not any(phrase in mention.names for mention in mentions)]
    return SearchPlan(
        _queries(text, bare),
        phrases[:PHRASES_MAX],
        _telling(bare, phrases)[:PHRASES_MAX],
        list(dict.fromkeys(name for mention in mentions for name in mention.names)),
        periods,
    )


def _queries(text: str, bare: str) -> list[str]:
    found = distinct([text, keywords(bare), *_parts(bare), *wordings(bare)])
    if len(found) < QUERIES_MIN:
        found = distinct([*found, *about(bare)])[:QUERIES_MIN]
    return found[:QUERIES_MAX]


def clauses(text: str) -> list[str]:
    """The questions of a text that asks several; none where it asks one."""
    sentences = _sentences(text)
    found = [clause for sentence in sentences for clause in _next_question().split(sentence)]
    return [clause for clause in found if len(clause.split()) >= _PART_WORDS_MIN] if len(found) > 1 else []


def _parts(text: str) -> Iterator[str]:
    """Several questions in one, and the two sides of a comparison."""
    yield from clauses(text)
    for sentence in _sentences(text):
        yield from _sides(sentence)


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[?!.;？。])\s+", text) if part.strip()]


def _sides(sentence: str) -> Iterator[str]:
    match = _comparison().search(sentence.strip(" ?!."))
    if match is None:
        return
    one, other = (match["one"] or match["left"]), (match["other"] or match["right"])
    shared = _shared().search(other)
    yield one + (other[shared.start() :] if shared else "")
    yield other


@dataclass(frozen=True)
class _Mention:
    """A channel that the question names."""

    start: int
    end: int
    names: tuple[str, ...]
    """Its possible spellings."""
    is_aside: bool = True
    """Whether it is only said where to look, and not what for."""


def _channel_mentions(text: str, known: Iterable[str]) -> Iterator[_Mention]:
    for match in _handle().finditer(text):
        name = match["handle"] or match["link"]
        yield _Mention(match.start(), match.end(), (name, f"@{name}"))
    for match in _named_channel().finditer(text):
        if name := next((part for part in match.groups() if part), None):
            yield _Mention(match.start(), match.end(), (name,))
    for name in known:
        if mention := re.search(rf"(?<![\w@]){re.escape(name)}(?!\w)", text, re.IGNORECASE):
            yield _Mention(mention.start(), mention.end(), (name,), is_aside=False)


def _with_preposition(text: str, period: Period) -> tuple[int, int]:
    before = preposition_before(text, period.start)
    return (before.start() if before else period.start, period.end)


def _without(text: str, places: Iterable[tuple[int, int]]) -> str:
    for start, end in sorted(places, reverse=True):
        text = f"{text[:start]} {text[end:]}"
    text = re.sub(r"\s+([?!.,;:])", r"\1", " ".join(text.split()))
    return text.strip(" ,;:") if re.search(r"\w", text) else ""


def _telling(text: str, phrases: Sequence[str]) -> list[str]:
    """Names, with those that follow each other as one, and identifiers; none that is in a phrase already."""
    found = [*look_at(text).identifiers, *_names(text)]
    return [one for one in dict.fromkeys(found) if len(one) > 1 and not any(one in phrase for phrase in phrases)]


def _names(text: str) -> Iterator[str]:
    run: list[Token] = []
    for token in tokens(text):
        if run and not (token.is_name and token.start <= run[-1].end + 1):
            yield text[run[0].start : run[-1].end]
            run = []
        if token.is_name:
            run.append(token)
    if run:
        yield text[run[0].start : run[-1].end]


@cache
def _next_question() -> "re.Pattern[str]":
    asking = (
        "what|who|when|where|why|how|which|was|wer|wann|wo|warum|wie|welche[rs]?|что|кто|когда|где|почему|как|сколько|какой|какая|какие"
        "|qui|que|quand|où|pourquoi|comment|combien|quién|qué|cuándo|dónde|cómo|cuánto"
    )
    return re.compile(rf",?\s+(?:and|or|und|oder|и|или|а|et|ou|y|o)\s+(?=(?:{asking})\b)", re.IGNORECASE)


@cache
def _comparison() -> "re.Pattern[str]":
    compare = (
        r"compare|comparison\s+of|differences?\s+between|сравни(?:те|ть)?|разница\s+между|отличия?\s+между|vergleiche?|unterschiede?\s+zwischen"
        r"|comparer?|différences?\s+entre|compara|diferencias?\s+entre"
    )
    between = r"and|with|to|und|mit|и|с|et|avec|à|y|con"
    return re.compile(
        rf"\b(?:{compare})\s+(?P<one>.+?)\s+(?:{between})\s+(?P<other>.+)|(?P<left>.+?)\s+(?:vs\.?|versus|против)\s+(?P<right>.+)",
        re.IGNORECASE,
    )


@cache
def _shared() -> "re.Pattern[str]":
    """What a comparison says of both sides: "A and B in Europe"."""
    return re.compile(r"\s+(?:in|for|on|at|with|für|bei|in|im|в|на|для|при|pour|dans|en|para)\s+\S", re.IGNORECASE)


@cache
def _handle() -> "re.Pattern[str]":
    return re.compile(
        r"(?<![\w.@/])(?:@(?P<handle>[A-Za-z]\w{3,31})|(?:https?://)?t\.me/(?P<link>[A-Za-z]\w{3,31}))(?![\w@])"
    )


@cache
def _named_channel() -> "re.Pattern[str]":
    before = (
        r"(?:(?:in|from|on)\s+)?(?:the\s+)?channel|(?:в|из|на)\s+канал[ае]|(?:im|aus\s+dem)\s+kanal"
        r"|(?:dans|sur)\s+(?:le\s+canal|la\s+chaîne)|(?:en|del)\s+(?:el\s+)?canal"
    )
    name = r"\"([^\"]{2,100})\"|«([^»]{2,100})»|„([^“”]{2,100})[“”]|“([^”]{2,100})”|((?-i:[A-ZА-ЯЁ])\w*(?:\s(?-i:[A-ZА-ЯЁ])\w*)*)"
    return re.compile(rf"\b(?:{before})\s+(?:{name})", re.IGNORECASE)
