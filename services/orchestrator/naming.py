"""The documents that a message names: by the name of a file, or as "the article on ducks"."""

import re
from collections.abc import Sequence

from kit.language.terms import tokens
from services.orchestrator.log.events import Evidence
from services.orchestrator.models import ReadableDocument

_FILE = re.compile(r"[\w.-]*\w\.[a-z]\w{1,4}\b|\w+_\w+", re.IGNORECASE)
_KINDS = (
    r"article|document|paper|report|file|essay|contract|text|book|page|manual|handbook|transcript|study|deck|spreadsheet"
    r"|artikel|dokument|bericht|aufsatz|vertrag|buch|handbuch|rapport|contrat|livre|artículo|documento|informe|contrato|libro"
)
_ABOUT = re.compile(
    rf"\b(?:the|this|that|my|our|der|den|das|dem|le|la|el)\s+(?:\w+\s+)?(?:{_KINDS})\s+"
    r"(?:on|about|of|called|named|titled|entitled|über|zu|sur|sobre|acerca de)\s+(?P<about>[^.,;:!?\n]{2,120})",
    re.IGNORECASE,
)
_EXTENSION = re.compile(r"\.\w{1,5}$")
_BEFORE_A_NAME = re.compile(r"the|this|that|my|our|of|in|from|der|den|das|dem|im|vom|le|la|du|el|del|il")
_LEAST_LETTERS = 4
_HALF = 0.5


def may_name(message: str) -> bool:
    """Whether the message has a word that looks like the name of a file."""
    return _FILE.search(message) is not None


def named_in(message: str, documents: Sequence[ReadableDocument]) -> Sequence[ReadableDocument]:
    """The documents whose names stand in the message, with or without the end of the file's name; none where it names none."""
    lowered, words = message.casefold(), _words(message)
    whole = [each for each in documents if _base(each.name).casefold() in lowered and "." in _base(each.name)]
    return whole or [each for each in documents if _has_stem(words, _words(_EXTENSION.sub("", _base(each.name))))]


def _has_stem(words: Sequence[str], stem: Sequence[str]) -> bool:
    """Whether the words of a name stand in the message in their order; a name of one word behind a word like "the"."""
    if sum(map(len, stem)) < _LEAST_LETTERS or all(word.isdigit() for word in stem):
        return False
    size = len(stem)
    places = [at for at in range(len(words) - size + 1) if list(words[at : at + size]) == list(stem)]
    if size > 1:
        return bool(places)
    return any(at > 0 and _BEFORE_A_NAME.fullmatch(words[at - 1]) is not None for at in places)


def described(message: str) -> str:
    """What the one document that the message speaks of is about ("ducks" of "the article on ducks"); else empty."""
    found = _ABOUT.search(message)
    return found["about"].strip() if found else ""


def most_found(evidence: Sequence[Evidence], about: str = "", least: float = _HALF) -> str:
    """Id of the document that most of the evidence is of, counting what ranks high for more; empty where none has this share of
    it. A document whose name or headings have a word of `about` goes first."""
    worth: dict[str, float] = {}
    wanted = {token.stem for token in tokens(about) if not token.is_stopword}
    for rank, each in enumerate(evidence, start=1):
        named = {token.stem for token in tokens(" ".join([_spoken(each.document_name), *each.heading_path[:1]]))}
        worth[each.document_id] = worth.get(each.document_id, 0.0) + (3 if wanted & named else 1) / rank
    best = max(worth, key=lambda document: worth[document], default="")
    return best if best and worth[best] >= least * sum(worth.values()) else ""


def _base(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _spoken(name: str) -> str:
    return re.sub(r"[_.-]", " ", name)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())
