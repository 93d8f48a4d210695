"""What each rule of answering without a model earns: questions that no rule was written from are answered with all rules, and with
all but one."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from evals.answering.replay import Asked, Collection, Model, folded, squad, xquad
from evals.tables import Table
from services.orchestrator.without_model import ExtractiveSettings, Passage, answer
from services.orchestrator.without_model.rules import RULES

_ALL = "all rules"
_NO_DEADLINE_S = 600.0
_COLUMNS = ("without the rule", "set", "questions", "right", "rule earns", "answerable right", "others refused")


@dataclass(frozen=True)
class Posed:
    """A question with the passages that its search found."""

    asked: Asked
    passages: Sequence[Passage]


@dataclass(frozen=True)
class Counted:
    """How many questions were answered rightly, of those with an answer and of the others."""

    right: Mapping[bool, int]
    of: Mapping[bool, int]

    @property
    def share(self) -> float:
        return sum(self.right.values()) / max(1, sum(self.of.values()))


@dataclass
class CachedScorer:
    """Scores of a model: each question and sentence once, whatever rules are on."""

    model: Model
    _known: dict[tuple[str, str], float] = field(default_factory=dict)

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        new = [each for each in sentences if (question, each) not in self._known]
        for sentence, score in zip(new, await self.model.score(question, new) if new else (), strict=True):
            self._known[question, sentence] = float(score)
        return [self._known[question, each] for each in sentences]


def ablation(model: Model, squad_file: Path | None, xquad_folders: Sequence[Path], count: int) -> str:
    """A table with a row for each rule and set. `count`: questions of each sort of SQuAD, and of each language of XQuAD."""
    posed: dict[str, list[Posed]] = {}
    if squad_file:
        posed["squad2, untouched half"] = _pose(
            each for each in squad(squad_file, count, model) if each[0].half == "test"
        )
    for folder in xquad_folders:
        posed[folder.name] = _pose(islice(xquad([folder], count, model), 2 * count))
    scorer = CachedScorer(model)
    settings = ExtractiveSettings(scorer_timeout_s=_NO_DEADLINE_S)
    whole = {name: asyncio.run(_count(questions, scorer, settings)) for name, questions in posed.items()}
    rows = [_row(_ALL, name, counted, counted) for name, counted in whole.items()]
    for rule in sorted(RULES, key=lambda each: each.name):
        without = replace(settings, rules=RULES - {rule})
        for name, questions in posed.items():
            rows.append(_row(rule.name, name, asyncio.run(_count(questions, scorer, without)), whole[name]))
    return f"## What each rule earns\n\n{Table(_COLUMNS, rows).render()}\n"


def _pose(asked: Iterable[tuple[Asked, Collection]]) -> list[Posed]:
    return [Posed(each, collection.search(each.question, each.without)) for each, collection in asked]


async def _count(posed: Sequence[Posed], scorer: CachedScorer, settings: ExtractiveSettings) -> Counted:
    right, of = {True: 0, False: 0}, {True: 0, False: 0}
    for each in posed:
        found = await answer(each.asked.question, each.passages, scorer, settings)
        text = folded(" ".join(sentence.text for sentence in found.sentences))
        has_answer = bool(each.asked.answers)
        of[has_answer] += 1
        holds = any(folded(expected) in text for expected in each.asked.answers)
        right[has_answer] += (found.answerable and holds) if has_answer else not found.answerable
    return Counted(right, of)


def _row(rule: str, name: str, counted: Counted, whole: Counted) -> tuple[str, ...]:
    shares = (counted.right[each] / counted.of[each] if counted.of[each] else 0.0 for each in (True, False))
    return (
        *(rule, name, str(sum(counted.of.values())), f"{counted.share:.3f}"),
        "" if rule == _ALL else f"{whole.share - counted.share:+.3f}",
        *(f"{each:.3f}" for each in shares),
    )
