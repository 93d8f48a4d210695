"""Questions asked in this process: of SQuAD 2.0 and XQuAD over their own paragraphs and, off topic, over those of other articles;
and questions about rows of tables, and some name a column or a row that is not there.

The embedding model is loaded here and BM25 is counted here, fused half and half, so that thousands of questions take minutes.
"""

import gzip
import json
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kit.language.terms import tokens
from kit.reading.rows import fields, is_row
from services.orchestrator.without_model import Passage
from services.reranker.adapters.cpu_model import embedding_models, load
from services.reranker.batching.padding import pad
from services.reranker.embedding.pooling import Reduction, Result
from services.reranker.embedding.preparation import Preparation
from services.reranker.models import QueryVectors, TextKind, TextVectors
from services.reranker.reranking.late_interaction import MAXSIM_WEIGHT, score
from services.reranker.settings import RerankerSettings

_TOP_K, _BATCH, _LONGEST_CHARS = 8, 16, 3_000
_ROWS_A_FILE = 90
_QUESTIONS = (
    "What is the {column} of {key}?",
    "{column} of {key}",
    "Which {column} does {key} have?",
    "Wie ist {column} von {key}?",
)
_ABSENT_COLUMNS = ("number of employees", "chief executive", "population", "opening hours", "birthday", "stadium")
_ABSENT_KEYS = ("Lakers", "Volkswagen", "Atlantis", "Konrad Industries", "Nowhere County")


class Model:
    """An embedding model as the model server uses it; texts are encoded once."""

    def __init__(self, name: str) -> None:
        settings = RerankerSettings(reranker_cpu_embedding_model=name, auth_public_keys="nobody calls")
        self._loaded = load(settings, embedding_models(settings)[0])
        self._preparation = Preparation(self._loaded.tokenizer, ThreadPoolExecutor(1), self._loaded.model.prompts)
        self._passages: dict[str, TextVectors] = {}
        self._queries: dict[str, QueryVectors] = {}

    def passages(self, texts: Sequence[str]) -> list[TextVectors]:
        return self._read(texts, TextKind.PASSAGE, self._passages, self._preparation.text_vectors)

    def query(self, text: str) -> QueryVectors:
        (vectors,) = self._read([text], TextKind.QUERY, self._queries, self._preparation.query_vectors)
        return vectors

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        """As the Rerank call does."""
        return score(self.query(question), self.passages(sentences), MAXSIM_WEIGHT)

    def _read(
        self, texts: Sequence[str], kind: TextKind, known: MutableMapping[str, Result], reduce: Reduction[Result]
    ) -> list[Result]:
        prompt = (self._loaded.model.prompts or {}).get(kind, "")
        new = sorted({text for text in texts if text not in known}, key=len)
        for start in range(0, len(new), _BATCH):
            batch = new[start : start + _BATCH]
            ids = self._loaded.tokenizer.tokenize([prompt + text[:_LONGEST_CHARS] for text in batch])
            encoded = self._loaded.encoder.encode(*pad(ids, 8))
            for row, text in enumerate(batch):
                known[text] = reduce(encoded.text(row, ids[row]))
        return [known[text] for text in texts]


@dataclass
class Collection:
    """Passages that can be searched. `groups` says which belong to one article or file."""

    model: Model
    texts: Sequence[str]
    groups: Sequence[str]
    titles: Sequence[str] = ()
    """Of each text the title of its document, which is embedded with it; none at all for texts without one."""
    _words: list[Counter[str]] = field(init=False)
    _vectors: Any = field(init=False)

    def __post_init__(self) -> None:
        self._words = [Counter(token.stem for token in tokens(text) if not token.is_stopword) for text in self.texts]
        embedded = [f"{title}\n{text}" for title, text in zip(self.titles, self.texts, strict=False)] or self.texts
        self._vectors = np.stack([each.pooled for each in self.model.passages(embedded)])

    def search(self, question: str, without: str = "") -> list[Passage]:
        """The best passages, without those of a group."""
        dense = self._vectors @ self.model.query(question).pooled
        fused = 0.5 * _spread(dense) + 0.5 * _spread(self._bm25(question))
        best = [index for index in np.argsort(-fused) if not without or self.groups[index] != without][:_TOP_K]
        return [self._passage(number, index, fused, dense) for number, index in enumerate(best, start=1)]

    def _passage(self, number: int, index: int, fused: Any, dense: Any) -> Passage:
        title = self.titles[index] if self.titles else ""
        return Passage(
            number,
            self.texts[index],
            self.groups[index],
            str(index),
            float(fused[index]),
            float(dense[index]),
            document_name=title,
            heading_path=(title,) if title else (),
        )

    def _bm25(self, question: str) -> Any:
        mean = sum(words.total() for words in self._words) / len(self._words)
        scores = np.zeros(len(self._words))
        for stem in {token.stem for token in tokens(question) if not token.is_stopword}:
            holding = [index for index, words in enumerate(self._words) if stem in words]
            rarity = math.log(1 + (len(self._words) - len(holding) + 0.5) / (len(holding) + 0.5))
            for index in holding:
                count, length = self._words[index][stem], self._words[index].total()
                scores[index] += rarity * count * 1.9 / (count + 0.9 * (0.6 + 0.4 * length / mean))
        return scores


