"""What an answer says when it has nothing to say: that the documents do not say, or that they could not all be looked at. The first
is never claimed of a search that went without a part of itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from kit.language.data import ENGLISH, LANGUAGES, Language
from services.orchestrator.log.events import Degradation, SupportStatus
from services.orchestrator.without_model.wording import REFUSALS

REFUSAL = "The documents do not say."
"""The refusal in English, which prompts order a model to write."""
SEARCH_DOWN = (
    "Search is not available at the moment, so this question cannot be answered. Please ask again in a minute."
)
_UNSURE = LANGUAGES[ENGLISH].unsure.rstrip(".")
_ENGINES = {"dense": "search by meaning", "lexical": "search by words"}
"""The engines, as `Degradation.part` names them, in words of the user."""
_INCOMPLETE = "INDEX_INCOMPLETE"
"""Reason of an engine that answers, from an index that is still being filled."""
_LOOKED_EVERYWHERE = frozenset({"rerank", "cosines", "diversity", "neighbours"})
"""Parts of a search that order and complete what was found: without them the documents have still been searched."""


def is_refusal(text: str) -> bool:
    """Whether an answer is one of these: it answers nothing."""
    return text == SEARCH_DOWN or text.startswith((REFUSAL.rstrip("."), _UNSURE, *REFUSALS))


@dataclass(frozen=True)
class Refusal:
    """The text of an answer without citations, and how well it is founded."""

    text: str
    support_status: SupportStatus


def refusal(degraded: Sequence[Degradation], words: Language, *, is_near: bool) -> Refusal:
    """The refusal that is true after a search with these degradations; `is_near`: it found passages near the question, which are
    in a field of their own. That the documents do not say is claimed only where all were searched and nothing is near. A part that
    this version does not know counts as one that was not searched."""
    lacking = {each.part: each.reason for each in degraded if each.part not in _LOOKED_EVERYWHERE}
    if not lacking:
        return Refusal(words.unsure if is_near else words.refusal, SupportStatus.INSUFFICIENT)
    away = [part for part, reason in lacking.items() if reason != _INCOMPLETE]
    if _ENGINES.keys() <= set(away):
        return Refusal(SEARCH_DOWN, SupportStatus.UNAVAILABLE)
    clauses = [f"{_named(part)} did not answer" for part in away]
    clauses += [f"{_named(part)} has not all of them yet" for part in lacking if part not in away]
    text = f"{_UNSURE}: {' and '.join(clauses)}, so there may be more in the documents. Please ask again in a minute."
    return Refusal(text, SupportStatus.INSUFFICIENT)


def _named(part: str) -> str:
    return _ENGINES.get(part, f"a part of the search ({part})")
