"""rerank, compose_context and dedup_diversify: the passages that they are given, in a better order or fewer of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.llm import estimate_tokens
from services.tools.errors import InvalidArguments, ToolError
from services.tools.models import ToolOutput
from services.tools.passages.given import PassagesNotFound
from services.tools.passages.rendering import cut, fitted
from services.tools.passages.selection import best_outside
from services.tools.toolbox.evidence.compose_context import compose_context
from services.tools.toolbox.evidence.dedup_diversify import dedup_diversify
from services.tools.toolbox.evidence.rerank import rerank
from tests.unit.tools.document_fakes import tool_context
from tests.unit.tools.search_fakes import FakeModels, FakeRetriever, make_passage

FACTS = [
    "The notice period is six weeks to the end of a quarter for all employees.",
    "Our canteen opens at noon and serves two dishes on every working day.",
    "During probation, the notice period is two weeks from any day of a month.",
]
AWAY = ToolError("the model server does not answer now; try again in a minute", reason="MODEL_SERVER_UNAVAILABLE")


@pytest.fixture
def retriever() -> FakeRetriever:
    retriever = FakeRetriever()
    retriever.add("d1", *FACTS)
    retriever.add("d2", FACTS[0], collection_id="other")
    return retriever


@pytest.fixture
def models() -> FakeModels:
    return FakeModels()


@pytest.fixture
def context(retriever: FakeRetriever, models: FakeModels) -> Any:
    return tool_context(retriever=retriever, models=models)


IDS = ["d1-0", "d1-1", "d1-2"]


def _ids(output: ToolOutput, key: str = "hits") -> list[str]:
    return [passage["chunk_id"] for passage in output.content[key]]


async def test_passages_are_ordered_by_the_model_servers_scores(context: Any) -> None:
    output = await rerank(context, "notice period during probation", ["d1-1", "d1-0", "d1-2"], top_n=2)
    assert _ids(output) == ["d1-2", "d1-0"]
    assert [hit["score"] for hit in output.content["hits"]] == [4.0, 2.0]
    assert [each.chunk_id for each in output.passages] == ["d1-2", "d1-0"]
    assert output.summary == "2 passages from 1 document reordered for “notice period during probation”."


async def test_texts_that_are_no_passages_are_ordered_and_cannot_be_cited(context: Any) -> None:
    texts = [{"id": "mine", "text": "about cats"}, {"text": "about the notice period"}]
    output = await rerank(context, "notice period", passages=texts)
    assert _ids(output) == ["text 2", "mine"]
    assert output.passages == ()


async def test_without_the_model_server_the_order_given_stands_and_it_is_said(context: Any, models: FakeModels) -> None:
    models.error = AWAY
    output = await rerank(context, "notice period during probation", IDS)
    assert _ids(output) == IDS
    assert all("score" not in hit for hit in output.content["hits"])
    [degraded] = output.content["degraded"]
    assert (degraded["part"], degraded["reason"]) == ("rerank", "MODEL_SERVER_UNAVAILABLE")
    assert "in the order given" in output.summary


@pytest.mark.parametrize("tool", [rerank, compose_context, dedup_diversify])
async def test_what_may_not_be_read_does_not_come_in(retriever: FakeRetriever, models: FakeModels, tool: Any) -> None:
    bound = tool_context(retriever=retriever, models=models, collection_ids=["default"])
    words = {"query": "notice"} if tool is rerank else {}
    output = await tool(bound, chunk_ids=["d2-0", "d1-1", "gone"], **words)
    assert [each.chunk_id for each in output.passages] == ["d1-1"]
    assert output.content["not_found"] == ["d2-0", "gone"]
    assert "2 of the ids are unknown or gone." in output.summary
    with pytest.raises(PassagesNotFound):
        await tool(bound, chunk_ids=["d2-0"], **words)


@pytest.mark.parametrize("arguments", [{}, {"chunk_ids": ["d1-0"], "passages": [{"text": "a"}]}])
@pytest.mark.parametrize("tool", [compose_context, dedup_diversify])
async def test_ids_and_texts_are_given_one_or_the_other(context: Any, tool: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments, match="either chunk_ids or passages"):
        await tool(context, **arguments)


async def test_a_context_has_the_best_passages_outside_and_each_text_once(
    context: Any, retriever: FakeRetriever
) -> None:
    facts = [f"Rule {number} says that room {number * 11} is closed." for number in range(5)]
    retriever.add("d3", *facts, facts[0])
    output = await compose_context(context, [f"d3-{number}" for number in (0, 1, 5, 2, 3, 4)])
    assert _ids(output, "passages") == ["d3-0", "d3-2", "d3-4", "d3-3", "d3-1"]
    assert [each.chunk_id for each in output.passages] == _ids(output, "passages")
    assert output.content["repeated"] == ["d3-5"]


async def test_a_context_keeps_to_its_budget_and_names_what_is_left_out(context: Any, retriever: FakeRetriever) -> None:
    retriever.add("d3", *[f"Rule {number} is about rooms. " * 20 for number in range(6)])
    ids = [f"d3-{number}" for number in range(6)]
    output = await compose_context(context, ids, max_tokens=400)
    shown = _ids(output, "passages")
    assert sum(estimate_tokens(passage["source"]["text"]) for passage in output.content["passages"]) <= 400
    assert output.content["tokens"] <= 400
    assert sorted([*shown, *output.content["left_out"]]) == ids
    assert shown[0] == "d3-0"
    assert output.content["left_out"] == ids[len(shown) :]


@pytest.mark.parametrize(
    ("question", "coverage", "missing"),
    [
        ("What is the notice period?", 1.0, []),
        ("What is the notice period in Zurich?", 0.667, ["Zurich"]),
        ("Who is the chairman?", 0.0, ["chairman"]),
        ("Какой срок уведомления?", 0.0, ["срок", "уведомления"]),
    ],
)
async def test_a_context_tells_which_words_of_the_question_it_covers(
    context: Any, question: str, coverage: float, missing: list[str]
) -> None:
    output = await compose_context(context, IDS, question=question)
    assert (output.content["coverage"], output.content["missing"]) == (coverage, missing)
    assert f"{coverage:.0%}" in output.summary


async def test_coverage_is_counted_in_any_script(context: Any) -> None:
    passages = [{"text": "Срок уведомления составляет шесть недель."}, {"text": "退職の通知期間は六週間です。"}]
    output = await compose_context(context, passages=passages, question="Какой срок уведомления?")
    assert output.content["coverage"] == 1.0
    output = await compose_context(context, passages=passages, question="通知期間")
    assert output.content["coverage"] == 1.0


async def test_what_repeats_is_left_out_and_what_differs_is_chosen(context: Any, retriever: FakeRetriever) -> None:
    retriever.add("d3", FACTS[0], FACTS[0].replace("all", "All"), "The notice period is six weeks.", FACTS[1])
    output = await dedup_diversify(context, ["d3-0", "d3-1", "d3-2", "d3-3", "d2-0"], k=2)
    assert _ids(output) == ["d3-0", "d3-3"]
    assert {"id": "d2-0", "same_as": "d3-0", "why": "duplicate"} in output.content["removed"]
    assert [each.chunk_id for each in output.passages] == ["d3-0", "d3-3"]


async def test_relevance_alone_keeps_the_order_and_a_query_makes_one(context: Any) -> None:
    output = await dedup_diversify(context, IDS, relevance_weight=1.0)
    assert _ids(output) == IDS
    output = await dedup_diversify(context, IDS, query="canteen dishes", relevance_weight=1.0)
    assert _ids(output)[0] == "d1-1"


async def test_without_the_model_server_passages_are_compared_by_their_words(
    context: Any, retriever: FakeRetriever, models: FakeModels
) -> None:
    models.error = AWAY
    retriever.add("d3", FACTS[0], "The notice period is six weeks.", FACTS[1])
    output = await dedup_diversify(context, ["d3-0", "d3-1", "d3-2"], query="notice period", k=2)
    assert _ids(output)[0] == "d3-1"
    assert len(_ids(output)) == 2
    assert output.content["degraded"][0]["reason"] == "MODEL_SERVER_UNAVAILABLE"
    assert "by their words alone" in output.summary


async def test_an_original_stands_for_what_was_forwarded_of_it(context: Any, retriever: FakeRetriever) -> None:
    retriever.add("d3", FACTS[0], metadata={"forwarded_from": "news"})
    output = await dedup_diversify(context, ["d3-0", "d1-0"])
    assert _ids(output) == ["d1-0"]


@pytest.mark.parametrize(
    ("count", "order"), [(0, []), (1, [0]), (2, [0, 1]), (3, [0, 2, 1]), (4, [0, 2, 3, 1]), (6, [0, 2, 4, 5, 3, 1])]
)
def test_the_best_stand_first_and_last(count: int, order: list[int]) -> None:
    passages = [make_passage(str(number), "text") for number in range(count)]
    assert [int(passage.chunk_id) for passage in best_outside(passages)] == order


TEXTS = st.text(st.sampled_from("The 12 weeks. Срок! 期間。\n- |aA"), min_size=1, max_size=600)


@given(st.lists(TEXTS, max_size=8), st.integers(40, 400))
def test_no_passages_ever_take_more_than_the_budget(texts: list[str], budget: int) -> None:
    shown = fitted([make_passage(str(number), text) for number, text in enumerate(texts)], budget)
    assert sum(estimate_tokens(passage.text) for passage in shown) <= budget
    for passage, text in zip(shown, texts, strict=True):
        assert text.startswith(passage.text)
        assert passage.is_cut == (passage.text != text)
        assert passage.hit.chunk.text == passage.text


def test_a_text_without_sentences_or_spaces_is_cut_all_the_same() -> None:
    passage = cut(make_passage("c", "abc" * 2000), 50)
    assert 0 < estimate_tokens(passage.text) <= 50
