"""Words are found in other forms than those they stand in, in each language. tantivy, and a real Elasticsearch server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.retriever.models import LexicalQuery, RevisionKey
from services.retriever.ports import LexicalIndex
from tests.contract.retriever_index_contract import SCOPE, store
from tests.contract.retriever_servers import elasticsearch_over_real_server
from tests.contract.test_lexical_index import tantivy


@dataclass(frozen=True)
class Case:
    """`queries` find `text`, which is in `language`, and not `other`, which is as well."""

    language: str
    text: str
    other: str
    queries: tuple[str, ...]


CASES = [
    Case(
        "en",
        "The committee approved both pension policies.",
        "The garden is closed in winter.",
        ("approving a policy", "committees", "PENSIONS"),
    ),
    Case(
        "ru",
        "Договор об аренде квартиры заключён на одиннадцать месяцев.",
        "Погода сегодня хорошая.",
        ("договоры", "аренда квартир", "месяц", "ДОГОВОРА", "заключен"),
    ),
    Case(
        "de",
        "Die Häuser an der Straße gehören mehreren Eigentümern in München.",
        "Das Wetter ist heute schön.",
        ("Haus", "Strassen", "Eigentümer", "Eigentuemer", "hausern", "Muenchen"),
    ),
    Case(
        "he",
        "הַמִּסְמָכִים נשלחו אל המשרדים בירושלים.",
        "מזג האוויר נאה היום.",
        ("מסמך", "המסמך", "ובמסמכים", "משרד", "לירושלים", "ירושלים"),
    ),
    Case(
        "ar",
        "وقّع المهندسون على الاتفاقية في إدارة المدينة.",
        "الطقس جميل اليوم.",
        ("مهندس", "والمهندسين", "اتفاقية", "ادارة", "بالمدينة", "مدينــة"),
    ),
    Case(
        "fr",
        "L'assurance couvre les dégâts causés par les inondations.",
        "Il fait beau aujourd'hui.",
        ("assurances", "inondation", "degat", "dégât"),
    ),
    Case(
        "es",
        "Las informaciones sobre los contratos son públicas.",
        "Hoy hace buen tiempo.",
        ("información", "contrato", "publico"),
    ),
    Case("tr", "İstanbul'daki kitaplar kütüphanede.", "Bugün hava güzel.", ("kitap", "istanbul")),
    Case("el", "Οι συμβάσεις υπογράφηκαν χθες.", "Ο καιρός είναι καλός.", ("σύμβαση", "ΣΥΜΒΑΣΗ")),
    Case("pl", "Umowa z bankiem w Łodzi.", "Pogoda jest dobra.", ("lodzi", "umowa", "ŁODZI")),
    Case("zh", "合同将于年底终止。", "今天天气很好。", ("合同", "终止合同")),
    Case("ja", "契約は年末に終了します。", "今日はいい天気です。", ("契約", "契約の終了")),
    Case("ko", "계약은 연말에 종료됩니다.", "오늘 날씨가 좋습니다.", ("계약", "계약이")),
    Case("th", "สัญญาสิ้นสุดเมื่อสิ้นปี", "อากาศดี", ("สัญญา",)),
    Case("hi", "अनुबंध वर्ष के अंत में समाप्त होता है।", "मौसम अच्छा है।", ("अनुबंध",)),
    Case("fa", "قرارداد در پایان سال تمام می‌شود.", "هوا خوب است.", ("قرارداد", "میشود")),
]
CASE_NAMES = [case.language for case in CASES]


@pytest.fixture(params=["tantivy", "elasticsearch"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def index(engine: str, tmp_path: Path) -> AsyncIterator[LexicalIndex]:
    async with tantivy(tmp_path) if engine == "tantivy" else elasticsearch_over_real_server() as made:
        yield made


async def found(index: LexicalIndex, query_text: str, *languages: str) -> list[str]:
    (hits,) = await index.search(SCOPE, [LexicalQuery(query_text, (), languages)], 10)
    return [hit.stored.chunk.text for hit in hits]


async def keep(index: LexicalIndex, case: Case) -> None:
    key = RevisionKey("local", f"d{case.language}", f"r{case.language}")
    await store(index, key, [case.text, case.other], language=case.language)


@pytest.mark.parametrize("case", CASES, ids=CASE_NAMES)
async def test_other_forms_of_a_word_find_it(index: LexicalIndex, case: Case) -> None:
    await keep(index, case)
    for query_text in case.queries:
        assert await found(index, query_text, case.language) == [case.text], query_text


async def test_each_language_is_found_in_a_mixed_collection(index: LexicalIndex) -> None:
    await asyncio.gather(*(keep(index, case) for case in CASES))
    languages = tuple(case.language for case in CASES)
    for case in CASES:
        for query_text in case.queries:
            assert (await found(index, query_text, *languages))[0] == case.text, query_text


async def test_every_language_is_searched_when_none_is_known(index: LexicalIndex) -> None:
    await asyncio.gather(*(keep(index, case) for case in CASES))
    for case in CASES:
        assert (await found(index, case.queries[0]))[0] == case.text


async def test_a_word_of_another_language_is_found_as_it_is_written(index: LexicalIndex) -> None:
    text = "Die Firma betreibt Kubernetes und OpenSearch."
    await store(index, RevisionKey("local", "d1", "r1"), [text], language="de")
    assert await found(index, "kubernetes", "de") == [text]
    assert await found(index, "kubernetes") == [text]


async def test_text_of_unknown_language_is_found_whatever_else_is_there(index: LexicalIndex) -> None:
    await store(index, RevisionKey("local", "d1", "r1"), ["invoices X-100"])
    assert await found(index, "invoice", "ru", "he") == ["invoices X-100"]


async def test_stop_words_are_those_of_the_language_of_the_query(index: LexicalIndex) -> None:
    german, english = "Wie die Pflanzen sterben", "How plants die"
    await store(index, RevisionKey("local", "d1", "r1"), [german, "die und der und das"], language="de")
    await store(index, RevisionKey("local", "d2", "r2"), [english, "of the and in"], language="en")
    assert await found(index, "was ist mit den Pflanzen", "de", "en") == [german]
    assert english in await found(index, "why did they die", "de", "en")


async def test_a_quoted_phrase_counts_in_each_language(index: LexicalIndex) -> None:
    texts = [
        "договоры разные и старые аренды и аренды",
        "это был договор аренды и ничего больше не сказано здесь вообще",
    ]
    await store(index, RevisionKey("local", "d1", "r1"), texts, language="ru")
    assert (await found(index, "«договора аренды»", "ru"))[0] == texts[1]


async def test_a_chunk_taken_for_another_language_does_not_come_first(tmp_path: Path) -> None:
    """Its terms are the rarest of the collection, only because nobody else's words were stemmed like its own."""
    english = [f"The policies of region {number} cover floods." for number in range(40)]
    best = "Policies on pensions and policies on floods: the committee wrote both policies."
    async with tantivy(tmp_path) as index:
        await store(index, RevisionKey("local", "den", "ren"), [*english, best], language="en")
        mistaken = "Notes on policies, gathered in passing, with many other words about weather and gardens in winter."
        await store(index, RevisionKey("local", "dit", "rit"), [mistaken], language="it")
        assert (await found(index, "policies on pensions", "en", "it"))[0] == best
        ranked = await found(index, "policies", "en", "it")
        assert ranked[0] == best
        assert mistaken not in ranked[:3]
