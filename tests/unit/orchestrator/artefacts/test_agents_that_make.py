"""The agents quiz and visualisation over a run: with a model, with one that fails, and without."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kit.llm import Request
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import (
    Answer,
    Artefact,
    Evidence,
    Payload,
    Retrieval,
    RunEvent,
    RunMode,
    RunStatus,
    Thinking,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, RunRequest, Turn
from services.orchestrator.quizzes.showing import questions_in
from tests.unit.orchestrator.artefacts.passages import BUILDINGS, ROWS, passage
from tests.unit.orchestrator.chatting import Reply, ScriptedReplies
from tests.unit.orchestrator.cutting import AT, KEY, DyingLog, cut_and_continued, cuts, told, worked
from tests.unit.orchestrator.fakes import FakeLibrary, FakeMemory, FakeScorer, FakeSearcher
from tests.unit.orchestrator.serving import document_modes, mode_services

TABLE = (passage(1, ROWS),)
QUESTION = {
    "kind": "multiple_choice",
    "question": "When was the tower built?",
    "options": ["1889", "1932", "1936", "1914"],
    "answer": "1889",
    "quote": "The tower was built in 1889 by Gustave Eiffel",
    "source": 1,
    "explanation": "It was built in 1889. [1]",
}
QUIZ = {"questions": [QUESTION]}
CHART = {
    "title": "Heights",
    "unit": "metres",
    "points": [
        {"series": "", "label": "tower", "value": 324, "source": 1},
        {"series": "", "label": "dam", "value": 221, "source": 3},
        {"series": "", "label": "bridge", "value": 999, "source": 2},
    ],
}


class Said(ScriptedReplies):
    """A model that says its replies one after the other."""

    def _reply(self, request: Request) -> Reply:
        return self.replies[min(len(self.requests), len(self.replies)) - 1]


class Asking:
    """A message to an agent."""

    def __init__(
        self,
        agent: str,
        message: str,
        *,
        evidence: Sequence[Evidence] = BUILDINGS,
        says: Sequence[Any] = (),
        history: Sequence[Turn] = (),
    ) -> None:
        self.model = Said([each if isinstance(each, str) else json.dumps(each) for each in says])
        self.searcher = FakeSearcher(Retrieval(tuple(evidence), strategy="hybrid"))
        self._has_model = bool(says)
        self.library = FakeLibrary(
            {each.document_id: [one for one in evidence if one.document_id == each.document_id] for each in evidence}
        )
        self._record = RunRecord(
            KEY,
            "ann",
            RunRequest(RunMode.GROUNDED, message, ("default",), thread_id="0" * 12, agent=agent),
            RunStatus.RUNNING,
            AT,
        )
        self._memory = FakeMemory(history)

    async def work(self, journal: Journal) -> RunStatus:
        drafter = Drafter(FakeScorer(), Generator(self.model) if self._has_model else None)
        services = mode_services(drafter, searcher=self.searcher, memory=self._memory, library=self.library)
        return await document_modes(services).run(self._record, journal)

    async def events(self) -> list[RunEvent]:
        return await worked(DyingLog(), self.work)

    async def made(self) -> tuple[Artefact, Answer]:
        payloads = [event.payload for event in await self.events()]
        (artefact,) = [each for each in payloads if isinstance(each, Artefact)]
        (answer,) = [each for each in payloads if isinstance(each, Answer)]
        assert answer.artefacts == (artefact,)
        return artefact, answer


def cited(artefact: Artefact) -> dict[str, str]:
    """The words that each part of an artefact cites."""
    words = {each.number: each.text[each.quote_start : each.quote_end] for each in artefact.citations}
    return {item.path: words[item.citations[0]] for item in artefact.items}


async def test_quiz_without_a_model() -> None:
    artefact, answer = await Asking("quiz", "Make a quiz with 4 multiple choice questions").made()
    assert artefact.body is not None
    questions = artefact.body["questions"]
    assert [each["id"] for each in questions] == ["q1", "q2", "q3", "q4"]
    for number, question in enumerate(questions):
        assert question["question"].replace("____", question["answer"]) == cited(artefact)[f"/questions/{number}"]
    assert questions_in(answer.text) == [each["question"] for each in questions]
    assert (answer.method, answer.support_status) == ("extractive", None)
    assert "A) " in artefact.outline
    assert questions[0]["explanation"] not in artefact.outline


async def test_quiz_of_a_model_is_checked_and_filled_up_by_rules() -> None:
    wrong = QUESTION | {"question": "Who painted it?", "quote": "Vincent painted it", "answer": "Vincent"}
    asking = Asking("quiz", "Make a quiz of 3 questions", says=[{"questions": [QUESTION, wrong]}])
    artefact, answer = await asking.made()
    assert artefact.body is not None
    assert artefact.body["questions"][0]["question"] == "When was the tower built?"
    assert len(artefact.body["questions"]) == 3
    assert answer.method == "model"
    assert asking.model.requests[0].schema is not None
    assert "Vincent" not in json.dumps(artefact.body)


async def test_quiz_of_a_model_that_breaks_the_schema_is_sent_back_once() -> None:
    asking = Asking(
        "quiz", "One question", says=['{"questions": [{}]}', f"Here you are:\n```json\n{json.dumps(QUIZ)}\n```"]
    )
    artefact, _ = await asking.made()
    assert artefact.body is not None
    assert artefact.body["questions"][0]["question"] == "When was the tower built?"
    assert "required property" in asking.model.requests[1].messages[-1].content


async def test_quiz_of_a_model_that_writes_no_object_is_made_by_rules_and_said_so() -> None:
    asking = Asking("quiz", "Make a quiz of 2 questions", says=["I would rather not."])
    payloads: list[Payload] = [event.payload for event in await asking.events()]
    assert [each.degraded.reason for each in payloads if isinstance(each, Thinking) and each.degraded] == [
        "LLM_NO_BLOCK"
    ]
    (artefact,) = [each for each in payloads if isinstance(each, Artefact)]
    assert artefact.body is not None
    assert len(artefact.body["questions"]) == 2


async def test_one_more_asks_something_else_about_the_same() -> None:
    _, first = await Asking("quiz", "A quiz of 4 questions about buildings").made()
    history = [Turn("user", "A quiz of 4 questions about buildings"), Turn("assistant", first.text)]
    asking = Asking("quiz", "one more", history=history)
    artefact, more = await asking.made()
    assert asking.searcher.queries[0].queries == ["buildings"]
    assert artefact.title == "Quiz: buildings"
    assert len(questions_in(more.text)) == 1
    assert not set(questions_in(more.text)) & set(questions_in(first.text))


async def test_chart_without_a_model() -> None:
    artefact, answer = await Asking("visualisation", "Bar chart of revenue 2023", evidence=TABLE).made()
    assert artefact.kind == "chart"
    assert set(cited(artefact).values()) == set(ROWS.splitlines())
    assert answer.text.startswith("- Revenue 2022, North: 512 [1]") or answer.text.startswith(
        "- Revenue 2023, North: 530 [1]"
    )


async def test_chart_of_a_model_keeps_what_stands_in_the_passages() -> None:
    payloads = [event.payload for event in await Asking("visualisation", "Bar chart of heights", says=[CHART]).events()]
    (artefact,) = [each for each in payloads if isinstance(each, Artefact)]
    assert artefact.body is not None
    assert artefact.body["labels"] == ["tower", "dam"]
    assert artefact.body["left_out"] == ["bridge: 999 stands in no passage with these words."]
    assert "Left out: bridge: 999" in " ".join(each.text for each in payloads if isinstance(each, Thinking))


async def test_model_chooses_the_form_where_the_message_does_not() -> None:
    artefact, _ = await Asking("visualisation", "Visualise the heights", says=[{"form": "bar"}, CHART]).made()
    assert (artefact.kind, artefact.title) == ("chart", "Heights")


async def test_what_cannot_be_drawn_is_shown_as_an_outline() -> None:
    payloads = [event.payload for event in await Asking("visualisation", "Sequence diagram of the login").events()]
    (artefact,) = [each for each in payloads if isinstance(each, Artefact)]
    assert artefact.kind == "outline"
    assert any("sequence" in each.text for each in payloads if isinstance(each, Thinking))


@pytest.mark.parametrize(
    ("agent", "message", "kind"),
    [("quiz", "Make a quiz of 2 questions", "quiz"), ("visualisation", "Timeline", "timeline")],
)
async def test_message_without_a_topic_is_about_all_that_its_documents_say(agent: str, message: str, kind: str) -> None:
    """A search for "timeline" finds only what speaks of timelines."""
    asking = Asking(agent, message)
    asking.searcher.retrieval = Retrieval(())
    artefact, _ = await asking.made()
    assert artefact.kind == kind
    assert asking.library.reads


async def test_drawing_of_a_model_without_proof_is_drawn_by_rules() -> None:
    invented = {"title": "", "events": [{"when": "2050", "what": "Mars is reached", "source": 1}]}
    artefact, answer = await Asking("visualisation", "Timeline of the buildings", says=[invented]).made()
    assert artefact.body is not None
    assert [each["when"] for each in artefact.body["events"]] == ["1889", "1914", "1932", "1936"]
    assert answer.method == "extractive"


@pytest.mark.parametrize(("agent", "message"), [("quiz", "Two questions"), ("visualisation", "Timeline")])
async def test_nothing_found_is_left_to_the_search(agent: str, message: str) -> None:
    payloads = [event.payload for event in await Asking(agent, message, evidence=()).events()]
    assert not [each for each in payloads if isinstance(each, Artefact)]
    assert [each for each in payloads if isinstance(each, Answer)]


@pytest.mark.parametrize(
    ("agent", "message", "says"),
    [
        ("quiz", "A quiz of 2 questions", [QUIZ]),
        ("visualisation", "Bar chart of heights", [CHART]),
    ],
)
async def test_work_that_is_cut_off_anywhere_ends_the_same(agent: str, message: str, says: Sequence[Any]) -> None:
    def worker() -> Any:
        return Asking(agent, message, says=says).work

    whole = await worked(DyingLog(), worker())
    for cut in cuts(whole):
        assert told(await cut_and_continued(DyingLog(), [worker(), worker()], cut)) == told(whole), str(cut)


async def test_chart_without_a_model_has_all_rows_of_the_document() -> None:
    asking = Asking("visualisation", "Bar chart of revenue 2023", evidence=TABLE)
    more = "\n".join(f"Region: R{number}; Revenue 2022: {number}; Revenue 2023: {number + 7}" for number in range(70))
    asking.library = FakeLibrary({"d1": [*TABLE, passage(2, more, document="d1")]})
    artefact, _ = await asking.made()
    assert artefact.body is not None
    assert artefact.body["labels"][:3] == ["North", "South", "R0"]
    assert len(artefact.body["labels"]) == 60
    assert artefact.body["left_out"] == ["12 more rows: 60 are the most."]


async def test_mind_map_without_a_model_has_the_headings_of_the_document_that_is_found_most() -> None:
    found = [passage(1, "Ducks swim.", "Ducks", "Swimming", document="ducks"), passage(2, "Geese.", document="geese")]
    asking = Asking("visualisation", "Mind map of ducks", evidence=found)
    asking.library = FakeLibrary({"ducks": [found[0], passage(2, "Ducks eat.", "Ducks", "Food", document="ducks")]})
    artefact, _ = await asking.made()
    assert artefact.body is not None
    assert [each["label"] for each in artefact.body["nodes"]] == ["ducks.txt", "Ducks", "Swimming", "Food"]
    assert artefact.title == "ducks.txt"


async def test_number_behind_a_name_is_no_year() -> None:
    said = "The Wang 1200 had a small screen.\n\nThe typewriter was patented in 1868.\n\nIn 1066 a castle was built."
    artefact, _ = await Asking("visualisation", "Timeline", evidence=[passage(1, said)]).made()
    assert artefact.body is not None
    assert [each["when"] for each in artefact.body["events"]] == ["1066", "1868"]


async def test_mind_map_of_a_short_document_has_the_headings_within_its_passage() -> None:
    text = "Ducks\n\nDucks are birds that swim.\n\nFood\n\nThe duck eats mussels and snails.\n\nLast line"
    artefact, _ = await Asking("visualisation", "Mind map", evidence=[passage(1, text, "Ducks")]).made()
    assert artefact.body is not None
    assert [each["label"] for each in artefact.body["nodes"]] == ["d1.txt", "Ducks", "Food"]
    assert [(each["from"], each["to"]) for each in artefact.body["edges"]] == [("0", "1"), ("1", "2")]
