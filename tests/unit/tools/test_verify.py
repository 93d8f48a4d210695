"""verify: a claim, looked up and judged."""

from __future__ import annotations

from typing import Any

import pytest

from kit import grounding
from services.tools.documents import CollectionNotAllowed
from services.tools.errors import ToolError
from services.tools.passages.retrieval import Degradation
from services.tools.toolbox.evidence.verify import NotAClaim, verify
from tests.unit.tools.document_fakes import FakeDocuments, tool_context
from tests.unit.tools.search_fakes import FakeModels, FakeRetriever


@pytest.fixture
def retriever() -> FakeRetriever:
    retriever = FakeRetriever()
    retriever.add(
        "tower",
        "The tower was built in 1889 by Gustave Eiffel. It is 330 metres high.",
        "Visitors may not use the stairs at night.",
    )
    retriever.add("law", "Der Turm wurde 1889 von Gustave Eiffel gebaut.", "Башня построена в 1889 году в Париже.")
    retriever.add("secret", "The vault was moved to Basel in 1950.", collection_id="vault")
    return retriever


def _context(retriever: FakeRetriever, *collection_ids: str, models: FakeModels | None = None) -> Any:
    documents = FakeDocuments(collections={"default", "vault"})
    return tool_context(
        retriever=retriever, documents=documents, collection_ids=collection_ids, models=models or FakeModels()
    )


@pytest.mark.parametrize(
    "claim",
    [
        "The tower was built in 1889.",
        "Gustave Eiffel built the tower in 1889.",
        "Visitors may not use the stairs at night.",
        "Der Turm wurde 1889 gebaut.",
        "Башня построена в 1889 году.",
    ],
)
async def test_a_claim_that_a_passage_carries_is_supported(retriever: FakeRetriever, claim: str) -> None:
    output = await verify(_context(retriever), claim)
    assert output.content["verdict"] == "supported"
    assert output.content["confidence"] >= grounding.SUPPORT_THRESHOLD
    first = output.content["evidence"][0]
    assert first["says"] == "supports"
    assert first["source"]["quote"] in first["source"]["text"]
    assert [each.chunk_id for each in output.passages] == [each["chunk_id"] for each in output.content["evidence"]]
    assert output.summary == f"The documents support “{claim}”."


@pytest.mark.parametrize(
    "claim",
    [
        "The tower was built in 1890.",  # another number
        "The tower was built in 1889 by Jean Nouvel.",  # another name
        "Visitors may use the stairs at night.",  # denied
        "The tower was not built in 1889.",
    ],
)
async def test_a_claim_that_a_passage_denies_or_tells_otherwise_is_no_more_than_unclear(
    retriever: FakeRetriever, claim: str
) -> None:
    output = await verify(_context(retriever), claim)
    assert output.content["verdict"] == "contradicted_or_unclear"
    assert output.content["confidence"] < grounding.SUPPORT_THRESHOLD
    assert output.content["evidence"][0]["says"] == "disagrees"


@pytest.mark.parametrize("claim", ["The restaurant serves oysters.", "The tower hosts weddings on Sundays."])
async def test_a_claim_that_no_passage_speaks_of_is_unsupported(retriever: FakeRetriever, claim: str) -> None:
    output = await verify(_context(retriever), claim)
    assert (output.content["verdict"], output.content["evidence"], output.passages) == ("not_found", [], ())
    assert output.content["confidence"] < grounding.SUPPORT_THRESHOLD


async def test_passages_that_disagree_leave_a_claim_unclear(retriever: FakeRetriever) -> None:
    retriever.add("other", "The tower was not built in 1889 by Gustave Eiffel.")
    output = await verify(_context(retriever), "The tower was built in 1889 by Gustave Eiffel.")
    assert output.content["verdict"] == "contradicted_or_unclear"
    assert {each["says"] for each in output.content["evidence"]} == {"supports", "disagrees"}


async def test_a_claim_of_several_sentences_is_as_good_as_its_worst(retriever: FakeRetriever) -> None:
    output = await verify(_context(retriever), "The tower was built in 1889. The restaurant serves oysters.")
    assert output.content["verdict"] == "not_found"
    verdicts = {sentence: each["verdict"] for sentence, each in output.content["sentences"].items()}
    assert verdicts == {
        "The tower was built in 1889.": "supported",
        "The restaurant serves oysters.": "not_found",
    }


async def test_a_short_claim_is_read_with_its_question(retriever: FakeRetriever) -> None:
    output = await verify(_context(retriever), "330 metres.", question="How high is the tower?")
    assert output.content["verdict"] == "supported"


async def test_a_bound_call_is_judged_by_what_it_may_read(retriever: FakeRetriever) -> None:
    claim = "The vault was moved to Basel in 1950."
    assert (await verify(_context(retriever), claim)).content["verdict"] == "supported"
    assert (await verify(_context(retriever, "default"), claim)).content["verdict"] == "not_found"
    assert (await verify(_context(retriever), claim, document_ids=["tower"])).content["verdict"] == "not_found"
    with pytest.raises(CollectionNotAllowed):
        await verify(_context(retriever, "default"), claim, collection_ids=["vault"])


@pytest.mark.parametrize("claim", ["Yes.", "Was the tower built in 1889?", "..."])
async def test_what_claims_nothing_is_refused(retriever: FakeRetriever, claim: str) -> None:
    with pytest.raises(NotAClaim, match="full sentence"):
        await verify(_context(retriever), claim)


async def test_a_page_of_claims_is_refused(retriever: FakeRetriever) -> None:
    with pytest.raises(NotAClaim, match="at most 8"):
        await verify(_context(retriever), "The tower was built in 1889. " * 9)
    assert retriever.queries == []


async def test_a_search_in_a_lesser_way_is_told_with_the_verdict(retriever: FakeRetriever) -> None:
    retriever.degraded = [Degradation("dense", "EMBEDDER_UNAVAILABLE", "Only words were searched for.")]
    output = await verify(_context(retriever), "The restaurant serves oysters.")
    assert output.content["degraded"][0]["reason"] == "EMBEDDER_UNAVAILABLE"
    assert "Only words were searched for." in output.summary


async def test_judge_that_is_not_accurate_enough_never_says_supported(retriever: FakeRetriever) -> None:
    context = _context(retriever, models=FakeModels(is_measured=False))
    output = await verify(context, "The tower was built in 1889 by Gustave Eiffel.")
    assert output.content["verdict"] == "similar_wording"
    assert output.content["evidence"][0]["says"] == "is similar"
    assert output.content["checked_by"] == {"name": "fake/1", "measured": False}


async def test_words_decide_without_the_model_server_and_it_is_said(retriever: FakeRetriever) -> None:
    away = FakeModels(ToolError("the model server does not answer", reason="MODEL_SERVER_UNAVAILABLE"))
    output = await verify(_context(retriever, models=away), "Gustave Eiffel built the tower in 1889.")
    assert (output.content["verdict"], output.content["checked_by"]["name"]) == ("similar_wording", "words")
    assert output.content["degraded"][0]["part"] == "verify"
