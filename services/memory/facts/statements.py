"""Reads what a person says of themself without a model: the rules of `statements.toml` find first-person statements.

Precision comes first: questions say nothing of anybody, and a plan without a time to come is none.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from kit.language.sentences import split_units
from kit.language.terms import tokens
from kit.temporal.calendar import Moment
from kit.temporal.reading import Period, read_periods
from services.memory.facts.models import FactKind, Statement
from services.memory.facts.own_words import own_words

_RULES_FILE = Path(__file__).with_name("statements.toml")
_SENTENCE_CHARACTERS_MAX = 300
_SENTENCES_MAX = 30
STATEMENTS_MAX = 8
"""Of one message: who says more of themself is quoting somebody."""
_GAP = "…"
_SAID = r"(?P<{name}>[^,;:!?()\n…]{{1,120}}?)"
_TO_THE_END = r"(?=\s*(?:$|[,;:!?()…])|\s(?:{stops})\b)"
_HOLE = re.compile(r"\{x\d?\}(?P<is_last>(?=$|[|)]))?")
_FUTURE_SENSES = ("dated",)
_ORDINAL = re.compile(r"\b(\d{1,2})\. (?=[^\W\d])")
"""A day of a month in German: no end of a sentence."""
_YEAR = re.compile(r"\d{4}")
_RECENT_DAYS = 31
"""A time that was over so recently is right as it was read: "yesterday", "last week"."""
_FIRST_PERSON = r"i|i'm|i've|my|ich|mein|meine|je|j'|mon|ma|mi|me|io|il mio|la mia|eu|meu|minha|ik|mijn"
_AND = "and|und|y|et|e|en"
_BUT = "but|aber|pero|mais|ma|mas|maar"
_CLAUSES = re.compile(
    rf"\s*[,;]\s*(?:(?:{_AND}|{_BUT}) )?(?=(?:{_FIRST_PERSON})\b)|\s+(?:{_AND}|{_BUT})\s+(?=(?:{_FIRST_PERSON})\b)"
)
"""Where another statement begins in a sentence."""


@dataclass(frozen=True)
class _Sense:
    name: str
    kind: FactKind
    slot: str
    answer: str


@dataclass(frozen=True)
class _Language:
    rules: Sequence[tuple[_Sense, re.Pattern[str]]]
    unlearnable: re.Pattern[str]
    tail: re.Pattern[str]
    """Words at the end of what is said that are no part of it: "now", "any more"."""


def languages() -> Sequence[str]:
    """Those that statements are read in."""
    return list(_languages())


def read_statements(message: str, at: datetime) -> list[Statement]:
    """What the writer of the message says of themself, in order."""
    found: dict[tuple[str, str], Statement] = {}
    for sentence in _sentences(own_words(message)):
        for clause in _clauses(sentence):
            if (statement := _read(clause, sentence, at)) is not None:
                found.setdefault((statement.slot, statement.answer), statement)
    return list(found.values())[:STATEMENTS_MAX]


def normalised(text: str) -> str:
    """The stems of the words that mean something, in their order."""
    stems = [token.stem for token in tokens(text.casefold()) if not token.is_stopword]
    return " ".join(stems) or " ".join(text.casefold().split())


def _sentences(text: str) -> Iterator[str]:
    for unit in split_units(_ORDINAL.sub(r"\1 ", text))[:_SENTENCES_MAX]:
        sentence = " ".join(unit.text.split())
        if len(sentence) <= _SENTENCE_CHARACTERS_MAX and not sentence.endswith(("?", "？")) and "¿" not in sentence:
            yield sentence


def _clauses(sentence: str) -> Iterator[str]:
    text = sentence.replace("’", "'").rstrip(" .!。")
    start = 0
    for match in _CLAUSES.finditer(text.casefold()):
        yield text[start : match.start()].strip(" ,;")
        start = match.end()
    yield text[start:].strip(" ,;")


def _read(clause: str, sentence: str, at: datetime) -> Statement | None:
    folded = clause.casefold()
    if len(folded) != len(clause):  # places in one are not places in the other
        folded = clause.lower()
    for language in _languages().values():
        for sense, pattern in language.rules:
            match = pattern.match(folded)
            if match is None:
                continue
            said = next(value for name, value in match.groupdict().items() if name[0] == "x" and value).strip()
            is_plan = sense.kind is FactKind.PLAN
            if not said or _GAP in match.group() or (language.unlearnable.match(said) and not is_plan):
                continue
            said = language.tail.sub("", said)
            valid_to = _end_of(sentence, at) if is_plan else None
            if sense.name in _FUTURE_SENSES and valid_to is None:
                continue
            words = clause[match.end("lead_") : _clause_end(clause, match.end(), sense)]
            return _statement(sense, match, said, words, valid_to)
    return None


def _clause_end(clause: str, end: int, sense: _Sense) -> int:
    """A plan and an order are kept with all that belongs to them."""
    return len(clause) if sense.kind in (FactKind.PLAN, FactKind.INSTRUCTION) or sense.name == "told" else end


def _statement(sense: _Sense, match: re.Match[str], said: str, words: str, valid_to: datetime | None) -> Statement:
    of = next((value for name, value in match.groupdict().items() if name[0] == "n" and value), "")
    answer, question = normalised(said), normalised(of)
    slot = sense.slot.format(x=answer, n=question)
    text = words.strip(" ,;:")
    text = text[:1].upper() + text[1:]
    filled = sense.answer.format(x=answer, n=question)
    return Statement(text, sense.kind, text, slot=slot, answer=filled, valid_to=valid_to)


def _end_of(sentence: str, at: datetime) -> datetime | None:
    """When what the sentence plans is over; None where it names no time to come."""
    to_come = (_to_come(period, at) for period in read_periods(sentence, Moment(at)))
    return max((end for end in to_come if end is not None), default=None)


def _to_come(period: Period, at: datetime) -> datetime | None:
    """The end of the period; of one that names no year and is over, the end of the next: "in June", said in November."""
    end = period.span.end or period.span.start
    if end is None or end > at or _YEAR.search(period.text):
        return end if end is not None and end > at else None
    try:
        later = end.replace(year=end.year + 1)
    except ValueError:  # the 29th of February
        return None
    return later if later > at and (at - end).days > _RECENT_DAYS else None


@cache
def _languages() -> Mapping[str, _Language]:
    table = tomllib.loads(_RULES_FILE.read_text("utf-8"))
    senses = {
        name: _Sense(name, FactKind(each["kind"]), each["slot"], each["answer"])
        for name, each in table.pop("senses").items()
    }
    return {code: _language(rules, senses) for code, rules in table.items()}


def _language(table: Mapping[str, str], senses: Mapping[str, _Sense]) -> _Language:
    rules = [
        (sense, _compiled(table["lead"], table[name], table["stops"]))
        for name, sense in senses.items()
        if name in table
    ]
    return _Language(rules, re.compile(table["not"]), re.compile(rf"(?:\s+{table['tail']})+\s*$"))


def _compiled(lead: str, rule: str, stops: str) -> re.Pattern[str]:
    counts: dict[str, int] = {}

    def hole(match: re.Match[str]) -> str:
        number = counts["x"] = counts.get("x", 0) + 1
        said = _SAID.format(name=f"x_{number}")
        return said + _TO_THE_END.format(stops=stops) if match["is_last"] is not None else said

    body = _HOLE.sub(hole, rule).replace("{{", "{").replace("}}", "}")
    return re.compile(f"(?P<lead_>{lead})(?:{body})")
