"""Which loader reads what: a BEIR folder, a SQuAD file, or a folder that holds one SQuAD file."""

from dataclasses import replace
from pathlib import Path
from random import Random

from evals.datasets.beir import CORPUS, load_beir
from evals.datasets.models import KIND, Query, TestCollection
from evals.datasets.squad import load_squad
from evals.datasets.text_files import find
from evals.errors import CollectionUnusable

OWN_COLLECTION = Path(__file__).parents[1] / "data" / "small"
"""The collection of this repository."""


def load_collection(path: Path, split: str = "test") -> TestCollection:
    """Raises CollectionUnusable."""
    if path.is_file():
        return load_squad(path)
    if not path.is_dir():
        raise CollectionUnusable(f"there is no test collection at {path}; give a folder or a SQuAD file")
    if find(path, CORPUS):
        return load_beir(path, split)
    files = sorted(each for each in path.iterdir() if each.name.endswith((".json", ".json.gz")))
    if len(files) != 1:
        raise CollectionUnusable(
            f"{path} is neither a BEIR folder (no {CORPUS}) nor does it hold exactly one SQuAD file "
            f"({len(files)} files end in .json or .json.gz); name the file"
        )
    return replace(load_squad(files[0]), name=path.name)


def with_off_topic(collection: TestCollection, other: TestCollection) -> TestCollection:
    """The collection with the questions of another one, which is about something else."""
    known = {query.query_id for query in (*collection.queries, *collection.unanswerable)}
    strange = [
        Query(f"off-topic-{query.query_id}" if query.query_id in known else query.query_id, query.text, facets)
        for query in other.queries
        for facets in [{KIND: f"about something else ({other.name})"}]
    ]
    return replace(collection, unanswerable=[*collection.unanswerable, *strange])


def sample_queries(collection: TestCollection, count: int, seed: int = 0) -> TestCollection:
    """At most `count` queries, and as many without an answer, chosen at random but always the same ones; all documents stay."""
    if count < len(collection.unanswerable):
        collection = replace(collection, unanswerable=Random(seed).sample(collection.unanswerable, count))
    if count >= len(collection.queries):
        return collection
    chosen = Random(seed).sample(collection.queries, count)
    return replace(
        collection,
        queries=chosen,
        qrels={query.query_id: collection.qrels[query.query_id] for query in chosen},
        about=f"{collection.about}; {count} of {len(collection.queries)} queries, sampled",
    )
