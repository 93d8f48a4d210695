"""Judges claims by a cross-encoder with entailment labels: a passage is the premise, the claim the hypothesis. It reads both
together, so nothing can be kept for the next claim."""

from collections.abc import Sequence
from dataclasses import dataclass

from kit.language.sentences import split_units
from services.reranker.batching.batching import Batcher
from services.reranker.embedding.preparation import PairPreparation, check_texts
from services.reranker.judging.judging import ClaimVerdict, JudgedClaim, JudgedPassage, check_citations
from services.reranker.judging.reading import joined
from services.reranker.models import EncodedText, Lane
from services.reranker.ports import Encoder

_LIKELY = 0.5
_PREMISE_CHARS = 1200
"""Of a passage that is judged at once: some 300 tokens, which leaves room for the claim in a window of 512."""


@dataclass(frozen=True)
class _Premise:
    """What a claim is judged against, and the place in the request that it stands for."""

    text: str
    passage: int
    start: int
    end: int


@dataclass(frozen=True)
class Entailment:
    """How likely a premise carries a claim, and how likely it contradicts it."""

    carries: float
    contradicts: float


class EntailmentJudging:
    """The use case behind JudgeClaims where a model with entailment labels is loaded. Its figures were not published."""

    def __init__(self, name: str, preparation: PairPreparation, batcher: Batcher, encoder: Encoder) -> None:
        self.name = name
        self.threshold = _LIKELY
        self.runtime = encoder.runtime
        self._preparation = preparation
        self._batcher = batcher
        self._encoder = encoder

    async def judge(
        self, claims: Sequence[JudgedClaim], passages: Sequence[JudgedPassage], timeout_s: float | None
    ) -> list[ClaimVerdict]:
        """One verdict per claim, in the order of `claims`: of the premise that carries it best."""
        check_texts([claim.text for claim in claims], "claims")
        check_texts([passage.text for passage in passages], "passages")
        check_citations(claims, len(passages))
        self._batcher.check_open(Lane.RERANK)
        premises = [
            _premises([(number, passages[number]) for number in dict.fromkeys(each.passages)]) for each in claims
        ]
        pairs = [
            ids
            for claim, own in zip(claims, premises, strict=True)
            for premise in own
            for ids in await self._preparation.token_ids(premise.text, [claim.text])
        ]
        found = iter(await self._batcher.submit(pairs, _entailment, Lane.RERANK, timeout_s, encoder=self._encoder))
        return [_verdict([(premise, next(found)) for premise in own]) for own in premises]

    def forget(self) -> None:
        """Nothing is remembered."""


def _entailment(text: EncodedText) -> Entailment:
    return Entailment(float(text.pooled[0]), float(text.pooled[2]))


def _premises(cited: Sequence[tuple[int, JudgedPassage]]) -> list[_Premise]:
    """Each passage in pieces of whole sentences; and where several short ones are cited, all of them together."""
    pieces = [
        _Premise(joined(passage.heading, passage.text[start:end]), number, start, end)
        for number, passage in cited
        for start, end in _pieces(passage.text)
    ]
    together = "\n".join(joined(passage.heading, passage.text) for _, passage in cited)
    if len(cited) > 1 and len(together) <= _PREMISE_CHARS:
        pieces.append(_Premise(together, cited[0][0], 0, len(cited[0][1].text)))
    return pieces


def _pieces(text: str) -> list[tuple[int, int]]:
    """Spans of whole sentences of at most _PREMISE_CHARS; a longer sentence is a piece of its own."""
    if len(text) <= _PREMISE_CHARS:
        return [(0, len(text))]
    spans: list[tuple[int, int]] = []
    for unit in split_units(text):
        if spans and unit.end <= spans[-1][1]:
            continue  # an item of a list that is a unit, too
        if spans and unit.end - spans[-1][0] <= _PREMISE_CHARS:
            spans[-1] = (spans[-1][0], unit.end)
        else:
            spans.append((unit.start, unit.end))
    return spans or [(0, len(text))]


def _verdict(judged: Sequence[tuple[_Premise, Entailment]]) -> ClaimVerdict:
    premise, best = max(judged, key=lambda each: each[1].carries)
    against = max(each.contradicts for _, each in judged)
    return ClaimVerdict(best.carries, premise.passage, premise.start, premise.end, min(against, 1.0 - best.carries))
