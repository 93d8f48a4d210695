"""Documents in, questions through `POST /v1/qa` or, where they lean on others, through a thread; graded answers out."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from cli.client.asking import Question
from cli.client.asking import ask as follow
from cli.client.gateway import Gateway, Json
from evals.answering.grading import Graded
from evals.answering.questions import Asked, QuestionSet
from evals.retrieval.indexing import index
from kit.vocabulary.run_fold import RunFold


async def ask_all(gateway: Gateway, questions: QuestionSet) -> list[Graded]:
    """The questions of a set over its documents, one at a time. Raises EvaluationError, and what the gateway raises."""
    collection_id = "answers-" + "".join(each if each.isalnum() else "-" for each in questions.name.lower())[:40]
    with tempfile.TemporaryDirectory(prefix="groundwork-evals-") as folder:
        files = {**questions.files, **_written(questions, Path(folder))}
        await index(gateway, collection_id, files)
    return [await ask(gateway, collection_id, each) for each in questions.questions]


async def ask(gateway: Gateway, collection_id: str, asked: Asked) -> Graded:
    """One question, in a thread behind those that come before it."""
    if asked.before:
        answer = await _last_of_a_thread(gateway, collection_id, (*asked.before, asked.question))
    else:
        body = {"question": asked.question, "collection_ids": [collection_id]}
        answer = await gateway.request("POST", "/v1/qa", json=body)
    return Graded(
        asked=asked,
        text=answer["answer"],
        is_refused=answer["status"] == "refused",
        cited=frozenset(each["document_name"] for each in answer["citations"]),
        confidence=answer["answer_confidence"] or 0.0,
    )


async def _last_of_a_thread(gateway: Gateway, collection_id: str, questions: Sequence[str]) -> Json:
    """The answer to the last question, each being asked when the one before it is answered."""
    thread_id = (await gateway.request("POST", "/v1/threads", json={}))["id"]
    run = RunFold()
    for question in questions:
        run = RunFold()
        async for event in follow(gateway, Question(question, (collection_id,), thread_id)):
            run.add(event.kind, event.data)
    return run.result()


def _written(questions: QuestionSet, folder: Path) -> dict[str, Path]:
    written: dict[str, Path] = {}
    for number, (name, text) in enumerate(questions.texts.items()):
        written[name] = folder / f"{number}.md"
        written[name].write_text(text, "utf-8")
    return written
