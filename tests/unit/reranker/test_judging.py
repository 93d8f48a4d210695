"""Judging claims: what the judge reads, what it compares, and the use case over the fakes."""

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
import pytest

from services.reranker.batching.batching import Batcher
from services.reranker.embedding.preparation import Preparation
from services.reranker.errors import JudgedPassageMissing, TextEmpty
from services.reranker.judging.cues import FINGERPRINT
from services.reranker.judging.features import ALIGNMENT, FEATURES, Alignment
from services.reranker.judging.judging import JudgedClaim, JudgedPassage, Judging
from services.reranker.judging.published import JudgeFigures, figures_of
from services.reranker.judging.reading import ReadText, concatenated, joined, number_value, read_text, with_vectors
from services.reranker.judging.verdicts import JUDGE, NETWORKS_FILE, check_model, model, probability_of, says_own_action
from services.reranker.reranking.passage_cache import TextCache
from tests.unit.reranker.conftest import RunBatcher
from tests.unit.reranker.fakes import FakeEncoder, WordTokenizer

_DIMENSION = 64
_FITTED_DIMENSION = 384
"""Of the vectors that the judge was fitted on."""


def pieces_of(chunks: Sequence[str]) -> list[list[str]]:
    """One piece a chunk between spaces, as the word tokenizer makes one token of each."""
    return [[f"▁{chunk}"] for chunk in chunks]


def read(text: str, heading: str = "") -> ReadText:
    """A text whose words have a fixed vector each."""
    words = joined(heading, text).split()
    tokens = np.stack(
        [np.random.default_rng(sum(map(ord, w.lower().strip(".,;")))).normal(size=_DIMENSION) for w in words]
    )
    pooled = np.ones(_DIMENSION, np.float32) / np.sqrt(_DIMENSION)
    return with_vectors(text, heading, read_text(text, heading, pieces_of), (tokens * 20).astype(np.int8), pooled)


def features(claim: str, passage: str, heading: str = "") -> dict[str, float]:
    return dict(zip(ALIGNMENT, Alignment(read(claim), read(passage, heading)).features(), strict=True))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,000", "1000"), ("2,5", "2.5"), ("14th", "14"), ("1 500", "1500"), ("3.10.2011", "3.10.2011")],
)
def test_numbers_are_compared_by_value(text: str, value: str) -> None:
    assert number_value(text) == value


def test_words_keep_their_place_and_their_sentence() -> None:
    text = "The lid opens. Do not wash it."
    found = read(text, "Manual")
    assert [word.surface for word in found.words] == ["Manual", "The", "lid", "opens", "Do", "not", "wash", "it"]
    assert [word.unit for word in found.words] == [0, 1, 1, 1, 2, 2, 2, 2]
    assert all(found.text[word.start : word.end] == word.surface for word in found.words)


def test_pieces_of_a_script_without_spaces_are_words_of_their_own() -> None:
    words, owners, _ = read_text("他在1999年", "", lambda _: [["▁", "他在", "1999", "年"]])
    assert [word.surface for word in words] == ["他在", "1999", "年"]
    assert len(owners) == 4


def test_words_beyond_the_window_are_left_out() -> None:
    words = read_text("one two three", "", pieces_of)
    found = with_vectors("one two three", "", words, np.ones((2, 4), np.int8), np.ones(4, np.float32))
    assert [word.surface for word in found.words] == ["one", "two"]


def test_a_number_that_the_passage_does_not_have_is_missing() -> None:
    passage = "Room Birch has 30 seats. Room Cedar has 6 seats."
    assert features("Room Birch has 36 seats.", passage)["numbers_missing"] == 1
    assert features("Room Birch has 30 seats.", passage)["numbers_missing"] == 0


def test_a_number_of_another_row_is_told_from_its_own() -> None:
    passage = "Room: Birch; Seats: 30\nRoom: Cedar; Seats: 6"
    own, other = (features(f"Room Cedar Seats {number}", passage)["number_row"] for number in (6, 30))
    assert own < other


def test_denials_are_counted_on_both_sides() -> None:
    found = features("The lid does not open.", "The lid opens.")
    assert (found["negation_claim"], found["negation_window"]) == (1, 0)


def test_every_feature_is_fitted() -> None:
    assert tuple(model()["features"]) == FEATURES
    assert model()["words"] == FINGERPRINT, "the words that features look for have changed: run scripts/judge/fit.py"
    assert 0.0 < probability_of([0.5] * len(FEATURES)) < 1.0


def test_model_that_was_fitted_for_other_features_or_networks_is_refused() -> None:
    file = NETWORKS_FILE.read_bytes()
    with pytest.raises(ValueError, match="other features; run"):
        check_model({**model(), "features": ["words"]}, file)
    with pytest.raises(ValueError, match=r"another judge\.npz; run"):
        check_model(model(), file + b"x")


