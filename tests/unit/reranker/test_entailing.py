"""Judging claims by a model with entailment labels: what it is shown, and what becomes of its answers."""

from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import numpy as np
import pytest

from services.reranker.embedding.preparation import PairPreparation
from services.reranker.errors import JudgedPassageMissing
from services.reranker.judging.entailing import EntailmentJudging
from services.reranker.judging.judging import JudgedClaim, JudgedPassage
from services.reranker.models import BatchLimits, Encoded, Float32, Int64, TokenIds
from tests.unit.reranker.conftest import RunBatcher

ENTAILS, SAYS_NOTHING, CONTRADICTS = (0.9, 0.08, 0.02), (0.1, 0.8, 0.1), (0.02, 0.08, 0.9)
Answer = Callable[[str, str], tuple[float, float, float]]
Made = Callable[[Answer], AbstractAsyncContextManager[tuple[EntailmentJudging, "Model"]]]


class Model:
    """A tokenizer that gives each pair a number, and an encoder that answers for the pair of that number."""

    window_tokens = 512
    dimension = 3
    runtime = "scripted/cpu"
    streams = 1

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.pairs: list[tuple[str, str]] = []

    def tokenize_pairs(self, query_text: str, passages: Sequence[str]) -> list[TokenIds]:
        first = len(self.pairs)
        self.pairs += [(query_text, passage) for passage in passages]
        return [np.array([number], np.int64) for number in range(first, len(self.pairs))]

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        rows: Float32 = np.array([self.answer(*self.pairs[number]) for number in input_ids[:, 0]], np.float32)
        return Encoded(rows)


@pytest.fixture
def judging(executor: Executor, run_batcher: RunBatcher) -> Made:
    @asynccontextmanager
    async def made(answer: Answer) -> AsyncIterator[tuple[EntailmentJudging, Model]]:
        model = Model(answer)
        async with run_batcher(model, BatchLimits(512, 32, 1, 10_000)) as batcher:
            yield EntailmentJudging("tiny", PairPreparation(model, executor), batcher, model), model

    return made


def says(words: str) -> Answer:
    """Carries a claim where the premise has the words, and contradicts it where it has "not"."""
    return lambda premise, claim: CONTRADICTS if "not" in premise else ENTAILS if words in premise else SAYS_NOTHING


async def test_passage_is_the_premise_with_its_heading_and_the_claim_the_hypothesis(judging: Made) -> None:
    async with judging(says("1889")) as (judge, model):
        passages = [JudgedPassage("Built in 1889.", "Tower"), JudgedPassage("Painted brown.")]
        (verdict,) = await judge.judge([JudgedClaim("It is of 1889.", [0])], passages, None)
        assert [claim for _, claim in model.pairs] == ["It is of 1889."]
        assert "Tower" in model.pairs[0][0]
        assert "Built in 1889." in model.pairs[0][0]
        assert verdict.probability == pytest.approx(0.9)
        assert (verdict.passage, verdict.start, verdict.end) == (0, 0, len("Built in 1889."))


async def test_claim_that_joins_passages_is_judged_against_all_of_them_together(judging: Made) -> None:
    async with judging(lambda premise, _: ENTAILS if "iron" in premise and "1889" in premise else SAYS_NOTHING) as (
        judge,
        _,
    ):
        passages = [JudgedPassage("Built in 1889."), JudgedPassage("It is of iron.")]
        (alone, together) = await judge.judge(
            [JudgedClaim("The iron tower is of 1889.", [0]), JudgedClaim("The iron tower is of 1889.", [0, 1])],
            passages,
            None,
        )
        assert alone.probability == pytest.approx(0.1)
        assert together.probability == pytest.approx(0.9)


async def test_contradiction_is_told_where_nothing_carries_the_claim(judging: Made) -> None:
    async with judging(says("1889")) as (judge, _):
        passages = [JudgedPassage("It was not built then."), JudgedPassage("Built in 1889.")]
        against, carried = await judge.judge(
            [JudgedClaim("It is.", [0]), JudgedClaim("It is.", [0, 1])], passages, None
        )
        assert against.contradiction == pytest.approx(0.9)
        assert carried.probability > carried.contradiction


async def test_long_passage_is_judged_in_pieces_of_whole_sentences(judging: Made) -> None:
    async with judging(says("1889")) as (judge, model):
        text = " ".join(f"Sentence {number} says little about towers." for number in range(100)) + " Built in 1889."
        (verdict,) = await judge.judge([JudgedClaim("It is of 1889.", [0])], [JudgedPassage(text)], None)
        assert len(model.pairs) > 1
        assert all(premise.startswith("Sentence") and premise.endswith(".") for premise, _ in model.pairs)
        assert "1889" in text[verdict.start : verdict.end]
        assert verdict.probability == pytest.approx(0.9)


async def test_claim_that_cites_nothing_is_refused(judging: Made) -> None:
    async with judging(says("")) as (judge, _):
        with pytest.raises(JudgedPassageMissing):
            await judge.judge([JudgedClaim("It is.", [])], [JudgedPassage("x")], None)
