"""Question → passage retrieval on files in the shape of SQuAD (Rajpurkar et al., arXiv:1606.05250, arXiv:1806.03822): each
paragraph is a document, and the paragraph that a question was asked about is the only relevant one."""

import re
from pathlib import Path
from typing import Any

from evals.datasets.models import KIND, Document, Query, TestCollection
from evals.datasets.text_files import read_json
from evals.errors import CollectionUnusable

_KINDS = (
    (
        "number",
        re.compile(r"\bhow (many|much|long|old|far|tall|large|big|high|often)\b|\bwhat (percent|number|fraction)"),
    ),
    ("date", re.compile(r"\bwhen\b|\b(what|which) (year|month|day|date|century|decade)\b")),
    ("person", re.compile(r"\bwho(m|se)?\b")),
    ("place", re.compile(r"\bwhere\b|\b(what|which) (country|city|state|continent|region)\b")),
    ("reason", re.compile(r"\bwhy\b|\bhow\b")),
    ("thing", re.compile(r"\bwhat\b|\bwhich\b")),
)


def load_squad(path: Path) -> TestCollection:
    """Questions that their paragraph does not answer are kept apart: nothing is relevant to them. Raises CollectionUnusable."""
    try:
        articles = read_json(path)["data"]
        documents, queries, qrels, unanswerable = _read(articles)
    except (KeyError, TypeError, IndexError) as error:
        raise CollectionUnusable(f"{path} is not a SQuAD file (data → paragraphs → qas): {error!r}") from error
    if not queries:
        raise CollectionUnusable(f"{path} has no question that can be answered")
    about = f"SQuAD-style, one gold paragraph a question; {len(unanswerable)} unanswerable questions left out"
    return TestCollection(path.name.partition(".json")[0], documents, queries, qrels, about, unanswerable)


def _read(articles: list[dict[str, Any]]) -> tuple[list[Document], list[Query], dict[str, dict[str, int]], list[Query]]:
    documents: dict[str, Document] = {}
    queries: list[Query] = []
    qrels: dict[str, dict[str, int]] = {}
    unanswerable: list[Query] = []
    for article in articles:
        title = str(article.get("title", "")).replace("_", " ")
        for paragraph in article["paragraphs"]:
            text = paragraph["context"].strip()
            # The same paragraph twice would be two right answers, and one would count as wrong.
            document = documents.setdefault(text, Document(f"p{len(documents):05d}", title, text))
            for question in paragraph["qas"]:
                query_id = str(question["id"])
                if question.get("is_impossible") or not question.get("answers"):
                    unanswerable.append(Query(query_id, question["question"].strip(), {KIND: "not in its paragraph"}))
                    continue
                queries.append(Query(query_id, question["question"].strip(), {"category": kind(question["question"])}))
                qrels[query_id] = {document.document_id: 1}
    return list(documents.values()), queries, qrels, unanswerable


def kind(question: str) -> str:
    """What an English question asks for, by its words: number, date, person, place, reason, thing or other."""
    lowered = question.lower()
    return next((name for name, pattern in _KINDS if pattern.search(lowered)), "other")
