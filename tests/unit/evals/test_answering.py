"""Sets of questions, exact grading and the figures that follow."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from cli.client.gateway import Gateway
from cli.client.sse import Event
from evals.answering.asking import ask
from evals.answering.grading import Graded, figures, risk_coverage
from evals.answering.questions import ADVERSARIAL, Asked, load_questions, load_squad_half
from evals.errors import CollectionUnusable

PRICE = Asked("q1", "What does it cost?", "fact", "prices.csv", [["5", "five"], ["widget"]], ["gadget"])
NOTHING = Asked("q2", "Who is the mayor?", "unanswerable", "", [])


def graded(asked: Asked, text: str, confidence: float = 0.8, *, refused: bool = False) -> Graded:
    return Graded(asked, text, refused, frozenset({"prices.csv"}), confidence)


@pytest.mark.parametrize(
    ("text", "right"),
    [("The WIDGET is\nfive euros.", True), ("The widget.", False), ("Widget 5, gadget 6", False)],
)
def test_answer_needs_one_string_of_each_group_and_no_wrong_one(text: str, right: bool) -> None:
    assert graded(PRICE, text).is_right is right


def test_question_without_answer_must_be_refused() -> None:
    assert graded(NOTHING, "The documents do not say.", refused=True).is_right
    assert not graded(NOTHING, "The mayor is here.").is_right
    assert not graded(PRICE, "widget 5", refused=True).is_right


def test_figures_of_answers_and_refusals() -> None:
    found = figures(
        [
            graded(PRICE, "widget 5"),
            graded(PRICE, "no", refused=True),
            graded(NOTHING, "no", refused=True),
            graded(NOTHING, "x", 0.6),
        ]
    )
    assert (found.count, found.right, found.answerable_right, found.gold_cited) == (4, 0.5, 0.5, 1.0)
    assert (found.refusal_precision, found.refusal_recall, found.refusal_f1) == (0.5, 0.5, 0.5)
    assert found.calibration_error == pytest.approx((0.2 + 0.6) / 2)


def test_risk_grows_with_coverage_where_confidence_orders_well() -> None:
    answers = [graded(PRICE, "widget 5", 0.9), graded(PRICE, "gadget", 0.5)]
    assert risk_coverage(answers, steps=2) == [(0.9, 0.5, 0.0), (0.5, 1.0, 0.5)]


def test_set_that_asks_about_a_missing_document_says_so(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps({"id": "1", "question": "?", "kind": "fact", "file": "gone.md", "expected": []}))
    with pytest.raises(CollectionUnusable, match=r"gone\.md"):
        load_questions("set", path, {})


def test_only_the_second_half_of_the_articles_is_asked_about(tmp_path: Path) -> None:
    def article(title: str) -> dict[str, object]:
        answered = {"id": f"{title}1", "question": "Why?", "answers": [{"text": title}]}
        impossible = {"id": f"{title}2", "question": "How?", "is_impossible": True, "answers": []}
        return {"title": title, "paragraphs": [{"context": f"Of {title}.", "qas": [answered, impossible]}]}

    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"data": [article("B"), article("A"), article("C")]}))
    found = load_squad_half(path, 10)
    assert sorted(found.texts) == ["A 000.md", "B 000.md", "C 000.md"]
    assert [(each.question_id, each.kind) for each in found.questions] == [("B1", "answerable"), ("B2", ADVERSARIAL)]


def test_questions_about_this_repository_name_its_documents() -> None:
    root = Path(__file__).parents[3]
    rows = [json.loads(line) for line in (root / "evals/data/answers/repository.jsonl").read_text("utf-8").splitlines()]
    assert all((root / row["file"]).is_file() for row in rows if row["file"])
    for row in rows:
        text = (root / row["file"]).read_text("utf-8").lower() if row["file"] else ""
        assert all(any(each in text for each in group) for group in row["expected"]), row["question"]


def test_written_questions_name_their_documents_and_what_stands_in_them() -> None:
    folder = Path(__file__).parents[3] / "evals/data/answers"
    rows = [json.loads(line) for line in (folder / "written.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        text = " ".join((folder / "written" / row["file"]).read_text("utf-8").lower().split())
        # A row is quoted as fields: words of a table need not stand side by side.
        assert all(any(each in text for each in group) for group in row["expected"]), row["question"]
        assert all(each in text for each in row.get("wrong", ())), row["question"]


async def test_question_that_leans_on_others_is_asked_in_their_thread(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    row = {"id": "1", "question": "And when?", "kind": "fact", "file": "", "expected": [], "before": ["Who?"]}
    path.write_text(json.dumps(row))
    asked: list[tuple[str, str, str]] = []

    class Fake:
        async def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
            assert (method, path) == ("POST", "/v1/threads")
            return {"id": "t1"}

        @asynccontextmanager
        async def events(
            self, method: str, path: str, **options: Any
        ) -> AsyncIterator[tuple[str, AsyncIterator[Event]]]:
            asked.append((path, options["json"]["message"], options["json"]["thread_id"]))
            yield "r1", self._told(options["json"]["message"])

        async def _told(self, message: str) -> AsyncIterator[Event]:
            said = {"run_id": "r1", "seq": 1, "text": f"To {message}", "citations": [], "answer_confidence": None}
            yield Event("answer", said, 1)
            yield Event("done", {"run_id": "r1", "seq": 2, "status": "refused"}, 2)

    (question,) = load_questions("set", path, {}).questions
    found = await ask(cast("Gateway", Fake()), "c", question)
    assert (found.text, found.is_refused) == ("To And when?", True)
    path_of_chat = "/v1/collections/c/chat"
    assert asked == [(path_of_chat, "Who?", "t1"), (path_of_chat, "And when?", "t1")]
