"""What remembering needs from outside."""

from collections.abc import Sequence
from typing import Protocol

from services.orchestrator.remembering.models import FactChange, KnownFact, Learnt, LearntTurn, Recalled


class Facts(Protocol):
    """The facts of the run's principal. Raises Unavailable."""

    async def recall(self, message: str, limit: int) -> Recalled:
        """What an answer to the message may go by."""
        ...

    async def may_learn(self) -> bool:
        """Whether the person has not paused learning, and the operator lets it be."""
        ...

    async def nearest(self, text: str, limit: int) -> Sequence[KnownFact]:
        """The facts that fit a text best."""
        ...

    async def learn(self, turn: LearntTurn, changes: Sequence[FactChange] | None) -> Learnt:
        """Learns from the turn, once. Without `changes` rules read it."""
        ...

    async def keep_summary(self, summary: str, known_version: int) -> None:
        """Keeps a summary, unless what is known has changed since."""
        ...


class TurnQueue(Protocol):
    """Turns that are to be learnt from."""

    async def add(self, turn: LearntTurn) -> None:
        """The turn is on disk when this returns, and will be learnt from. Harmless when repeated. Raises Unavailable."""
        ...
