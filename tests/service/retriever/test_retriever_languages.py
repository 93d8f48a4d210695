"""Languages through the contract: what IndexChunks and ActivateRevision say of them decides how Search understands a query."""

from __future__ import annotations

import pytest
from groundwork.retriever.v1 import retriever_pb2 as pb

from kit.errors import InvalidArgument
from tests.service.retriever.conftest import Retriever

TEXTS = {
    "en": ("The committee approved both pension policies.", "approving a policy"),
    "ru": ("Договор об аренде квартиры заключён на одиннадцать месяцев.", "договоры аренды"),
    "de": ("Die Häuser gehören mehreren Eigentümern.", "welches Haus"),
    "he": ("המסמכים נשלחו אל המשרדים בירושלים.", "מסמך במשרד"),
    "ar": ("وقّع المهندسون على الاتفاقية.", "اتفاقية مهندس"),
}


async def found(local: Retriever, query_text: str) -> list[str]:
    answer = await local.search(query_text, strategy=pb.STRATEGY_LEXICAL)
    return [hit.chunk.text for hit in answer.hits]


async def test_inflected_words_are_found_in_every_language_of_a_collection(local: Retriever) -> None:
    for language, (text, _) in TEXTS.items():
        await local.publish(f"r{language}", [text], document_id=f"d{language}", language=language)
    for text, query_text in TEXTS.values():
        assert (await found(local, query_text))[0] == text


async def test_a_query_is_analysed_in_the_languages_that_are_active_now(local: Retriever) -> None:
    text, query_text = TEXTS["ru"]
    await local.publish("r1", [text], document_id="d1", language="ru")
    await local.publish("r2", [TEXTS["de"][0]], document_id="d2", language="de")
    assert await found(local, query_text) == [text]
    await local.publish("r3", ["Nothing of the kind."], number=2, document_id="d1", language="en")
    assert await found(local, query_text) == []
    assert await found(local, TEXTS["de"][1]) == [TEXTS["de"][0]]


async def test_what_is_no_language_is_refused(local: Retriever) -> None:
    count = await local.index("r1", ["solar"])
    with pytest.raises(InvalidArgument, match="languages"):
        await local.activate("r1", 1, count, languages=["English, mostly"])
