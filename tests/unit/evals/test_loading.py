"""Test collections in the shapes that they come in, and what is said of those that cannot be used."""

import gzip
import json
from pathlib import Path

import pytest

from evals.datasets.loading import OWN_COLLECTION, load_collection, sample_queries, with_off_topic
from evals.datasets.models import Query, TestCollection
from evals.datasets.squad import kind
from evals.errors import CollectionUnusable

CORPUS = [{"_id": "d1", "title": "One", "text": "First."}, {"_id": "d2", "text": "Second."}, {"_id": "d3", "text": " "}]
QUERIES = [
    {"_id": "q1", "text": "first?", "metadata": {"category": "date", "weight": 3}},
    {"_id": "q2", "text": "nothing is relevant"},
    {"_id": "q3", "text": "only what is not in the corpus"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t0\nq3\td9\t1\n"


def write_beir(folder: Path, *, packed: bool = False) -> Path:
    (folder / "qrels").mkdir(parents=True)
    (folder / "qrels" / "test.tsv").write_text(QRELS)
    for name, values in (("corpus.jsonl", CORPUS), ("queries.jsonl", QUERIES)):
        data = "".join(json.dumps(value) + "\n" for value in values).encode()
        (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(data) if packed else data)
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_beir_folder_keeps_what_can_be_judged(tmp_path: Path, packed: bool) -> None:
    collection = load_collection(write_beir(tmp_path / "tiny", packed=packed))
    assert collection.name == "tiny"
    assert [each.document_id for each in collection.documents] == ["d1", "d2"]
    assert [each.query_id for each in collection.queries] == ["q1"]
    assert collection.queries[0].facets == {"category": "date"}
    assert collection.qrels == {"q1": {"d1": 2, "d2": 0}}
    assert "2 queries without judgements left out; 1 documents without text left out" in collection.about


def write_squad(path: Path) -> Path:
    answered = {"id": "a", "question": "When was it built?", "answers": [{"text": "1902"}]}
    unanswerable = {"id": "b", "question": "Who?", "answers": [], "is_impossible": True}
    again = {"id": "c", "question": "Why?", "answers": [{"text": "cotton"}]}
    paragraphs = [{"context": "Built in 1902.", "qas": [answered, unanswerable]}, {"context": "Other.", "qas": []}]
    doubled = [{"context": "Built in 1902.", "qas": [again]}]
    path.write_text(
        json.dumps({"data": [{"title": "Old_Port", "paragraphs": paragraphs}, {"title": "X", "paragraphs": doubled}]})
    )
    return path


def test_squad_file_makes_each_paragraph_one_document(tmp_path: Path) -> None:
    collection = load_collection(write_squad(tmp_path / "dev.json"))
    assert [(each.title, each.text) for each in collection.documents] == [
        ("Old Port", "Built in 1902."),
        ("Old Port", "Other."),
    ]
    assert collection.qrels == {"a": {"p00000": 1}, "c": {"p00000": 1}}
    assert collection.queries[0].facets == {"category": "date"}
    assert "1 unanswerable" in collection.about
    assert [query.query_id for query in collection.unanswerable] == ["b"]


def test_questions_of_another_collection_have_no_answer_in_this_one() -> None:
    own = TestCollection("own", [], [Query("a", "Who?")], {"a": {"d": 1}}, unanswerable=[Query("b", "Why?")])
    other = TestCollection("other", [], [Query("a", "When?"), Query("c", "Where?")], {})
    asked = with_off_topic(own, other)
    assert [query.query_id for query in asked.unanswerable] == ["b", "off-topic-a", "c"]
    assert {query.facets["unanswerable"] for query in asked.unanswerable[1:]} == {"about something else (other)"}
    assert len(sample_queries(asked, 1).unanswerable) == 1


def test_folder_with_one_squad_file_is_that_file(tmp_path: Path) -> None:
    folder = tmp_path / "half"
    folder.mkdir()
    write_squad(folder / "dev.json")
    assert load_collection(folder).name == "half"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many were there?", "number"),
        ("In what year did it end?", "date"),
        ("Whose idea was it?", "person"),
        ("Where is it?", "place"),
        ("How is it made?", "reason"),
        ("Which one?", "thing"),
        ("Name it.", "other"),
    ],
)
def test_kind_of_question(question: str, expected: str) -> None:
    assert kind(question) == expected


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "nor does it hold exactly one SQuAD file"),
        ({"corpus.jsonl": "{}"}, "it needs corpus.jsonl, queries.jsonl, qrels/test.tsv"),
        ({"corpus.jsonl": "{", "queries.jsonl": "", "qrels/test.tsv": ""}, "line 1 is not JSON"),
        ({"corpus.jsonl": "[]", "queries.jsonl": "", "qrels/test.tsv": ""}, "is not a JSON object"),
        ({"corpus.jsonl": '{"text": "a"}', "queries.jsonl": "", "qrels/test.tsv": ""}, "without '_id'"),
        ({"corpus.jsonl": '{"_id": "a", "text": "a"}', "queries.jsonl": "", "qrels/test.tsv": "a\tb\n1 2"}, "line 2"),
        ({"corpus.jsonl": '{"_id": "a", "text": "a"}', "queries.jsonl": "", "qrels/test.tsv": ""}, "no query"),
        ({"dev.json": "{"}, "is not JSON"),
        ({"dev.json": '{"data": [{}]}'}, "is not a SQuAD file"),
        ({"dev.json": '{"data": []}'}, "no question that can be answered"),
        ({"dev.json.gz": "not packed"}, "cannot be read"),
    ],
)
def test_unusable_collection_says_why(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    with pytest.raises(CollectionUnusable, match=said):
        load_collection(tmp_path)


def test_missing_collection_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(CollectionUnusable, match="there is no test collection at"):
        load_collection(tmp_path / "nowhere")


def test_sample_is_always_the_same_and_keeps_all_documents() -> None:
    collection = load_collection(OWN_COLLECTION)
    sample = sample_queries(collection, 10)
    assert sample == sample_queries(collection, 10)
    assert len(sample.queries) == len(sample.qrels) == 10
    assert sample.documents == collection.documents
    assert sample_queries(collection, 10_000) is collection


def test_own_collection_has_what_its_page_promises() -> None:
    collection = load_collection(OWN_COLLECTION)
    assert len(collection.documents) == 60
    assert len(collection.queries) >= 80
    ids = {each.document_id for each in collection.documents}
    assert all(set(grades) <= ids for grades in collection.qrels.values())
    languages = {each.document_id.partition("-")[0] for each in collection.documents}
    assert languages == {"en", "ru", "de", "he", "ar"}
    for query in collection.queries:
        assert set(query.facets) == {"category", "language", "difficulty"}
        relevant = collection.qrels[query.query_id]
        assert len(relevant) > 1 or query.facets["category"] != "cross-document"
        same_language = all(each.startswith(query.facets["language"]) for each in relevant)
        assert same_language is (query.facets["category"] != "cross-language")
