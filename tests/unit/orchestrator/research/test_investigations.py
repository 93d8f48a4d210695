"""A thorough run that looks into several parts of its question side by side."""

import pytest

from services.orchestrator.log.events import (
    Answer,
    Budgets,
    Coverage,
    CoveragePart,
    PartState,
    Payload,
    Plan,
    Retrieval,
)
from services.orchestrator.research.models import Effort
from services.orchestrator.research.question.parts import split_question
from services.orchestrator.research.search.investigations import MOST, share_out
from services.orchestrator.research.search.rounds import LIMITS, EffortLimits
from tests.unit.orchestrator.cutting import DyingLog, Worker, cut_and_continued, cuts, shown_by, worked
from tests.unit.orchestrator.research.corpus import FILMS, Corpus
from tests.unit.orchestrator.research.test_research import Stage, _stable, answer_of, only

QUESTION = "Where was the director of The Iron Harbour born, and where was the director of Quiet Orchard born?"
NOTES = {f"Note {n}": f"Of another director it is told by note {n} that they were born in town {n}." for n in range(14)}
"""They fill the places of a search for the question itself, so that a first round does not find the directors."""


def stage() -> Stage:
    return Stage(Corpus({**NOTES, **FILMS}))


def of_investigations(payloads: list[Payload], kind: type[Plan] | type[Retrieval] | type[Coverage]) -> list[str]:
    return [each.investigation for each in payloads if isinstance(each, kind) and each.investigation]


async def test_each_subject_is_looked_into_by_itself_and_what_is_found_is_joined() -> None:
    payloads = await stage().run(QUESTION, effort="high")
    assert set(of_investigations(payloads, Plan)) == {"The Iron Harbour", "Quiet Orchard"}
    joined = [each for each in payloads if isinstance(each, Retrieval)][-1]
    assert (joined.investigation, joined.searches) == ("", 0)
    names = {each.document_name for each in joined.evidence}
    assert {"Edda Lindqvist.md", "Tom Barrow.md"} <= names
    numbers = [each.number for each in joined.evidence]
    assert numbers == sorted(set(numbers))
    last = [each for each in payloads if isinstance(each, Coverage)][-1]
    assert last.investigation == ""
    text = answer_of(payloads).text
    assert "Uppsala" in text
    assert "York" in text


async def test_passage_that_an_investigation_found_has_no_number_before_they_are_joined() -> None:
    payloads = await stage().run(QUESTION, effort="high")
    first = next(each for each in payloads if isinstance(each, Retrieval))
    known = {each.chunk_id: each.number for each in first.evidence}
    for each in payloads:
        if isinstance(each, Retrieval) and each.investigation:
            assert all(passage.number == known.get(passage.chunk_id, 0) for passage in each.evidence)


async def test_one_subject_needs_no_investigations() -> None:
    payloads = await Stage().run("Where was the director of The Iron Harbour born?", effort="high")
    assert not of_investigations(payloads, Plan)


@pytest.mark.parametrize("budget", [3, 5, 7, 9])
async def test_investigations_keep_to_the_budget_of_searches(budget: int) -> None:
    on = stage()
    payloads = await on.run(QUESTION, effort="high", budgets=Budgets(tool_calls=budget))
    assert len(on.corpus.queries) <= budget
    assert only(payloads, Answer)


async def test_run_with_investigations_cut_off_after_any_event_ends_the_same() -> None:
    budgets = Budgets(tool_calls=7)

    def work() -> Worker:
        return stage().worker(QUESTION, budgets, effort="high")

    whole = await worked(DyingLog(), work())
    assert any(event.step.startswith("sub2/") for event in whole)
    side_by_side = [event.seq for event in whole if event.step.startswith(("sub", "joined"))]
    for cut in (each for each in cuts(whole) if each.seq in side_by_side):
        events = await cut_and_continued(DyingLog(), [work(), work()], cut)
        # What stands side by side may be told in another order.
        assert sorted(map(repr, _stable(events))) == sorted(map(repr, _stable(whole))), str(cut)
        assert shown_by(events) == shown_by(whole), str(cut)
        steps = [event.step for event in events if event.step.endswith("/retrieve")]
        assert len(steps) == len(set(steps)), str(cut)


def lacking(question: str) -> Coverage:
    parts = split_question(question)
    return Coverage(tuple(CoveragePart(each.text, each.kind.value, PartState.MISSING, 0.0) for each in parts), 0.0)


def test_searches_that_are_left_are_shared_out() -> None:
    question = "Who is older, Ann Lee, Bob Ray, Cy Poe or Dan Fox?"
    limits = LIMITS[Effort.HIGH]
    shared = share_out(split_question(question), lacking(question), limits, 6)
    assert len(shared) == MOST
    assert sum(each.limits.searches - 6 for each in shared) <= limits.searches - 6
    assert len({each.limits.searches for each in shared}) == 1
    assert [each.rewords for each in shared] == [True, False, False]
    assert share_out(split_question(question), lacking(question), EffortLimits(4, 7, 8), 6) == []
