"""What the languages of a question and of passages mean for their ranks."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from services.retriever.indexes.chunk_encoding import decode, encode
from services.retriever.indexes.stored_chunk import Candidate
from services.retriever.models import RevisionKey, SearchPlan, SearchRequest, SearchScope
from services.retriever.options import SearchOptions
from services.retriever.searching.ranking import Ranking
from services.retriever.searching.strategy import plan_search
from tests.unit.retriever.fakes import make_chunk

KEY = RevisionKey("local", "d1", "r1")
LANGUAGES = {"own": "en", "noise": "en", "foreign": "zh", "unknown": ""}


def hits(scores: Mapping[str, float]) -> list[Candidate]:
    chunks = [make_chunk(name, key=KEY, chunk_id=name, language=LANGUAGES[name]) for name in scores]
    return [Candidate(decode(encode(chunk)), score) for chunk, score in zip(chunks, scores.values(), strict=True)]


def plan(**wanted: float) -> SearchPlan:
    request = SearchRequest(SearchScope("local", ("default",)), ("question",), **wanted)  # type: ignore[arg-type]
    return plan_search(request, 4, SearchOptions())


def ranking(lexical: bool = True) -> Ranking:
    dense = [hits({"foreign": 0.6, "own": 0.5, "noise": 0.3, "unknown": 0.2})]
    words = [hits({"noise": 10.0, "own": 9.0})] if lexical else []
    return Ranking(dense, words, lambda _: True)


def test_a_chunk_in_another_language_is_not_held_to_the_words_of_the_question() -> None:
    fused = ranking().fuse(plan(), spoken=[("en",)])
    assert fused == pytest.approx({"foreign": 0.97, "own": 0.825, "noise": 0.625, "unknown": 0.0})


def test_words_that_it_has_all_the_same_count_a_little() -> None:
    dense, words = [hits({"foreign": 0.6, "own": 0.5})], [hits({"own": 10.0, "foreign": 10.0})]
    fused = Ranking(dense, words, lambda _: True).fuse(plan(), spoken=[("en",)])
    assert fused == pytest.approx({"foreign": 1.07, "own": 0.5})


@pytest.mark.parametrize("spoken", [[], [None], [("en", "zh")]])
def test_weights_hold_for_all_where_the_question_may_be_in_each_language(spoken: list[tuple[str, ...] | None]) -> None:
    assert ranking().fuse(plan(), spoken=spoken) == pytest.approx(
        {"own": 0.825, "noise": 0.625, "foreign": 0.5, "unknown": 0.0}
    )


def test_a_question_in_a_language_of_no_chunk_is_ranked_by_vectors() -> None:
    assert list(ranking().fuse(plan(), spoken=[()])) == ["foreign", "own", "noise", "unknown"]


def test_weights_that_the_request_gives_hold_for_all_chunks() -> None:
    given = plan(dense_weight=1.0, lexical_weight=1.0)
    assert list(ranking().fuse(given, spoken=[("en",)])) == ["own", "noise", "foreign", "unknown"]


def test_one_engine_alone_ranks_by_its_scores() -> None:
    assert list(ranking(lexical=False).fuse(plan(), spoken=[("en",)])) == ["foreign", "own", "noise", "unknown"]


def test_each_query_has_languages_and_a_weight_of_its_own() -> None:
    dense = [hits({"foreign": 0.6, "own": 0.2}), hits({"own": 0.6, "foreign": 0.2})]
    words = [hits({"own": 5.0}), hits({"own": 5.0})]
    fused = Ranking(dense, words, lambda _: True).fuse(plan(), (3.0, 1.0), [("en",), ("zh",)])
    assert fused == pytest.approx({"foreign": 0.97 * 3 / 4, "own": 0.5 * 3 / 4 + 0.97 / 4 + 0.1 / 4})
