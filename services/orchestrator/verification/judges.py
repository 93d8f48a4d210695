"""The port of judges of claims, and the last resort among them: the words."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kit.grounding import SUPPORT_THRESHOLD, Judge
from services.orchestrator.log.events import CheckedBy, Origin
from services.orchestrator.verification.verdicts import WORDS, Verdict, supporting


@dataclass(frozen=True)
class JudgedPassage:
    """A passage that may carry claims."""

    text: str
    document_name: str = ""
    heading_path: Sequence[str] = ()
    page: int = 0
    """1-based; 0 where there are none."""
    origin: Origin | None = None

    @property
    def heading(self) -> str:
        """What stands above it."""
        return " › ".join((self.document_name, *self.heading_path)).strip(" ›")


@dataclass(frozen=True)
class JudgedClaim:
    """A claim, and the positions of the passages that it is judged against, all together. At least one."""

    text: str
    passages: Sequence[int]
    whole: str = ""
    """The sentence that it is a part of."""


@dataclass(frozen=True)
class Judgement:
    """What a judge says of a claim."""

    verdict: Verdict
    checked_by: CheckedBy
    probability: float | None = None
    """Calibrated, 0 to 1; None where the judge gives none."""
    passage: int | None = None
    """Position of the passage that decides."""
    start: int = 0
    end: int = 0
    """The deciding characters of that passage; equal where the whole of it decides."""
    is_action: bool = False
    """Whether the judge takes it for a statement about what the assistant has done: then the run's effects decide."""


class ClaimJudge(Protocol):
    """Says what passages say to claims. Values go in and come out: an agent may use it as well as an answer."""

    @property
    def is_there(self) -> bool:
        """Whether it can be asked at all: a model judges where one is configured."""
        ...

    @property
    def is_quick(self) -> bool:
        """Whether it may be asked for each sentence by itself: otherwise it is asked for several at once."""
        ...

    @property
    def asks_model(self) -> bool:
        """Whether it spends the tokens of a run."""
        ...

    def judge(
        self, question: str, claims: Sequence[JudgedClaim], passages: Sequence[JudgedPassage]
    ) -> AsyncGenerator[tuple[int, Judgement], None]:
        """Position and judgement of each claim, as soon as it is there. A claim that the judge cannot judge is left out.

        Raises GroundworkError, possibly after some of them.
        """
        ...


@dataclass(frozen=True)
class _Source:
    number: int
    document_name: str
    heading_path: Sequence[str]
    text: str


@dataclass(frozen=True)
class WordJudge:
    """Judges by the words that claim and passage have in common. It is often wrong and needs nothing."""

    is_there: bool = field(default=True, init=False)
    is_quick: bool = field(default=True, init=False)
    asks_model: bool = field(default=False, init=False)

    async def judge(
        self, question: str, claims: Sequence[JudgedClaim], passages: Sequence[JudgedPassage]
    ) -> AsyncGenerator[tuple[int, Judgement], None]:
        sources = [
            _Source(number, each.document_name, each.heading_path, each.text) for number, each in enumerate(passages)
        ]
        words = Judge(sources, question)
        for position, claim in enumerate(claims):
            yield position, _by_words(words, claim)


def _by_words(words: Judge, claim: JudgedClaim) -> Judgement:
    alone = {number: words.score(claim.text, (number,)) for number in claim.passages}
    best = max(alone, key=lambda number: (alone[number], -number))
    is_carried = max(alone[best], words.score(claim.text, claim.passages)) >= SUPPORT_THRESHOLD
    start, end = words.closest_span(claim.text, best) if is_carried else (0, 0)
    verdict = supporting(WORDS) if is_carried else Verdict.NOT_FOUND
    return Judgement(verdict, WORDS, None, best if is_carried else None, start, end)
