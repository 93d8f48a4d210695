"""Finds records by meaning and by words: cosines over vectors that are kept, word matches weighted by how rare the word is, both
fused, the best of them reranked. Without the model server words alone decide, and the answer says so."""

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kit.language.terms import tokens
from kit.ranking.fusion import RankedList, reciprocal_rank_fusion
from services.tools.errors import ToolError
from services.tools.ports import ModelServer, Vector
from services.tools.projects.records import Record, Records

EMBED_TIME_S = 2.5
"""Seconds that a search may spend on vectors: of the query, and of records that have none yet."""
RERANK_TIME_S = 1.5
_FIRST_BATCH, _LARGEST_BATCH = 2, 32
"""Records embedded in one call, twice as many each time: at first so few that a busy model answers within a search's time, so that
one whose time runs out has got on."""
_TEXT_CHARACTERS = 1500
"""More than the usual embedder's window of 256 tokens."""
_WORDS_SHARE_MIN = 0.3
"""Least share of the query's words, by weight, that a record must have to be found by words."""
_NAME_WEIGHT = 2.0
"""A word in the name or among the technologies counts twice."""
_CANDIDATES_PER_HIT = 3
_NOISE_COSINES = {"multilingual-e5-small": 0.34, "all-MiniLM-L6-v2": 0.25}
"""By the beginning of the model's name. The nearest of the records about this system to twelve questions about something else lies
at 0.16 to 0.334 with multilingual-e5-small and at 0.19 at most with all-MiniLM-L6-v2; of ten right ones eight lie above each."""
_NOISE_COSINE = 0.25
"""Of a model that was not measured."""


@dataclass(frozen=True)
class FoundRecord:
    """A record that fits, and why."""

    record: Record
    similarity: float | None
    """Cosine of query and record, where it is known."""
    by_words: bool


@dataclass(frozen=True)
class FoundRecords:
    """Best first."""

    hits: Sequence[FoundRecord]
    degraded: Sequence[str] = ()
    """What the search had to do without, each a sentence for a person."""


class RecordSearch:
    """Search over records that do not change. Their vectors are made when they are first needed, and kept."""

    def __init__(self, records: Records, *, similarity_min: float | None) -> None:
        """`similarity_min`: least cosine of what vectors alone find; below is noise. None: what was measured for the model."""
        self.records = records
        self._similarity_min = similarity_min
        self._words = {record.id: frozenset(_stems(_full_text(record))) for record in records.all}
        self._name_words = {
            record.id: frozenset(_stems(" ".join((record.name, *record.technologies)))) for record in records.all
        }
        self._frequency = Counter(stem for words in self._words.values() for stem in words)
        self._vectors: dict[str, Vector] = {}
        self._model = ""
        self._embedding = asyncio.Lock()

    async def search(self, query_text: str, top_k: int, models: ModelServer) -> FoundRecords:
        """At most `top_k` records; none where nothing fits."""
        if not self.records.all:
            return FoundRecords(())
        by_words = self._by_words(query_text)
        cosines, without_vectors = await self._cosines(query_text, models)
        least = self._similarity_min if self._similarity_min is not None else _noise_cosine(self._model)
        by_meaning = {
            record_id: cosine
            for record_id, cosine in _best_first(cosines).items()
            if cosine >= least or record_id in by_words
        }
        fused = list(reciprocal_rank_fusion([_ranked(by_meaning), _ranked(by_words)]))
        ranked, without_rerank = await self._reranked(query_text, fused[: _CANDIDATES_PER_HIT * top_k], models)
        by_id = {record.id: record for record in self.records.all}
        hits = [FoundRecord(by_id[each], cosines.get(each), each in by_words) for each in ranked[:top_k]]
        return FoundRecords(hits, [*without_vectors, *without_rerank])

    def _by_words(self, query_text: str) -> dict[str, float]:
        """Scores of the records that have enough of the query's words, best first."""
        wanted = {stem: self._rarity(stem) for stem in dict.fromkeys(_stems(query_text))}
        total = sum(wanted.values())
        scores = {}
        for record_id, words in self._words.items():
            met = {stem: weight for stem, weight in wanted.items() if stem in words}
            if met and sum(met.values()) >= _WORDS_SHARE_MIN * total:
                named = self._name_words[record_id]
                scores[record_id] = sum(w * (_NAME_WEIGHT if stem in named else 1.0) for stem, w in met.items())
        return _best_first(scores)

    def _rarity(self, stem: str) -> float:
        """Inverse document frequency as BM25 has it: a word that all records have weighs next to nothing."""
        count = self._frequency[stem]
        return math.log(1 + (len(self._words) - count + 0.5) / (count + 0.5))

    async def _cosines(self, query_text: str, models: ModelServer) -> tuple[dict[str, float], list[str]]:
        try:
            async with asyncio.timeout(EMBED_TIME_S):
                query = await models.embed_query(query_text)
                vectors = await self._embedded(models, query.model)
        except ToolError as error:
            return {}, [f"Found by words alone, not by meaning: {error}."]
        except TimeoutError:
            return {}, ["Found by words alone: the model server is still reading the records; ask again in a minute."]
        return dict(zip(self._words, (vectors @ query.vector).tolist(), strict=True)), []

    async def _embedded(self, models: ModelServer, model: str) -> NDArray[np.float32]:
        """float32 [records, dimension]. What is done is kept when the time runs out; vectors of another model are made again."""
        async with self._embedding:
            if model != self._model:
                self._vectors, self._model = {}, model
            missing = [record for record in self.records.all if record.id not in self._vectors]
            size = _FIRST_BATCH
            while missing:
                some, missing = missing[:size], missing[size:]
                vectors = await models.embed_passages([record.text[:_TEXT_CHARACTERS] for record in some], model)
                self._vectors |= {record.id: vector for record, vector in zip(some, vectors, strict=True)}
                size = min(2 * size, _LARGEST_BATCH)
            return np.stack([self._vectors[record.id] for record in self.records.all])

    async def _reranked(
        self, query_text: str, record_ids: Sequence[str], models: ModelServer
    ) -> tuple[Sequence[str], list[str]]:
        if len(record_ids) < 2:
            return record_ids, []
        by_id = {record.id: record for record in self.records.all}
        texts = [by_id[record_id].text[:_TEXT_CHARACTERS] for record_id in record_ids]
        try:
            async with asyncio.timeout(RERANK_TIME_S):
                scores = await models.rerank(query_text, texts)
        except ToolError as error:
            return record_ids, [f"Not reranked: {error}."]
        except TimeoutError:
            return record_ids, ["Not reranked: the model server took too long."]
        return list(_best_first(dict(zip(record_ids, scores, strict=True)))), []


def _noise_cosine(model: str) -> float:
    name = model.rsplit("/", 1)[-1]
    return next((cosine for known, cosine in _NOISE_COSINES.items() if name.startswith(known)), _NOISE_COSINE)


def _full_text(record: Record) -> str:
    return "\n".join((record.text, record.role, str(record.year or ""), *map(str, record.details.values())))


def _stems(text: str) -> list[str]:
    return [token.stem for token in tokens(text) if not token.is_stopword]


def _ranked(scores: Mapping[str, float]) -> RankedList:
    return RankedList(list(scores), list(scores.values()))


def _best_first(scores: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(scores.items(), key=lambda item: -item[1]))
