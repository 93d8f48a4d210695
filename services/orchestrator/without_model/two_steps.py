"""Questions that take two steps: "Where was the founder of Acme born?" asks for somebody whom one passage names and for what
another one says of them. The first step finds the name, the second asks with it. Questions are read in English and German; any
other, and one that a single sentence may answer, is asked as it stands. Words alone decide, in about a millisecond."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kit.language.questions import read_question
from kit.language.terms import STOPWORDS, Token, stem, tokens, words
from services.orchestrator.without_model.features import Candidate, gather
from services.orchestrator.without_model.models import Passage

_ROLES: Mapping[str, str] = {
    "founder": "found founded cofounded established started",
    "author": "author wrote written writer",
    "writer": "wrote written author",
    "inventor": "invented invention",
    "discoverer": "discovered discovery",
    "director": "directed head",
    "composer": "composed wrote",
    "painter": "painted",
    "sculptor": "sculpted made",
    "architect": "designed built",
    "designer": "designed",
    "builder": "built",
    "creator": "created made",
    "owner": "owns owned belongs bought",
    "manufacturer": "manufactured makes made produces produced",
    "maker": "makes made",
    "publisher": "published",
    "winner": "won",
    "leader": "led leads",
    "head": "heads headed leads led",
    "manager": "manages managed",
    "keeper": "keeps kept",
    "wife": "married spouse",
    "husband": "married spouse",
    "spouse": "married",
    "successor": "succeeded followed",
    "predecessor": "preceded",
    "mother": "",
    "father": "",
    "son": "",
    "daughter": "",
    "mayor": "",
    "president": "",
    "king": "",
    "queen": "",
    "captain": "",
    "chairman": "chairs",
    "ceo": "chief executive",
    "capital": "",
    "headquarters": "based headquartered",
    "gründer": "gründete gegründet",
    "gründerin": "gründete gegründet",
    "autor": "schrieb verfasste",
    "autorin": "schrieb verfasste",
    "erfinder": "erfand erfunden",
    "architekt": "entwarf entworfen baute",
    "architektin": "entwarf entworfen baute",
    "leiterin": "leitet",
    "leiter": "leitet",
    "bürgermeister": "",
    "bürgermeisterin": "",
    "hauptstadt": "",
}
"""Nouns for what stands in a relation to something, and words that tell the relation otherwise."""
_KINDS = (
    "person|man|woman|company|firm|organi[sz]ation|country|city|town|village|island|region|state|school|university|team|"
    "ship|group"
)
_END = (
    r"(?:(?:was|were|is|are)\s+)?(?:born|die|died|live|lived|living|located|based|situated|founded|established|from|study|studied|"
    r"work|worked|working|buried|educated|raised|trained|come from|came from|grow up|grew up|made|built|opened|sold|launched|"
    r"lie|belong to|retire|retired|geboren|gestorben|begraben|gegründet|studiert|gearbeitet)(?:\s+(?:in|at|to|for|on|by))?"
    r"|(?:have|has|own|use|employ|cost|receive|received|win|won|speak|play|sell|hold)(?:\s.+)?"
)
_INNER = (
    rf"\b(?:the|der|die|das|des|dem|den)\s+(?P<role>{'|'.join(_ROLES)})\s+(?:of|von|der|des)\s+(?P<of>.+?)",
    rf"\bthe\s+(?P<kind>{_KINDS})\s+(?:(?:in|at|on|for|to)\s+which|that|which|who|where|whose)\s+(?P<rest>.+?)",
)
_FORMS = tuple(re.compile(rf"(?P<inner>{inner})(?P<end>\s+(?:{_END}))?\s*[?.]*$", re.IGNORECASE) for inner in _INNER)
_SAYS_NOTHING = words("name names called title person it who what heißt name")
"""A question of nothing but these asks for the name itself: one step."""
_BEFORE_GERMAN = words("wurde wurden wird war ist in starb lebt lebte wohnt arbeitet arbeitete studiert studierte hat")
"""What a description may stand behind in German, as behind any small word in English: in "How long was Warsaw the capital of …" and
"Who became the king of …" it is what is told, not whom it is told of."""
_BY = frozenset({"by", "von"})
_LONGEST_CHARS = 300
"""A longer text is no question of this kind, and would cost time."""
_ARTICLES = words("die der das ein eine the a an")
_TITLES = words("mr mrs ms dr prof sir dame lord lady king queen president captain")


@dataclass(frozen=True)
class TwoSteps:
    """A question with a description in it."""

    text: str
    first: str
    """What asks for the name: "the founder of Acme"."""
    start: int
    """Where the description stands in `text`."""
    end: int
    relation: frozenset[str]
    """Stems of words that tell the description's relation."""

    def second(self, name: str) -> str:
        """The question with the name instead of the description."""
        return f"{self.text[: self.start]}{name}{self.text[self.end :]}"


