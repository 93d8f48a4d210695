"""What is done with a turn once it is answered: its facts are learnt, and its messages and facts are put into the index."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from kit.errors import GroundworkError
from services.memory.facts.facts import FACT, Facts, item_of
from services.memory.facts.learning import Learner, Learnt
from services.memory.facts.models import FactStatus, Statement, Turn
from services.memory.facts.own_words import own_words
from services.memory.facts.ports import MemoryIndex, MemoryItem
from services.memory.facts.searching import MESSAGE
from services.memory.facts.statements import STATEMENTS_MAX, read_statements
from services.memory.models import Message, Owner, Role
from services.memory.ports import ThreadMessages

_NEAREST = 5


class Turns:
    """Learns from turns, once each."""

    def __init__(
        self,
        facts: Facts,
        learner: Learner,
        index: MemoryIndex,
        threads: ThreadMessages,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._facts = facts
        self._learner = learner
        self._index = index
        self._threads = threads
        self._now = now

    async def learn(self, owner: Owner, turn: Turn, read: Sequence[Statement] | None) -> Learnt:
        """Learns from the turn. `read` is what a model has read out of it; None: rules do. Raises Unavailable, and is then to be
        repeated."""
        if not self._facts.enabled:
            return Learnt()
        statements = read_statements(turn.text, turn.at) if read is None else carried_by(turn.text, read)
        learnt = await self._learner.learn(owner, turn, statements, await self._nearness(owner, statements))
        if learnt.superseded:
            await self._index.remove(owner, learnt.superseded)
        now = self._now()
        items = [item_of(fact) for fact in learnt.added if fact.status(now) is FactStatus.ACTIVE]
        items += await self._messages(owner, turn)
        if items:
            await self._index.put(owner, items)
        return learnt

    async def _messages(self, owner: Owner, turn: Turn) -> list[MemoryItem]:
        """What was said in the turn, as its thread has it."""
        if not turn.thread_id:
            return []
        messages = await self._threads.of_run(owner, turn.thread_id, turn.run_id)
        return [
            MemoryItem(f"{turn.thread_id}/{each.message_id}", _written(each), MESSAGE, turn.thread_id, each.at)
            for each in messages
            if each.text and not each.forgotten
        ]

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


def _written(message: Message) -> str:
    speaker = "User" if message.role is Role.USER else "Assistant"
    return f"{speaker}: {message.text}"
