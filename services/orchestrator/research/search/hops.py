"""The second hop: names that found passages mention and the question does not. Each is searched for by itself: "Where was the
director of The Circus Cyclone born?" is answered by a passage about somebody whom only the first passage names."""

from collections.abc import Sequence
from dataclasses import dataclass

from kit.language.terms import tokens
from services.orchestrator.research.question.names import Name, distance, find_names, stems_of
from services.orchestrator.research.question.relations import relation_words, roles_in

FAR_CHARS = 10_000


@dataclass(frozen=True)
class Hop:
    """A name to search for."""

    name: str
    distance_chars: int
    """To the nearest word of the question's relation; FAR_CHARS where the passage has none."""


def find_hops(question: str, subjects: Sequence[Name], text: str, title: str = "") -> list[Hop]:
    """The names of one passage that are new, those nearest to the question's relation first; each once."""
    asked = stems_of(question)
    of_subjects = frozenset(stem for subject in subjects for stem in subject.stems)
    relation = relation_words(roles_in(question) or asked - of_subjects)
    places = [(token.start, token.end) for token in tokens(text) if token.stem in relation]
    known = asked | stems_of(title)
    found: dict[frozenset[str], Hop] = {}
    for name in find_names(text):
        if not name.is_sure or name.stems <= known or _is_adjective(text, name):
            continue
        away = min((_away(name, place) for place in places), default=FAR_CHARS)
        hop = Hop(name.text, away)
        known_hop = found.get(name.stems)
        if known_hop is None or away < known_hop.distance_chars:
            found[name.stems] = hop
    whole = [stems for stems in found if not any(stems < other for other in found)]
    return sorted((found[stems] for stems in whole), key=lambda hop: hop.distance_chars)


def _away(name: Name, place: tuple[int, int]) -> int:
    """Characters from a word of the relation to the name; twice as many where the name comes first ("directed by …")."""
    chars = distance((name.start, name.end), place)
    return chars if name.start >= place[1] else 2 * chars


def _is_adjective(text: str, name: Name) -> bool:
    """Whether a single word before a lower-case noun only says of what kind it is: "an American film"."""
    if " " in name.text:
        return False
    return name.text.endswith(("an", "ian", "ish", "ese", "ch")) and text[name.end : name.end + 2].strip()[:1].islower()
