"""Sources that disagree in words of their own: a model names both sides, and the answer says them with their sources and dates."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kit.llm import ModelUnavailable
from services.orchestrator.log.events import Evidence, PartState, Thinking
from services.orchestrator.research.disagreements import compare_by_model
from tests.unit.orchestrator.cutting import DyingLog, cut_and_continued, cuts, shown_by, told, worked
from tests.unit.orchestrator.fakes import FakeModel
from tests.unit.orchestrator.research.corpus import Corpus
from tests.unit.orchestrator.research.test_planner import Correcting
from tests.unit.orchestrator.research.test_research import PLANNED, Stage, answer_of

QUESTION = "How many beds does the Leith hospital have?"
BEDS: Mapping[str, str] = {
    "report 2021": "In its last year the Leith hospital ran 120 beds, most of them in the east wing.",
    "press 2024": "Patients find 95 beds when they come to the infirmary of Leith.",
    "kitchen": "The kitchen of the Leith hospital cooks for 300 guests.",
}
WRITTEN = ["In its last year the Leith hospital ran 120 beds. [1]"]


def sides(*said: tuple[int, str]) -> str:
    return json.dumps({"sides": [{"passage": passage, "value": value} for passage, value in said]})


def stage(compared: str) -> Stage:
    return Stage(Corpus(BEDS), model=FakeModel(WRITTEN), planner=Correcting(PLANNED, *[compared] * 2))


def evidence() -> list[Evidence]:
    corpus = Corpus(BEDS)
    return [corpus.evidence(title, number) for number, title in enumerate(BEDS, 1)]


async def test_both_sides_are_said_with_sources_and_dates() -> None:
    answer = answer_of(await stage(sides((1, "120 beds"), (2, "95 beds"))).run(QUESTION, effort="medium"))
    assert answer.ending == "conflict"
    (conflict,) = answer.conflicts
    assert (conflict.found_by, len(conflict.sides)) == ("model", 2)
    cited = {each.number: each for each in answer.citations}
    for side in conflict.sides:
        assert f"{side.value} ({side.date}) [{side.citation}]" in answer.text
        assert cited[side.citation].text[side.start : side.end] == side.value
    assert [(side.value, side.date, side.document_name) for side in conflict.sides] == [
        ("95 beds", "2024", "press 2024.md"),
        ("120 beds", "2021", "report 2021.md"),
    ]
    assert answer.coverage is not None
    assert PartState.CONFLICTING in {part.state for part in answer.coverage.parts}


@pytest.mark.parametrize(
    "said",
    [
        sides(),
        sides((1, "120 beds")),
        sides((1, "120 beds"), (1, "east wing")),
        sides((1, "120 beds"), (2, "120 beds")),
        sides((1, "120 beds"), (2, "94 beds"), (9, "95 beds")),
        sides((1, "120 beds"), (2, "5 beds")),
    ],
    ids=["none", "one", "one source", "same", "made up", "part of a word"],
)
async def test_what_no_two_sources_say_is_no_conflict(said: str) -> None:
    assert await compare_by_model(FakeModel([said]), QUESTION, evidence()) == []


async def test_one_document_is_not_compared_with_itself() -> None:
    model = FakeModel([sides()])
    assert await compare_by_model(model, QUESTION, evidence()[:1]) == []
    assert model.requests == []


async def test_passages_are_fenced_and_fit_a_small_model() -> None:
    model = FakeModel([sides()], context_tokens=2048)
    long = [Evidence(n, f"c{n}", f"d{n}", f"{n}.md", f"{n} beds. " * 150) for n in range(1, 10)]
    await compare_by_model(model, QUESTION, long)
    asked = model.prompts[0][-1].content
    assert len(asked) < 2_000
    assert "\n> 1 beds. " in asked


@pytest.mark.parametrize("said", ["no JSON", ModelUnavailable("away")])
async def test_answer_stands_without_a_comparison_and_says_so(said: str | Exception) -> None:
    class Failing(Correcting):
        async def complete(self, request):  # type: ignore[no-untyped-def]
            if not self.said and isinstance(said, Exception):
                raise said
            async for delta in super().complete(request):
                yield delta

    planner = Failing(PLANNED, *([said] * 2 if isinstance(said, str) else []))
    payloads = await Stage(Corpus(BEDS), model=FakeModel(WRITTEN), planner=planner).run(QUESTION, effort="medium")
    reasons = [each.degraded.reason for each in payloads if isinstance(each, Thinking) and each.degraded]
    assert len(reasons) == 1
    assert "120 beds" in answer_of(payloads).text


async def test_run_cut_off_after_any_event_says_the_conflict_once() -> None:
    def anew() -> Stage:
        def scripted(request: Any) -> str:
            return PLANNED if "queries" in request.schema["properties"] else sides((1, "120 beds"), (2, "95 beds"))

        class BySchema(FakeModel):
            async def complete(self, request):  # type: ignore[no-untyped-def]
                self.pieces = [scripted(request)]
                async for delta in super().complete(request):
                    yield delta

        return Stage(Corpus(BEDS), model=FakeModel(WRITTEN), planner=BySchema([]))

    whole = await worked(DyingLog(), anew().worker(QUESTION, effort="medium"))
    assert any(event.step == "conflict" for event in whole)
    for cut in cuts(whole):
        workers = [anew().worker(QUESTION, effort="medium") for _ in range(2)]
        events = await cut_and_continued(DyingLog(), workers, cut)
        assert _stable(events) == _stable(whole), str(cut)
        assert shown_by(events) == shown_by(whole), str(cut)


def _stable(events: Sequence[Any]) -> list[Any]:
    return [(step, payload) for step, payload in told(events) if type(payload).__name__ != "Usage"]
