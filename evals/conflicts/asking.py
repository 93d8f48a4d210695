"""Asks each question twice through `POST /v1/qa`: over sources that disagree, and over the same without the wrong ones."""

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.client.gateway import Gateway, Json
from evals.conflicts.questions import DisputedQuestion
from evals.retrieval.indexing import index

DISPUTED, UNDISPUTED = "disputed", "undisputed"


@dataclass(frozen=True)
class Answered:
    """A question, and what came of it over sources of one kind."""

    question: DisputedQuestion
    sources: str
    answer: Json

    @property
    def says_conflict(self) -> bool:
        return bool(self.answer["conflicts"])


async def ask_all(gateway: Gateway, questions: Sequence[DisputedQuestion]) -> list[Answered]:
    """Each question over one collection of all passages of its kind. Raises EvaluationError, and what the gateway raises."""
    answered = []
    for sources in (DISPUTED, UNDISPUTED):
        collection_id = f"conflicts-{sources}"
        texts = {text: None for each in questions for text in _passages(each, sources)}
        await _index(gateway, collection_id, texts)
        for each in questions:
            body = {"question": each.text, "collection_ids": [collection_id]}
            answered.append(Answered(each, sources, await gateway.request("POST", "/v1/qa", json=body)))
    return answered


def _passages(question: DisputedQuestion, sources: str) -> list[str]:
    wrong = question.wrong if sources == DISPUTED else ()
    return [*question.right, *wrong, *question.others]


async def _index(gateway: Gateway, collection_id: str, texts: Iterable[str]) -> None:
    """Each text as a document of its own, whose name says nothing."""
    with tempfile.TemporaryDirectory(prefix="groundwork-evals-") as folder:
        files = {}
        for text in texts:
            name = f"{hashlib.sha256(text.encode()).hexdigest()[:12]}x.txt"
            files[name] = Path(folder, name)
            files[name].write_text(text, "utf-8")
        await index(gateway, collection_id, files)
