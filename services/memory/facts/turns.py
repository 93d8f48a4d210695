"""What is done with a turn once it is answered: its facts are learnt, and its messages and facts are put into the index."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kit.errors import GroundworkError
from services.memory.facts.facts import FACT, Facts
from services.memory.facts.indexing import index_current
from services.memory.facts.learning import Learner, Learnt
from services.memory.facts.models import Statement, Turn
from services.memory.facts.own_words import own_words
from services.memory.facts.ports import MemoryIndex, MemoryItem
from services.memory.facts.statements import STATEMENTS_MAX, read_statements
from services.memory.message_items import message_items
from services.memory.models import Owner
from services.memory.ports import ThreadMessages

_NEAREST = 5
_LATEST_MESSAGES = 1_000
"""Of a thread, among which those of a turn are."""


class Turns:
    """Learns from turns, once each."""

    def __init__(
        self,
        facts: Facts,
        learner: Learner,
        index: MemoryIndex,
        threads: ThreadMessages,
    ) -> None:
        self._facts = facts
        self._learner = learner
        self._index = index
        self._threads = threads

    async def learn(self, owner: Owner, turn: Turn, read: Sequence[Statement] | None) -> Learnt:
        """Learns from the turn. `read` is what a model has read out of it; None: rules do. Raises Unavailable, and is then to be
        repeated."""
        if not self._facts.enabled:
            return Learnt()
        statements = read_statements(turn.text, turn.at) if read is None else carried_by(turn.text, read)
        learnt = await self._learner.learn(owner, turn, statements, await self._nearness(owner, statements))
        if learnt.superseded:
            await self._index.remove(owner, learnt.superseded)
        if added := {fact.fact_id for fact in learnt.added}:
            await index_current(self._index, owner, partial(self._facts.items, owner, added))
        await index_current(self._index, owner, partial(self._messages, owner, turn))
        return learnt

    async def _messages(self, owner: Owner, turn: Turn) -> list[MemoryItem]:
        """What was said in the turn, as its thread has it."""
        if not turn.thread_id:
            return []
        appended = await self._threads.as_appended(owner, turn.thread_id, _LATEST_MESSAGES)
        return message_items(turn.thread_id, appended, lambda message: message.run_id == turn.run_id)

    async def _nearness(self, owner: Owner, statements: Sequence[Statement]) -> dict[tuple[int, str], float]:
        """How near each statement is to what is known; nothing where the index does not answer, and words alone decide."""
        near: dict[tuple[int, str], float] = {}
        try:
            for place, statement in enumerate(statements):
                found = await self._index.search(owner, statement.text, _NEAREST, FACT)
                near |= {(place, item.item_id): item.cosine or 0.0 for item in found.items}
        except GroundworkError:
            return {}
        return near


def carried_by(message: str, read: Sequence[Statement]) -> list[Statement]:
    """Those that the writer's own words carry: a model names the words, and they must stand in the message outside of what others
    said."""
    own = _plain(own_words(message))
    carried = [each for each in read if each.text and len(_plain(each.said)) >= 3 and _plain(each.said) in own]
    return [replace(each, said=" ".join(each.said.split())) for each in carried[:STATEMENTS_MAX]]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
