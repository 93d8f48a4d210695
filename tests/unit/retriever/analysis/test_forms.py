"""Which forms of a word meet in one term, and which words stay apart, language by language."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from services.retriever.analysis.analyser import Analysis
from services.retriever.analysis.stems import ANALYSERS, FOLDED
from services.retriever.analysis.stop_words import STOP_WORDS
from services.retriever.analysis.words import words_of


@dataclass(frozen=True)
class Forms:
    """`together`: each line has forms of one word. `apart`: words that are not to be taken for each other."""

    language: str
    together: tuple[str, ...]
    apart: tuple[str, ...] = ()


CASES = [
    Forms(
        "ar",
        ("مهندس مهندسون والمهندسين", "مدينة المدينة بالمدينة", "مكتبة والمكتبة المكتبات", "إدارة ادارة"),
        ("مدينة مكتبة",),
    ),
    Forms("ca", ("assegurança assegurances", "contracte contractes")),
    Forms("cs", ("smlouva smlouvy smlouvu smlouvou", "město města městem"), ("smlouva město",)),
    Forms("da", ("kontrakt kontrakten kontrakter", "forsikring forsikringen forsikringer")),
    Forms(
        "de", ("Vertrag Verträge Vertraege Vertrages", "Kündigung Kündigungen", "Haus Häuser Häusern"), ("Haus Hase",)
    ),
    Forms("el", ("σύμβαση ΣΥΜΒΑΣΗ συμβάσεις", "πόλη πόλης πόλεις")),
    Forms("en", ("policy policies", "café cafes", "renovate renovated renovating renovation"), ("policy police",)),
    Forms(
        "es",
        (
            "ciudad ciudades",
            "gobierno gobiernos",
            "mujer mujeres",
            "propiedad propiedades",
            "juez jueces",
            "público publico",
        ),
        ("ciudad cuidado",),
    ),
    Forms("et", ("raamat raamatud raamatus",)),
    Forms("fa", ("قرارداد قراردادها",)),
    Forms("fi", ("talo talossa talosta", "kirja kirjat kirjassa")),
    Forms(
        "fr",
        (
            "dégât dégâts degat degats",
            "crédit crédits",
            "loi lois",
            "hôpital hôpitaux",
            "bureau bureaux",
            "jeu jeux",
            "emploi emplois",
            "réflexion réflexions",
            "prêt prêts",
        ),
        ("loi loin", "prêt près"),
    ),
    Forms("ga", ("conradh chonradh",)),
    Forms("he", ("מסמך המסמך ובמסמכים", "משרד המשרד", "ירושלים לירושלים")),
    Forms("hi", ("अनुबंध अनुबंधों", "लड़का लड़के लड़कों")),
    Forms("hu", ("szerződés szerződések szerződést", "ház házak házban")),
    Forms("hy", ("պայմանագիր պայմանագիրը",)),
    Forms("id", ("perjanjian perjanjiannya",)),
    Forms(
        "it", ("contratto contratti", "concerto concerti", "americano americani americana", "carabiniere carabinieri")
    ),
    Forms("lt", ("sutartis sutartys", "miestas miestai")),
    Forms("nl", ("contract contracten", "verzekering verzekeringen", "boek boeken")),
    Forms("no", ("kontrakt kontrakten kontrakter", "forsikring forsikringer")),
    Forms("pl", ("umowa umowy umowę", "miasto miasta miastem", "Łodzi lodzi ŁODZI")),
    Forms("pt", ("contrato contratos", "cidade cidades", "informação informações")),
    Forms("ro", ("contract contracte contractul", "definiție definiția")),
    Forms("ru", ("договор договора договоры договорами", "ещё еще", "город города городов"), ("город горло",)),
    Forms("sr", ("уговор уговора", "ugovor ugovora")),
    Forms("sv", ("avtal avtalet", "försäkring försäkringar")),
    Forms("ta", ("ஒப்பந்தம் ஒப்பந்தங்கள்",)),
    Forms("th", ("สัญญา",), ("สัญญา อากาศ",)),
    Forms(
        "tr",
        ("kitap kitaplar kitabı", "plan planları", "İSTANBUL İstanbul istanbul", "KIRMIZI kırmızı"),
        ("kitap kapı",),
    ),
    Forms("uk", ("місто міста містом", "країна країни країну")),
    Forms("vi", ("Hợp hợp",), ("ma má mã",)),
    Forms("xx", ("Zażółć zazolc", "ŒUVRE oeuvre", "ＡＢＣ abc"), ("umowa umowy",)),
]


@pytest.mark.parametrize("case", CASES, ids=[case.language for case in CASES])
def test_forms_of_a_word_meet_and_other_words_do_not(case: Forms) -> None:
    analysis = Analysis()
    for line in case.together:
        terms = {word: analysis.terms(word, case.language) for word in line.split()}
        assert len({tuple(each) for each in terms.values()}) == 1, terms
    for line in case.apart:
        terms = {word: analysis.terms(word, case.language) for word in line.split()}
        assert len({tuple(each) for each in terms.values()}) == len(terms), terms


@pytest.mark.parametrize("analyser", ANALYSERS)
def test_any_text_has_terms_that_an_engine_can_split_at_spaces(analyser: str) -> None:
    analysis = Analysis()
    for text in (
        "",
        "\x00",
        "\ud83d",
        "ם",
        "وال",
        "s",
        "a_b",
        "x" * 65,
        "👩‍👩‍👧",
        "a\u0301" * 1000,
        "ا" * 10_000,
        "\u0301",
    ):
        terms = analysis.terms(text, analyser)
        assert " ".join(terms).split() == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("東京都 is 終", ["東", "東京", "京", "京都", "都", "is", "終"]),
        ("タワー", ["タワ", "ワー"]),
        ("계약이", ["계약", "약이"]),
        ("ก", ["ก"]),
        ("การเงิน", ["การ", "เงิน", "การ", "ารเ", "รเง", "เงิ", "งิน", "กา", "าร"]),
    ],
)
def test_scripts_without_spaces_are_cut_into_words_and_overlapping_pieces(text: str, terms: list[str]) -> None:
    assert Analysis().terms(text, "") == terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ရေကန်သည် ဆိပ်ကမ်းအနီးတွင် ရှိသည်။", ("ရေ", "ရေကန်", "ဆိပ်ကမ်း")),
        ("ກະແຈຂອງຕະຫຼາດປາຢູ່ກັບຜູ້ຍາມ ແລະ ນ້ຳຢູ່ໃນໜອງ", ("ປາ", "ຕະຫຼາດ", "ກະແຈ", "ຍາມ", "ນ້ຳ", "ໜອງ", "ຫນອງ")),
        ("รถบรรทุกจอดอยู่หน้าโกดัง มีจำนวนน้ำมาก", ("รถ", "รถบรรทุก", "โกดัง", "น้ำ", "จำนวน")),
        ("សោរឃ្លាំងនៅជាមួយអ្នកយាម", ("ឃ្លាំង", "យាម", "សោរ")),
    ],
    ids=["Burmese", "Lao", "Thai", "Khmer"],
)
@pytest.mark.parametrize("language", ["", "th", "en"])
def test_a_single_word_finds_a_text_without_spaces(text: str, words: tuple[str, ...], language: str) -> None:
    terms = set(Analysis().terms(text, language))
    for word in words:
        assert any(terms.issuperset(found[:1]) for found in Analysis().query_terms(word, (language,))), word
    assert words_of("จำนวนน้ำ").in_order == words_of("จำนวน น้ำ").in_order


def test_every_language_with_stop_words_has_an_analyser() -> None:
    assert set(STOP_WORDS) <= set(ANALYSERS)


def test_each_term_of_a_query_stands_with_one_word_only() -> None:
    words = Analysis().query_terms("evolution of the evolutionary immune systems", ())
    terms = [term for word in words for term in word]
    assert len(terms) == len(set(terms))


def test_a_query_is_bounded_in_words_and_terms() -> None:
    words = Analysis().query_terms(" ".join(f"generations{number}s policies{number}ies" for number in range(500)), ())
    assert len(words) <= 128
    assert sum(map(len, words)) <= 384


def test_the_first_language_of_a_query_comes_first() -> None:
    assert Analysis().query_terms("policies", ("it", "en"))[0][0] == Analysis().terms("policies", "it")[0]
    assert Analysis().terms("policies", "tlh") == Analysis().terms("POLICIES", FOLDED or "xx")


@pytest.mark.parametrize(("language", "word"), [("de", "Geschäftsführerin"), ("tr", "müdürü"), ("fr", "dégâts")])
def test_word_with_accents_is_found_in_text_of_no_known_language(language: str, word: str) -> None:
    analysis = Analysis()
    (terms,) = analysis.query_terms(word, (language,))
    assert {*analysis.terms(word, language), *analysis.terms(word, "")} <= {*terms}


def test_vietnamese_word_is_not_looked_for_without_its_accents() -> None:
    assert Analysis().query_terms("trường", ("vi",)) == [("trường",)]
