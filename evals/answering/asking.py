"""Documents in, questions through `POST /v1/qa`, graded answers out."""

import tempfile
from pathlib import Path

from cli.gateway import Gateway
from evals.answering.grading import Graded
from evals.answering.questions import Asked, QuestionSet
from evals.indexing import index


async def ask_all(gateway: Gateway, questions: QuestionSet) -> list[Graded]:
    """The questions of a set over its documents, one at a time. Raises EvaluationError, and what the gateway raises."""
    collection_id = "answers-" + "".join(each if each.isalnum() else "-" for each in questions.name.lower())[:40]
    with tempfile.TemporaryDirectory(prefix="groundwork-evals-") as folder:
        files = {**questions.files, **_written(questions, Path(folder))}
        await index(gateway, collection_id, files)
    return [await _ask(gateway, collection_id, each) for each in questions.questions]


async def _ask(gateway: Gateway, collection_id: str, asked: Asked) -> Graded:
    body = {"question": asked.question, "collection_ids": [collection_id]}
    answer = await gateway.request("POST", "/v1/qa", json=body)
    return Graded(
        asked=asked,
        text=answer["answer"],
        is_refused=answer["status"] == "refused",
        cited=frozenset(each["document_name"] for each in answer["citations"]),
        confidence=answer["answer_confidence"] or 0.0,
    )


def _written(questions: QuestionSet, folder: Path) -> dict[str, Path]:
    written: dict[str, Path] = {}
    for number, (name, text) in enumerate(questions.texts.items()):
        written[name] = folder / f"{number}.md"
        written[name].write_text(text, "utf-8")
    return written
