"""What is remembered of a person, as runs use it, and the turns that are learnt from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.orchestrator.log.events import Degradation, Thinking


@dataclass(frozen=True)
class Hint:
    """A fact, or a passage of a note, that has to do with the message in hand."""

    fact_id: str
    text: str
    said_on: str = ""
    """The day on which it was said, ISO 8601."""
    document_id: str = ""
    """The document of a note, which has no fact id."""
    note: str = ""
    """The note's name."""

    @property
    def shown(self) -> str:
        """The hint as people and models read it."""
        return f"{self.text} (from the note {self.note})" if self.document_id else self.text


@dataclass(frozen=True)
class Recalled:
    """What an answer may go by."""

    summary: str = ""
    hints: Sequence[Hint] = ()
    degraded: Sequence[Degradation] = ()


@dataclass(frozen=True)
class Hints:
    """The hints of a run, as its log keeps them. The summary is not among them: it is made anew from what is known."""

    hints: Sequence[Hint] = ()

    def event(self) -> Thinking:
        """Tells of them."""
        facts = "; ".join(
            f"{hint.text} (you said so on {hint.said_on})" if hint.said_on else hint.shown for hint in self.hints
        )
        return Thinking("memory", f"Remembered of you: {facts}.")


@dataclass(frozen=True)
class LearntTurn:
    """What a person said in a run, on its way to be learnt from."""

    run_id: str
    thread_id: str
    text: str
    at: datetime
    by_model: bool = True
    """Whether the installation's model may read it."""
    local_models_only: bool = False
    """Whether that must be a local model."""


@dataclass(frozen=True)
class KnownFact:
    """A fact that holds."""

    fact_id: str
    text: str
    kind: str = ""


@dataclass(frozen=True)
class FactChange:
    """What a model has read out of a person's words."""

    change: str
    """`add`, `update` or `supersede`."""
    text: str
    kind: str
    said: str
    fact_id: str = ""
    valid_to: datetime | None = None


@dataclass(frozen=True)
class Learnt:
    """What came of a turn."""

    summary_is_due: bool = False
    known: Sequence[KnownFact] = ()
    known_version: int = 0
