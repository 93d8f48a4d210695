"""Citations as OpenAI's clients know them: annotations of the text, with what Groundwork knows besides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kit.vocabulary.run_fold import RunFold
from services.gateway.models import Json
from services.gateway.openai.content import Mark
from services.gateway.openai.stores.shapes import file_name
from services.gateway.serving.requests import passage_url

_TITLE_CHARACTERS = 200
_WEB = ("http://", "https://")
_GROUNDS = (
    "number",
    "document_id",
    "chunk_id",
    "page",
    "text",
    "quote_start",
    "quote_end",
    "bounding_boxes",
    "heading_path",
)


@dataclass(frozen=True)
class Places:
    """Where a client finds what an answer cites."""

    base_url: str = ""
    """Where people reach the gateway."""
    file_ids: Mapping[str, str] = field(default_factory=dict)
    """By what ids clients know the files of documents. A document that is missing here is known by its own."""


def url_citations(marks: Sequence[Mark], run: RunFold, base_url: str) -> list[Json]:
    """Annotations of a chat completion: one a mark, `start_index` and `end_index` in characters (code points) of the text."""
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": start,
                "end_index": end,
                "title": citation["document_name"][:_TITLE_CHARACTERS],
                "url": _address(citation, base_url),
            },
            "groundwork": _grounds(citation, start, run),
        }
        for start, end, citation in _cited(marks, run)
    ]


def cited_documents(run: RunFold) -> set[str]:
    """The documents that a run's answer cites."""
    return {each["document_id"] for each in (run.answer or {}).get("citations", ()) if each["document_id"]}


def file_citations(marks: Sequence[Mark], run: RunFold, places: Places) -> list[Json]:
    """Annotations of a response: one a mark, `index` where the mark stands in the text."""
    return [
        {
            "type": "file_citation",
            "index": start,
            "file_id": places.file_ids.get(citation["document_id"] or "", citation["document_id"] or ""),
            "filename": file_name(citation["document_name"]),
            "groundwork": {**_grounds(citation, start, run), "url": _address(citation, places.base_url)},
        }
        for start, _, citation in _cited(marks, run)
    ]


def _cited(marks: Sequence[Mark], run: RunFold) -> list[tuple[int, int, Json]]:
    cited: Mapping[int, Json] = {each["number"]: each for each in (run.answer or {}).get("citations", ())}
    found = ((mark.start, mark.end, cited.get(mark.number)) for mark in marks)
    return [(start, end, citation) for start, end, citation in found if citation is not None]


def _address(citation: Json, base_url: str) -> str:
    """Where a person reads what is cited: the page on the web that it was read from, else the console's page of the passage."""
    origin = citation.get("origin") or {}
    if (citation["document_id"] or "").startswith("web-") and origin.get("channel", "").startswith(_WEB):
        return str(origin["channel"])
    if not citation["chunk_id"]:
        return f"{base_url}/documents"
    return passage_url(base_url, citation["chunk_id"], citation["quote_start"], citation["quote_end"])


def _grounds(citation: Json, mark: int, run: RunFold) -> Json:
    """The passage, its place and the verdict on its claim, which OpenAI's shapes have no members for."""
    sentences = (run.verification or {}).get("sentences", ())
    judged = [each for each in sentences if each["end"] <= mark and citation["number"] in each["citations"]]
    known = {name: citation.get(name) for name in _GROUNDS}
    return {**known, "verdict": max(judged, key=lambda each: each["end"])["verdict"] if judged else None}
