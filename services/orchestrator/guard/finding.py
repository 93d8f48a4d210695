"""Tells text that gives orders to a model, asks for its secrets or asks for harm: by words of the supported languages in the right
places, never by one word alone."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache

from services.orchestrator.guard.folding import fold, fold_with_places, hidden_in
from services.orchestrator.guard.words import BITS, UNSPACED, Mark, Sort, marks_in, sorts_in, vocabulary

_NEAR, _NEXT, _FAR = 70, 14, 400
"""Characters between the words of an order, between a word and its attribute, and between a role and what it is freed of."""
_UNSPACED_SHARE = 0.4
"""Of these distances in languages without spaces, whose words are shorter."""
_MARKER = re.compile(
    r"<\|[a-z_]{2,24}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|</?(?:system|god|admin|developer)(?: mode)?(?: activated)?>"
    r"|\[(?:system|admin|developer)(?: [a-z]{2,20}){0,2}\]|#{2,}\s*(?:system|new instructions?)\b|\bbegin system\b"
    r"|-{3,}\s*end of (?:user|system)|%{3,}\s*end"
)
"""What servers and attackers put around another speaker's words."""
SPEAKER = re.compile(
    r"<\|[\w-]{2,24}\|>|\[/?INST\]|<</?SYS>>|</s>|<(?:start|end)_of_turn>|</?(?:tool_call|tool_response|tools|think|system)>",
    re.IGNORECASE,
)
"""What chat templates put around the words of a speaker."""
_SPELLED = re.compile(r"(?<!\w)(?:[^\W\d_][ .\-_*]){5,}[^\W\d_](?!\w)")
"""A word in letters with something between them."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_ADDRESS = re.compile(r"https?://\S+|\b[\w.+-]+@[\w-]+\.[a-z]{2,}\b")
_FILLED_IN = re.compile(r"https?://[^\s)\"'>]*(?:\{[^}\s]{1,60}\}|\[[a-z_ ]{3,60}\]|<[a-z_ ]{3,60}>|\$\w+|=$)")
"""An address with a place for data in it."""
_MOST_FINDINGS = 8
_QUOTES = "\"'“”„«»‘’「」`"
_ASKED_ABOUT = re.compile(r"^\W*(?:why|what|how|explain|analy[sz]e|discuss|describe|define|is|does|do|are|can)\b")


class Kind(StrEnum):
    """What a text is after."""

    INJECTION = "injection"
    EXFILTRATION = "exfiltration"
    ABUSE = "abuse"


@dataclass(frozen=True)
class Finding:
    """A part of a text that gives orders; `rule` names the rule that found it."""

    kind: Kind
    rule: str
    start: int
    end: int


@lru_cache(maxsize=1024)
def find(text: str) -> Sequence[Finding]:
    """What the text is after, by position; at most a few findings. A passage is looked at once, however many prompts show it."""
    found = [Finding(Kind.INJECTION, "hidden_text", *span) for span in hidden_in(text)]
    folded = fold(text)
    spans = list(_spans(folded))
    if spans:
        places = fold_with_places(text)[1]
        found += [Finding(kind, rule, places[start], places[end - 1] + 1) for kind, rule, start, end in spans]
    found += [
        Finding(kind, "encoded", start, end)
        for start, end, plain in _disguised(text)
        for kind, *_ in list(_spans(fold(plain)))[:1]
    ]
    return sorted(_merged(found), key=lambda each: each.start)[:_MOST_FINDINGS]


def _merged(found: Sequence[Finding]) -> Iterator[Finding]:
    """One finding of each kind at a place."""
    last: dict[Kind, Finding] = {}
    for each in sorted(found, key=lambda each: (each.start, -each.end)):
        before = last.get(each.kind)
        if before is None or each.start >= before.end:
            last[each.kind] = each
            yield each


def _disguised(text: str) -> Iterator[tuple[int, int, str]]:
    """What stands where in another form: words spelled letter by letter, and base64."""
    if (spelled := _SPELLED.search(text)) is not None:
        yield spelled.start(), spelled.end(), _SPELLED.sub(lambda match: _joined(match[0]), text)
    for match in _BASE64.finditer(text):
        try:
            plain = base64.b64decode(match[0] + "=" * (-len(match[0].rstrip("=")) % 4), validate=False).decode()
        except (binascii.Error, ValueError):
            continue
        if plain.isprintable():
            yield match.start(), match.end(), plain


def _joined(spelled: str) -> str:
    return spelled.replace(spelled[1], "")


def _spans(folded: str) -> Iterator[tuple[Kind, str, int, int]]:
    for match in _MARKER.finditer(folded):
        yield Kind.INJECTION, "marker", match.start(), match.end()
    seen = sorts_in(folded)
    languages = [
        (number, rules)
        for number in range(len(vocabulary().codes))
        if (sorts := seen >> BITS * number & _ALL) and (rules := _possible_rules(sorts))
    ]
    may_send = "://" in folded or "@" in folded
    if not languages and not may_send:
        return
    marks = marks_in(folded)
    for number, rules in languages:
        yield from _in_language(folded, marks, number, rules)
    if may_send and (span := _sent(folded, marks)) is not None:
        yield Kind.EXFILTRATION, "send", *span


@lru_cache(maxsize=4096)
def _possible_rules(sorts: int) -> Sequence[str]:
    """The rules that words of these sorts may fulfil."""
    return [
        name for name, rule in _RULES.items() if any(all(sorts & each for each in needed) for needed in rule.needed)
    ]


def _in_language(
    folded: str, marks: Sequence[Mark], number: int, rules: Sequence[str]
) -> Iterator[tuple[Kind, str, int, int]]:
    words = vocabulary()
    own = [
        Mark(each.start, each.end, sorts, each.sentence)
        for each in marks
        if (sorts := each.mask >> BITS * number & _ALL)
    ]
    scene = _Scene(folded, own, words.codes[number] in UNSPACED, bool(words.verb_last >> number & 1))
    for name in rules:
        span = _RULES[name].search(scene)
        if span is not None and not _is_mentioned(folded, *span):
            yield _RULES[name].kind, name, *span


_ALL = (1 << BITS) - 1


def _is_mentioned(folded: str, start: int, end: int) -> bool:
    """Whether the order is quoted by a question about it."""
    is_quoted = folded[start - 1 : start] in _QUOTES and folded[end : end + 1] in _QUOTES
    return is_quoted and start > 0 and _ASKED_ABOUT.match(folded) is not None


_Span = tuple[int, int]


@dataclass(frozen=True)
class _Scene:
    """The marks of a text in one language."""

    text: str
    marks: Sequence[Mark]
    is_unspaced: bool
    is_verb_last: bool

    def of(self, sort: int) -> list[Mark]:
        sort = int(sort)
        return [mark for mark in self.marks if mark.mask & sort]

    def near(self, mark: Mark, sort: int, within: int, *, behind: bool = False, far: bool = False) -> Mark | None:
        """The closest mark of the sort beside another one, in its sentence unless `far`."""
        within = int(within * _UNSPACED_SHARE) + 2 if self.is_unspaced else within
        sort = int(sort)
        best, distance = None, within + 1
        for each in self.marks:
            if not each.mask & sort or (each.start, each.end) == (mark.start, mark.end):
                continue
            gap = each.start - mark.end if each.start >= mark.end else mark.start - each.end
            if gap < 0 or gap >= distance or (not far and each.sentence != mark.sentence):
                continue
            if behind and each.start < mark.end:
                continue
            best, distance = each, gap
        return best


def _span(*marks: Mark) -> _Span:
    return min(mark.start for mark in marks), max(mark.end for mark in marks)


def _override(scene: _Scene) -> _Span | None:
    """Ignore … previous … instructions."""
    for mark in scene.of(Sort.IGNORE):
        orders = scene.near(mark, Sort.ORDERS, _NEAR, behind=not scene.is_verb_last)
        if orders is not None:
            whose = scene.near(orders, Sort.EARLIER | Sort.YOUR | Sort.HIDDEN, _NEXT * 2)
            if whose is not None and (scene.is_verb_last or whose.start >= mark.start):
                return _span(mark, orders)
    return None


def _override_above(scene: _Scene) -> _Span | None:
    """Ignore the above and …"""
    for mark in scene.of(Sort.IGNORE):
        above = scene.near(mark, Sort.ABOVE, _NEXT, behind=not scene.is_verb_last)
        if above is not None and (
            scene.is_verb_last
            or scene.is_unspaced
            or re.match(r"\s*(?:[,.!:;\n]|$|and\b|y\b|e\b|et\b|и\b)", scene.text[above.end :])
        ):
            return _span(mark, above)
    return None


def _override_phrase(scene: _Scene) -> _Span | None:
    for mark in scene.of(Sort.P_OVERRIDE):
        beside = scene.near(mark, Sort.ORDERS | Sort.EARLIER | Sort.P_LEAK | Sort.REVEAL, _NEAR, far=True)
        if beside is not None:
            return _span(mark, beside)
    return None


def _leak(scene: _Scene) -> _Span | None:
    """Reveal … your hidden instructions; the system prompt."""
    for mark in scene.of(Sort.P_LEAK):
        beside = scene.near(mark, Sort.REVEAL | Sort.IGNORE, _NEAR)
        if beside is None and scene.near(mark, Sort.YOUR, _NEXT) is not None:
            beside = scene.near(mark, Sort.WHAT, _NEAR)
        if beside is not None:
            return _span(mark, beside)
    for mark in scene.of(Sort.REVEAL | Sort.WHAT):
        orders = scene.near(mark, Sort.PROMPT | Sort.ORDERS, _NEAR, behind=not scene.is_verb_last)
        if orders is None:
            continue
        hidden = scene.near(orders, Sort.HIDDEN, _NEXT * 2)
        yours = scene.near(orders, Sort.YOUR, 1 if orders.mask & Sort.PROMPT else 0)
        is_whose = hidden is not None and scene.near(hidden, Sort.YOUR | Sort.EARLIER, _NEXT * 2) is not None
        if is_whose or (yours is not None and orders.mask & Sort.PROMPT):
            return _span(mark, orders)
    return None


def _secret(scene: _Scene) -> _Span | None:
    """Tell me your password."""
    for mark in scene.of(Sort.SECRETS):
        yours = scene.near(mark, Sort.YOUR, _NEXT - 2)
        if yours is not None and (asked := scene.near(mark, Sort.REVEAL | Sort.WHAT, _NEAR)) is not None:
            return _span(mark, yours, asked)
        boss = scene.near(mark, Sort.P_ROLE, _NEAR * 2, far=True)
        if boss is not None and scene.near(mark, Sort.REVEAL | Sort.WHAT, _NEAR) is not None:
            return _span(boss, mark)
    return None


def _role(scene: _Scene) -> _Span | None:
    """You are now … without any restrictions."""
    phrases = {(mark.start, mark.end) for mark in scene.of(Sort.P_ROLE)}
    for mark in scene.of(Sort.P_ROLE):
        freed = scene.near(mark, Sort.FREED | Sort.IGNORE, _FAR, far=True)
        other = scene.near(mark, Sort.P_ROLE, _FAR, far=True)
        if freed is not None and freed.mask & Sort.FREED:
            return _span(mark, freed)
        if other is not None and len({scene.text[start:end] for start, end in phrases}) > 1:
            return _span(mark, other)
    for mark in scene.of(Sort.ROLE):
        if (freed := scene.near(mark, Sort.FREED, _NEAR)) is not None:
            return _span(mark, freed)
    return None


def _weapon(scene: _Scene) -> _Span | None:
    """How to make a bomb."""
    for mark in scene.of(Sort.WEAPONS):
        made = scene.near(mark, Sort.MAKE, _NEXT * 2)
        if made is not None and (asked := scene.near(made, Sort.HOW, _NEXT * 2)) is not None:
            return _span(mark, made, asked)
    return None


def _harm(scene: _Scene) -> _Span | None:
    """How to kill someone."""
    for mark in scene.of(Sort.HARM):
        person = scene.near(mark, Sort.PERSON, _NEXT, behind=not scene.is_verb_last)
        if person is not None and (asked := scene.near(mark, Sort.HOW, _NEXT * 2)) is not None:
            return _span(mark, person, asked)
    return None


@cache
def _in_all(sort: Sort) -> int:
    """The sort in all languages."""
    return sum(int(sort) << BITS * number for number in range(len(vocabulary().codes)))


def _sent(folded: str, marks: Sequence[Mark]) -> _Span | None:
    """Send the conversation to this address; an address with a place for data."""
    if "://" not in folded and "@" not in folded:
        return None
    if (match := _FILLED_IN.search(folded)) is not None:
        return match.span()
    send, data = _in_all(Sort.SEND), _in_all(Sort.DATA)
    for address in _ADDRESS.finditer(folded):
        near = [mark for mark in marks if -_NEAR * 2 <= mark.start - address.start() <= _NEAR * 2]
        sending = next((mark for mark in near if mark.mask & send), None)
        sent = next((mark for mark in near if mark.mask & data and mark is not sending), None)
        if sending is not None and sent is not None:
            return min(sending.start, sent.start, address.start()), max(sending.end, sent.end, address.end())
    return None


@dataclass(frozen=True)
class _Rule:
    """One way to tell: a search, and the sorts of words without which it finds nothing, by alternatives."""

    kind: Kind
    search: Callable[[_Scene], _Span | None]
    needed: Sequence[Sequence[int]]


def _needs(*groups: Sort) -> Sequence[int]:
    return [int(each) for each in groups]


_WHOSE = Sort.EARLIER | Sort.YOUR | Sort.HIDDEN
_ASKS = Sort.REVEAL | Sort.WHAT
_RULES: dict[str, _Rule] = {
    "override": _Rule(Kind.INJECTION, _override, [_needs(Sort.IGNORE, Sort.ORDERS, _WHOSE)]),
    "override_above": _Rule(Kind.INJECTION, _override_above, [_needs(Sort.IGNORE, Sort.ABOVE)]),
    "override_phrase": _Rule(
        Kind.INJECTION,
        _override_phrase,
        [_needs(Sort.P_OVERRIDE, Sort.ORDERS | Sort.EARLIER | Sort.P_LEAK | Sort.REVEAL)],
    ),
    "role": _Rule(Kind.INJECTION, _role, [_needs(Sort.P_ROLE), _needs(Sort.ROLE, Sort.FREED)]),
    "leak": _Rule(
        Kind.EXFILTRATION,
        _leak,
        [_needs(Sort.P_LEAK, _ASKS | Sort.IGNORE), _needs(_ASKS, Sort.PROMPT | Sort.ORDERS, Sort.HIDDEN | Sort.YOUR)],
    ),
    "secret": _Rule(Kind.EXFILTRATION, _secret, [_needs(Sort.SECRETS, _ASKS, Sort.YOUR | Sort.P_ROLE)]),
    "weapon": _Rule(Kind.ABUSE, _weapon, [_needs(Sort.WEAPONS, Sort.MAKE, Sort.HOW)]),
    "harm": _Rule(Kind.ABUSE, _harm, [_needs(Sort.HARM, Sort.PERSON, Sort.HOW)]),
}
