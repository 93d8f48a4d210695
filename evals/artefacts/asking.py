"""Asks the agents for artefacts over the documents of a folder, through the public API."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.client.gateway import Gateway, Json
from evals.artefacts.checks import Checked, checked_parts, checked_questions
from evals.retrieval.indexing import index

COLLECTION = "artefacts"
_JSON = {"Accept": "application/json"}
QUIZ = "Make a quiz of {count} multiple choice questions"
DRAWINGS = ("Bar chart", "Line chart over time", "Radar chart", "Table", "Timeline", "Mind map", "Flow chart")
_DOCUMENTS = (
    "web_text/wiki_duck.html",
    "web_text/pg_essay_1.html",
    "web_text/test_blog.html",
    "web_text/example-with-scripts.html",
    "markdown/arxiv_2203.01017_tableformer.md",
    "markdown/pyserini_conceptual_framework.md",
    "office/2023-half-year-analyses-by-segment.xlsx",
    "office/stanley-cups.xlsx",
    "office/word_sample.docx",
    "csv/constituents.csv",
    "csv/mlb_teams_2012.csv",
)
"""Below the folder `docs`: prose, papers, reports and tables."""


@dataclass(frozen=True)
class Asked:
    """A message to an agent about one document, and what came of it."""

    agent: str
    message: str
    document: str
    kind: str
    """Of the artefact; empty where there is none."""
    parts: Sequence[Checked]


async def ask_all(gateway: Gateway, data: Path, questions: int) -> AsyncIterator[Asked]:
    """Each document gets a quiz and each kind of drawing. Raises EvaluationError, and what the gateway raises."""
    files = {Path(name).name: data / "docs" / name for name in _DOCUMENTS}
    await index(gateway, COLLECTION, files)
    path = f"/v1/collections/{COLLECTION}/documents"
    for document in await gateway.pages(path, "documents"):
        text = (await gateway.content(f"/v1/documents/{document['id']}/content")).decode(errors="replace")
        made = await _made(gateway, "quiz", QUIZ.format(count=questions), document)
        yield Asked("quiz", QUIZ, document["name"], _kind(made), list(checked_questions(made, text)) if made else [])
        for message in DRAWINGS:
            made = await _made(gateway, "visualisation", message, document)
            yield Asked(
                "visualisation", message, document["name"], _kind(made), list(checked_parts(made)) if made else []
            )


async def _made(gateway: Gateway, agent: str, message: str, document: Json) -> Json | None:
    body = {"message": message, "agent": agent, "document_ids": [document["id"]]}
    answer = await gateway.request("POST", f"/v1/collections/{COLLECTION}/chat", json=body, headers=_JSON)
    return next(iter(answer["artefacts"]), None)


def _kind(made: Json | None) -> str:
    return str(made["kind"]) if made else ""
