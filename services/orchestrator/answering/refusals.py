"""What an answer says when it has nothing to say: that the documents do not say, or that they could not all be looked at. The first
is never claimed of a search that went without a part of itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from kit.language.data import Language
from services.orchestrator.log.events import Degradation, SupportStatus
from services.orchestrator.without_model.wording import REFUSALS

REFUSAL = "The documents do not say."
"""In English: what a model is told to say."""
SEARCH_DOWN = (
    "Search is not available at the moment, so this question cannot be answered. Please ask again in a minute."
)
_ENGINES = {"dense": "search by meaning", "lexical": "search by words"}
"""The engines, as `Degradation.part` names them, in words of the user."""
_INCOMPLETE = "INDEX_INCOMPLETE"
"""Reason of an engine that answers, from an index that is still being filled."""
_LOOKED_EVERYWHERE = frozenset({"rerank", "cosines", "diversity", "neighbours"})
"""Parts of a search that order and complete what was found: without them the documents have still been searched."""


def is_refusal(text: str) -> bool:
    """Whether an answer is one of these: it answers nothing."""
    return text == SEARCH_DOWN or text.startswith((REFUSAL.rstrip("."), *REFUSALS))


@dataclass(frozen=True)
class Refusal:
    """The text of an answer without citations, and how well it is founded."""

    text: str
    support_status: SupportStatus


def refusal(degraded: Sequence[Degradation], words: Language) -> Refusal:
    """The refusal that is true after a search with these degradations. It is whole without the closest passages, which are in a
    field of their own: who shows them introduces them. A part that this version does not know counts as one that was not
    searched: of that it tells in English."""
    lacking = {each.part: each.reason for each in degraded if each.part not in _LOOKED_EVERYWHERE}
    if not lacking:
        return Refusal(words.refusal, SupportStatus.INSUFFICIENT)
    away = [part for part, reason in lacking.items() if reason != _INCOMPLETE]
    if _ENGINES.keys() <= set(away):
        return Refusal(SEARCH_DOWN, SupportStatus.UNAVAILABLE)
    clauses = [f"{_named(part)} did not answer" for part in away]
    clauses += [f"{_named(part)} has not all of them yet" for part in lacking if part not in away]
    text = (
        f"The documents do not say, as far as they could be searched: {' and '.join(clauses)}, so there may be more in them. "
        "Please ask again in a minute."
    )
    return Refusal(text, SupportStatus.INSUFFICIENT)


def _named(part: str) -> str:
    return _ENGINES.get(part, f"a part of the search ({part})")
