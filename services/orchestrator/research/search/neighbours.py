"""The messages around a message that was found: in a chat one message seldom says the whole, so the one before it and the one after
it are read with it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from kit.errors import GroundworkError
from services.orchestrator.log.events import Degradation, Evidence, StageRank
from services.orchestrator.ports import Library
from services.orchestrator.research.models import RoundFound

STAGE = "neighbour"
"""How a passage came into the evidence that stands beside one that was found."""
_MOST_READ = 24
"""Messages of a round, the best of each search, whose neighbours are read in one call."""
_SHARE = 0.5
"""Score of a neighbour, as a share of the score of its message: what was found itself counts more."""


async def read_neighbours(library: Library, found: RoundFound) -> RoundFound:
    """What a round found, with the messages around its best messages. Says so where they cannot be read."""
    messages = {each.chunk_id for each in found.passages if _is_message(each)}
    by_place = chain.from_iterable(zip_longest(*(each.chunk_ids for each in found.lists)))
    best = [each for each in dict.fromkeys(by_place) if each in messages][:_MOST_READ]
    if not best:
        return found
    try:
        around = await library.around(best)
    except GroundworkError as error:
        loss = Degradation("neighbours", error.reason, "The messages around those that were found could not be read.")
        return replace(found, degraded=(*found.degraded, loss))
    passages = {each.chunk_id: each for each in found.passages}
    return replace(
        found,
        around={
            each: tuple(beside for beside in around.get(each, ()) if _is_same_chat(passages[each], beside))
            for each in best
        },
    )


def neighbours_of(
    chosen: Sequence[Evidence], around: Mapping[str, Sequence[Evidence]], without: frozenset[str], most: int
) -> list[Evidence]:
    """The neighbours of the chosen passages, of the best one first, each once, without those that were left out on purpose."""
    found: dict[str, Evidence] = {}
    seen = without | {each.chunk_id for each in chosen}
    for message in sorted(chosen, key=lambda each: -each.score):
        for beside in around.get(message.chunk_id, ()):
            if beside.chunk_id not in seen:
                score = _SHARE * message.score
                found.setdefault(beside.chunk_id, replace(beside, score=score, ranks=(StageRank(STAGE, 1, score),)))
    return list(found.values())[:most]


def _is_message(passage: Evidence) -> bool:
    return passage.origin is not None and bool(passage.origin.message_id)


def _is_same_chat(message: Evidence, beside: Evidence) -> bool:
    """An export of several chats is one document: its last message of one chat stands before the first of the next."""
    return (
        message.origin is not None
        and beside.origin is not None
        and _is_message(beside)
        and beside.origin.channel == message.origin.channel
    )
