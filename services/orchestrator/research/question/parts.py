"""The parts of a question: what an answer must know. "Where was the director of The Circus Cyclone born?" needs the film, its
director, and where that person was born; a comparison needs so of both sides."""

from functools import cache

from kit.language.terms import tokens, words
from kit.queries.planning import clauses
from services.orchestrator.research.models import PartKind, QuestionPart
from services.orchestrator.research.question.names import Name, find_names, stems_of
from services.orchestrator.research.question.relations import relation_words, roles_in

MOST_SUBJECTS = 4
_COMPARES = words(
    "first last earlier later older younger oldest youngest longer shorter same both other one different share more less most "
    "least than either neither still now today found find show say said year time"
)
"""Words of a comparison, or of no passage in particular: no passage needs to have them."""


def find_subjects(question: str) -> list[Name]:
    """The names that the question is about, in order, each once."""
    found: dict[frozenset[str], Name] = {}
    for name in find_names(question, is_question=True):
        found.setdefault(name.stems, name)
    return list(found.values())[:MOST_SUBJECTS]


def split_question(question: str) -> list[QuestionPart]:
    """The parts of a question, in the order in which they are asked; at least one where the question has a word of content."""
    parts: list[QuestionPart] = []
    for clause in clauses(question) or [question]:
        parts += _parts_of(clause)
    unique = {(part.kind, part.text): part for part in parts}
    return list(unique.values())


def _parts_of(clause: str) -> list[QuestionPart]:
    subjects, roles = find_subjects(clause), roles_in(clause)
    of_subjects = frozenset(stem for each in subjects for stem in each.stems)
    of_roles = frozenset(stem for word in roles.values() for stem in stems_of(word)) | roles.keys()
    asked = stems_of(clause) - of_subjects - of_roles - _stems(_COMPARES)
    if not subjects:
        return [QuestionPart(clause, PartKind.ASKED, None, (asked | roles.keys()) or stems_of(clause))]
    relation = " and ".join(roles.values())
    parts = [QuestionPart(each.text, PartKind.SUBJECT, each, each.stems) for each in subjects]
    if roles:
        relations = relation_words(roles)
        parts += [QuestionPart(f"{relation}: {each.text}", PartKind.BRIDGE, each, relations) for each in subjects]
    if asked:
        parts += [QuestionPart(_asked_of(clause, each), PartKind.ASKED, each, asked, bool(roles)) for each in subjects]
    return parts


def _asked_of(clause: str, subject: Name) -> str:
    """The words that ask, behind their subject."""
    rest = clause[: subject.start] + clause[subject.end :]
    asking = [token.surface for token in tokens(rest) if not token.is_stopword and not token.is_name]
    return f"{' '.join(asking)}: {subject.text}"


@cache
def _stems(listed: frozenset[str]) -> frozenset[str]:
    return frozenset(token.stem for word in listed for token in tokens(word))
