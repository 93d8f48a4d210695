"""Judges claims against passages: reads both with the embedding model, and asks the fitted judge."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Protocol

from services.reranker.batching.batching import Batcher
from services.reranker.embedding.preparation import Preparation, check_texts
from services.reranker.errors import JudgedPassageMissing
from services.reranker.judging.reading import Pieces, ReadText, concatenated, joined, read_text, with_vectors
from services.reranker.judging.rules.table import RULES, Rule
from services.reranker.judging.verdicts import JUDGE, THRESHOLD, Judged, judge
from services.reranker.models import ContentVectors, Lane, TextKind
from services.reranker.reranking.passage_cache import TextCache


@dataclass(frozen=True)
class JudgedPassage:
    """A passage that may carry claims."""

    text: str
    heading: str = ""


@dataclass(frozen=True)
class JudgedClaim:
    """A statement, and the positions of the passages that it cites."""

    text: str
    passages: Sequence[int]


@dataclass(frozen=True)
class ClaimVerdict:
    """What the judge says of a claim."""

    probability: float
    passage: int
    """Position of the passage that holds the deciding span."""
    start: int
    end: int
    """The deciding span in the passage's text."""
    contradiction: float = 0.0
    """How likely the passages say the opposite; 0 where the judge cannot tell."""
    partial: float = 0.0
    """How likely they carry a part of the claim and not the rest; 0 where the judge cannot tell."""
    rules: tuple[str, ...] = ()
    """Names of the exact rules that speak against it."""
    without_rules: float | None = None
    """The probability but for the rules; None where there are none."""


class ClaimJudging(Protocol):
    """A judge of claims."""

    name: str
    """Figures are published under it."""
    runtime: str
    threshold: float
    """Probability from which on a claim counts as carried."""

    async def judge(
        self, claims: Sequence[JudgedClaim], passages: Sequence[JudgedPassage], timeout_s: float | None
    ) -> list[ClaimVerdict]:
        """One verdict per claim, in the order of `claims`."""
        ...

    def forget(self) -> None:
        """Drops what is remembered of passages."""


class Judging:
    """The learned judge. Passages are remembered: the next sentence of an answer mostly cites the same."""

    name = JUDGE

    def __init__(
        self,
        runtime: str,
        preparation: Preparation,
        batcher: Batcher,
        pieces_of: Pieces,
        cache: TextCache[ReadText],
        executor: Executor,
        rules: Sequence[Rule] = RULES,
    ) -> None:
        self.runtime = runtime
        self.threshold = THRESHOLD
        self._rules = rules
        self._preparation = preparation
        self._batcher = batcher
        self._pieces_of = pieces_of
        self._cache = cache
        self._executor = executor

    async def judge(
        self, claims: Sequence[JudgedClaim], passages: Sequence[JudgedPassage], timeout_s: float | None
    ) -> list[ClaimVerdict]:
        """One verdict per claim, in the order of `claims`. Each is judged against all passages that it cites together."""
        check_texts([claim.text for claim in claims], "claims")
        check_texts([passage.text for passage in passages], "passages")
        check_citations(claims, len(passages))
        self._batcher.check_open(Lane.RERANK)
        texts = [*passages, *(JudgedPassage(claim.text) for claim in claims)]
        known = {text: own for text in texts if (own := self._cache.get(_key(text))) is not None}
        vectors = await self._vectors([text for text in dict.fromkeys(texts) if text not in known], timeout_s)
        run = asyncio.get_running_loop().run_in_executor
        read, verdicts = await run(self._executor, self._read_and_judge, claims, texts, known, vectors)
        for text in dict.fromkeys(texts):
            self._cache.put(_key(text), read[text])
        return verdicts

    def forget(self) -> None:
        """Drops the passages that are remembered: one of them may be gone."""
        self._cache.clear()

    async def _vectors(
        self, texts: Sequence[JudgedPassage], timeout_s: float | None
    ) -> dict[JudgedPassage, ContentVectors]:
        """What the model makes of each text."""
        if not texts:
            return {}
        ids = await self._preparation.token_ids([joined(each.heading, each.text) for each in texts], TextKind.QUERY)
        vectors = await self._batcher.submit(ids, self._preparation.content_vectors, Lane.RERANK, timeout_s)
        return dict(zip(texts, vectors, strict=True))

    def _read_and_judge(
        self,
        claims: Sequence[JudgedClaim],
        texts: Sequence[JudgedPassage],
        known: Mapping[JudgedPassage, ReadText],
        vectors: Mapping[JudgedPassage, ContentVectors],
    ) -> tuple[dict[JudgedPassage, ReadText], list[ClaimVerdict]]:
        """The texts as they were read, and the verdicts. `texts`: the passages, then the claims."""
        read = {**known, **{text: self._read(text, each) for text, each in vectors.items()}}
        own = texts[len(texts) - len(claims) :]
        cited = [tuple(dict.fromkeys(claim.passages)) for claim in claims]
        together = {numbers: concatenated([read[texts[number]] for number in numbers]) for numbers in set(cited)}
        verdicts = [
            _verdict(
                judge(read[text], together[numbers], self._rules),
                [(number, read[texts[number]], texts[number]) for number in numbers],
            )
            for numbers, text in zip(cited, own, strict=True)
        ]
        return read, verdicts

    def _read(self, text: JudgedPassage, vectors: ContentVectors) -> ReadText:
        words = read_text(text.text, text.heading, self._pieces_of)
        return with_vectors(text.text, text.heading, words, vectors.tokens, vectors.pooled)


def _key(text: JudgedPassage) -> bytes:
    return sha256(f"{len(text.heading)} {joined(text.heading, text.text)}".encode()).digest()


def _verdict(judged: Judged, cited: Sequence[tuple[int, ReadText, JudgedPassage]]) -> ClaimVerdict:
    """Of all cited passages as one; the deciding span is put back into the one that holds it."""
    said = ClaimVerdict(
        judged.probability,
        cited[-1][0],
        0,
        0,
        judged.contradiction,
        judged.partial,
        judged.rules,
        judged.without_rules,
    )
    start, end = judged.span
    for number, passage, text in cited:
        if start <= len(passage.text):
            shift = len(joined(text.heading, ""))
            start, end = max(0, start - shift), max(0, min(end, len(passage.text)) - shift)
            return replace(said, passage=number, start=start, end=end)
        start, end = start - len(passage.text) - 1, end - len(passage.text) - 1
    return said


def check_citations(claims: Sequence[JudgedClaim], count: int) -> None:
    """Raises JudgedPassageMissing where a claim cites nothing, or a passage beyond the `count` of the request."""
    for index, claim in enumerate(claims):
        field = f"claims[{index}].passages"
        if not claim.passages:
            raise JudgedPassageMissing(f"{field} is empty; name the passages that the claim cites", field=field)
        if any(number >= count for number in claim.passages):
            raise JudgedPassageMissing(f"{field} names a passage beyond the {count} of the request", field=field)
