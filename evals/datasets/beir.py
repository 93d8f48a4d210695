"""Test collections in the shape of BEIR (Thakur et al., arXiv:2104.08663): `corpus.jsonl`, `queries.jsonl`, `qrels/<split>.tsv`,
plain or gzipped; a split's queries may lie in a file of their own, `queries_<split>.jsonl`. Text values of a query's `metadata`
become facets."""

from pathlib import Path
from typing import Any

from evals.datasets.models import Document, Query, TestCollection
from evals.datasets.text_files import find, read_json_lines, read_text
from evals.errors import CollectionUnusable

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"


def load_beir(folder: Path, split: str = "test") -> TestCollection:
    """Queries without a relevant document in the corpus are left out, and documents without text. Raises CollectionUnusable."""
    corpus, queries = find(folder, CORPUS), find(folder, f"queries_{split}.jsonl", QUERIES)
    judgements = find(folder / QRELS, f"{split}.tsv")
    if corpus is None or queries is None or judgements is None:
        wanted = (CORPUS, QUERIES, f"{QRELS}/{split}.tsv")
        raise CollectionUnusable(f"{folder} is not a test collection: it needs {', '.join(wanted)}, plain or with .gz")
    read = [_document(value, corpus) for value in read_json_lines(corpus)]
    documents = [each for each in read if each.title or each.text]
    qrels = _qrels(judgements, {each.document_id for each in documents})
    asked = [_query(value, queries) for value in read_json_lines(queries)]
    kept = [each for each in asked if each.query_id in qrels]
    if not kept:
        raise CollectionUnusable(
            f"{folder} has no query with a relevant document: the ids in {judgements.name} are in neither file"
        )
    left_out = f"; {len(read) - len(documents)} documents without text left out" if len(read) > len(documents) else ""
    about = f"BEIR-shaped, split {split}; {len(asked) - len(kept)} queries without judgements left out{left_out}"
    return TestCollection(folder.name, documents, kept, {each.query_id: qrels[each.query_id] for each in kept}, about)


def _document(value: dict[str, Any], path: Path) -> Document:
    return Document(
        _required(value, "_id", path), str(value.get("title") or "").strip(), str(value.get("text") or "").strip()
    )


def _query(value: dict[str, Any], path: Path) -> Query:
    metadata = value.get("metadata") or {}
    facets = {key: each for key, each in metadata.items() if isinstance(each, str)}
    return Query(_required(value, "_id", path), _required(value, "text", path), facets)


def _required(value: dict[str, Any], key: str, path: Path) -> str:
    if not value.get(key):
        raise CollectionUnusable(f"{path} has an entry without {key!r}: {str(value)[:120]}")
    return str(value[key])


def _qrels(path: Path, document_ids: set[str]) -> dict[str, dict[str, int]]:
    """Only queries with at least one relevant document in the corpus."""
    qrels: dict[str, dict[str, int]] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        fields = line.split("\t")
        if not line.strip() or (number == 1 and not fields[-1].strip().lstrip("-").isdigit()):
            continue  # the first line names the columns
        try:
            query_id, document_id, grade = fields[0], fields[1], int(fields[2])
        except (IndexError, ValueError) as error:
            raise CollectionUnusable(
                f"{path}, line {number} is not `query-id<tab>document-id<tab>grade`: {line[:80]!r}"
            ) from error
        if document_id in document_ids:
            qrels.setdefault(query_id, {})[document_id] = grade
    return {query_id: grades for query_id, grades in qrels.items() if max(grades.values()) > 0}