def _spread(scores: Any) -> Any:
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else scores * 0


@dataclass(frozen=True)
class Asked:
    """A question, what stands in a right answer (nothing: it has none), and the group of texts that is left out of its search."""

    question: str
    kind: str
    half: str
    answers: Sequence[str] = ()
    without: str = ""


def folded(text: str) -> str:
    """Lower case, one space between words."""
    return " ".join(text.lower().split())


def squad(path: Path, count: int, model: Model) -> Iterator[tuple[Asked, Collection]]:
    """Every second article, in order of the titles, is for fitting, the others for testing."""
    articles = _articles(path)
    pairs = {part["context"].strip(): each["title"] for each in articles for part in each["paragraphs"]}
    groups = [str(title) for title in pairs.values()]
    collection = Collection(model, list(pairs), groups, [each.replace("_", " ") for each in groups])
    for index, half in enumerate(("fit", "test")):
        rows = [(a["title"], row) for a in articles[index::2] for part in a["paragraphs"] for row in part["qas"]]
        random.Random(1).shuffle(rows)
        left = {"answerable": count, "adversarial": count}
        for title, row in rows:
            answers = [] if row.get("is_impossible") else [each["text"] for each in row["answers"]]
            kind = "answerable" if answers else "adversarial"
            left[kind] -= 1
            if left[kind] < 0:
                continue
            yield Asked(row["question"], kind, half, answers), collection
            if answers:
                yield Asked(row["question"], "off-topic", half, (), str(title)), collection


def _articles(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return sorted(json.load(file)["data"], key=lambda article: str(article["title"]))


def tested_paragraphs(path: Path) -> frozenset[str]:
    """The paragraphs of SQuAD whose questions are for testing: XQuAD has translated some of them."""
    return frozenset(folded(part["context"]) for each in _articles(path)[1::2] for part in each["paragraphs"])


def xquad(
    folders: Sequence[Path], count: int, model: Model, tested: frozenset[str] = frozenset()
) -> Iterator[tuple[Asked, Collection]]:
    """Each language over its own paragraphs, and over those of the last folder, which is English. Half of the articles is for
    fitting, without those that have `tested` paragraphs."""
    read = [_xquad(folder) for folder in folders]
    collections = [Collection(model, texts, [str(number // 5) for number in range(len(texts))]) for texts, _, _ in read]
    held_back = {number // 5 for number, text in enumerate(read[-1][0]) if folded(text) in tested}
    pairs = [(own, own) for own in range(len(read))] + [(own, len(read) - 1) for own in range(len(read) - 1)]
    for own, other in pairs:
        suffix = "other language" if own == other else "across languages"
        texts, answers, places = read[other]
        questions = list(read[own][1].items())
        random.Random(3).shuffle(questions)
        for query_id, row in questions[:count]:
            article = places[query_id] // 5
            half = "fit" if places[query_id] < len(texts) // 2 and article not in held_back else "test"
            group = str(article)
            yield Asked(row["text"], f"answerable, {suffix}", half, answers[query_id]["answers"]), collections[other]
            yield Asked(row["text"], f"off-topic, {suffix}", half, (), group), collections[other]


def _xquad(folder: Path) -> tuple[list[str], dict[str, Any], dict[str, int]]:
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        corpus = [json.loads(line) for line in file]
    place = {row["_id"]: number for number, row in enumerate(corpus)}
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]
    lines = next((folder / "qrels").iterdir()).read_text("utf-8").splitlines()[1:]
    places = {query_id: place[document_id] for query_id, document_id, _ in (line.split("\t") for line in lines)}
    return [row["text"] for row in corpus], {row["_id"]: row for row in queries}, places


def tables(paths: Iterable[Path], model: Model) -> Iterator[tuple[Asked, Collection]]:
    """Files of text whose lines are rows, `column: cell; column: cell`, as ingestion writes them."""
    rng = random.Random(5)
    rows = [(path.name, line) for path in paths for line in path.read_text("utf-8").splitlines() if is_row(line)]
    collection = Collection(model, [line for _, line in rows], [name for name, _ in rows])
    rng.shuffle(rows)
    made: Counter[str] = Counter()
    for name, line in rows:
        (_, key), *cells = fields(line)
        named = [(column, cell) for column, cell in cells if column and cell not in ("", "0", "x")]
        if not named or made[name] >= _ROWS_A_FILE:
            continue
        made[name] += 1
        column, cell = rng.choice(named)
        absent = rng.random()
        column = rng.choice(_ABSENT_COLUMNS) if absent < 0.2 else column
        key = rng.choice(_ABSENT_KEYS) if 0.2 <= absent < 0.4 else key
        kind, answers = ("absent row", ()) if absent < 0.4 else ("row", (cell,))
        question = rng.choice(_QUESTIONS).format(column=column, key=key)
        yield Asked(question, kind, rng.choice(["fit", "fit", "test"]), answers), collection