@dataclass(frozen=True)
class Bridge:
    """What the first step has found."""

    name: str
    candidate: Candidate
    """The unit that tells it."""


def read_two_steps(question: str) -> TwoSteps | None:
    """None for a question of one step, and one whose form is not known."""
    for form in _FORMS if len(question) <= _LONGEST_CHARS else ():
        for match in _nested(form, question):
            start, end = match.span("inner")
            before = tokens(question[:start])[-1:]
            if not all(token.is_stopword or token.surface.lower() in _BEFORE_GERMAN for token in before):
                continue
            rest = [token for token in tokens(question[:start] + question[end:]) if not token.is_stopword]
            if all(token.surface.lower() in _SAYS_NOTHING for token in rest):
                continue
            role = (match.groupdict().get("role") or "").lower()
            relation = frozenset(map(stem, f"{role} {_ROLES.get(role, '')}".split()))
            return TwoSteps(question, match["inner"], start, end, relation)
    return None


def _nested(form: re.Pattern[str], question: str) -> list[re.Match[str]]:
    """The matches, the innermost first: "the mayor of the capital of Norway"."""
    found: list[re.Match[str]] = []
    at = 0
    while (match := form.search(question, at)) is not None:
        found.append(match)
        at = match.start() + 1
    return found[::-1]


def find_bridge(steps: TwoSteps, passages: Sequence[Passage]) -> Bridge | None:
    """The name that the description stands for. None when no unit tells it, or when one holds the whole question, which then is
    answered as it stands."""
    whole, first = read_question(steps.text), read_question(steps.first)
    if any(whole.stems <= each.covered for each in gather(whole, passages).candidates):
        return None
    subject = first.stems - steps.relation - {stem(word) for word in _KINDS.split("|")}
    found = [
        (each.coverage, bridge)
        for each in gather(first, passages).candidates
        if subject <= each.nearby and subject & each.stems and (bridge := _bridge(steps, each))
    ]
    return max(found, key=lambda each: each[0], default=(0.0, None))[1]


def _bridge(steps: TwoSteps, candidate: Candidate) -> Bridge | None:
    """The name in a unit that stands closest to a word of the relation, or else to one of the description."""
    found = tokens(candidate.unit.text)
    asked = frozenset(token.stem for token in tokens(steps.text))
    told = [place for place, token in enumerate(found) if token.stem in steps.relation]
    if steps.relation and not told:
        return None
    anchors = told or [place for place, token in enumerate(found) if token.stem in asked and not token.is_stopword]
    names = _names(candidate.unit.text, found, asked)
    if not names or not anchors:
        return None

    def distance(name: tuple[int, int]) -> tuple[bool, int]:
        start, end = name
        is_told = start > 0 and found[start - 1].surface.lower() in _BY and any(place < start for place in anchors)
        return not is_told, min(abs(start - place) if place < start else abs(place - end + 1) for place in anchors)

    start, end = min(names, key=distance)
    return Bridge(candidate.unit.text[found[start].start : found[end - 1].end], candidate)


def _names(text: str, found: Sequence[Token], asked: frozenset[str]) -> list[tuple[int, int]]:
    """Places of runs of capitalised words that the question does not have."""
    names: list[tuple[int, int]] = []
    for place, token in enumerate(found):
        if not token.surface[0].isupper() or token.surface.lower() in STOPWORDS | _ARTICLES or token.stem in asked:
            continue
        gap = text[found[place - 1].end : token.start] if place else ""
        if (
            names
            and names[-1][1] == place
            and gap in (" ", ". ", "-")
            and (gap != ". " or len(found[place - 1].surface) < 4)
        ):
            names[-1] = (names[-1][0], place + 1)
        else:
            names.append((place, place + 1))
    without_titles = ((start + (found[start].surface.lower() in _TITLES), end) for start, end in names)
    return [(start, end) for start, end in without_titles if start < end]