@pytest.mark.parametrize(
    "claim",
    [
        "I have sent the letter to Colm.",
        "Done: the note is kept.",
        "Ich habe Herrn Dresel benachrichtigt.",
        "שלחתי את המכתב לקולם.",
    ],
)
def test_what_the_assistant_says_of_itself_is_no_claim_about_documents(claim: str) -> None:
    assert says_own_action(claim)


@pytest.mark.parametrize("claim", ["The committee has sent a letter.", "Colm will draft it.", "It is done by hand."])
def test_what_others_did_is(claim: str) -> None:
    assert not says_own_action(claim)


def test_passages_follow_one_another_as_one() -> None:
    both = concatenated([read("The lid opens."), read("Do not wash it.", "Care")])
    assert both.text == "The lid opens.\nCare\nDo not wash it."
    assert all(both.text[word.start : word.end] == word.surface for word in both.words)
    assert sorted({word.unit for word in both.words}) == [1, 2, 3]


def judging(batcher: Batcher, executor: Executor) -> Judging:
    """The use case over the fakes."""
    cache = TextCache[ReadText](1_000_000)
    return Judging("fake/cpu", Preparation(WordTokenizer(), executor), batcher, pieces_of, cache, executor)


async def test_verdict_names_the_sentence_that_decides(run_batcher: RunBatcher, executor: Executor) -> None:
    passages = [JudgedPassage("Nothing here.", "Notes"), JudgedPassage("Keep it dry. The lid opens at noon.", "Manual")]
    async with run_batcher(FakeEncoder(dimension=_FITTED_DIMENSION)) as batcher:
        (verdict,) = await judging(batcher, executor).judge(
            [JudgedClaim("The lid opens at noon.", [0, 1])], passages, 20.0
        )
    assert verdict.passage == 1
    assert passages[1].text[verdict.start : verdict.end] == "The lid opens at noon."
    assert 0.0 <= verdict.probability <= 1.0


async def test_passages_that_were_read_are_not_read_again_until_texts_are_forgotten(
    run_batcher: RunBatcher, executor: Executor
) -> None:
    encoder = FakeEncoder(dimension=_FITTED_DIMENSION)
    passage = JudgedPassage("The lid opens.")
    async with run_batcher(encoder) as batcher:
        judge = judging(batcher, executor)
        await judge.judge([JudgedClaim("It opens.", [0])], [passage], 20.0)
        first = sum(len(batch) for batch in encoder.batches)
        await judge.judge([JudgedClaim("It opens.", [0])], [passage], 20.0)
        assert sum(len(batch) for batch in encoder.batches) == first
        judge.forget()
        await judge.judge([JudgedClaim("It opens.", [0])], [passage], 20.0)
        assert sum(len(batch) for batch in encoder.batches) == 2 * first


@pytest.mark.parametrize(("cited", "said"), [([], "is empty"), ([1], "beyond the 1")])
async def test_claim_without_its_passage_is_refused(
    run_batcher: RunBatcher, executor: Executor, cited: list[int], said: str
) -> None:
    async with run_batcher(FakeEncoder(dimension=_FITTED_DIMENSION)) as batcher:
        with pytest.raises(JudgedPassageMissing, match=said):
            await judging(batcher, executor).judge([JudgedClaim("It opens.", cited)], [JudgedPassage("The lid.")], 20.0)


async def test_blank_claim_is_refused(run_batcher: RunBatcher, executor: Executor) -> None:
    async with run_batcher(FakeEncoder(dimension=_FITTED_DIMENSION)) as batcher:
        with pytest.raises(TextEmpty, match=r"claims\[0\]"):
            await judging(batcher, executor).judge([JudgedClaim(" ", [0])], [JudgedPassage("The lid.")], 20.0)


@pytest.mark.parametrize(
    ("false_passed", "true_failed", "gains", "is_good"),
    [
        (0.1, 0.1, {"sick": 0.1, "scifact": 0.2}, True),
        (0.2, 0.1, {"sick": 0.1}, False),
        (0.1, 0.2, {"sick": 0.1}, False),
        (0.1, 0.1, {"sick": 0.2, "scifact": -0.1}, False),
        (0.1, 0.1, {}, False),
    ],
)
def test_judge_may_say_supported_where_all_its_figures_are_good(
    false_passed: float, true_failed: float, gains: dict[str, float], is_good: bool
) -> None:
    assert JudgeFigures(false_passed, true_failed, 210, gains).are_good is is_good


def test_figures_of_the_judge_that_is_shipped_are_published() -> None:
    assert figures_of(JUDGE) is not None
