"""In which language a chunk is: the detector on texts of a line, and what a document makes of its chunks."""

from __future__ import annotations

import pytest

from kit.language.detection import FastTextLanguages
from services.ingest.reading.chunks.languages import MAX_LANGUAGES, languages_of, with_languages
from services.ingest.reading.models import Chunk

TEXTS = {
    "en": "The contract ends at the end of the year unless one of the parties extends it.",
    "de": "Der Vertrag endet am Ende des Jahres, wenn ihn keine der Parteien verlängert.",
    "ru": "Договор заканчивается в конце года, если его не продлит одна из сторон.",
    "he": "החוזה מסתיים בסוף השנה, אלא אם כן אחד הצדדים מאריך אותו.",
    "ar": "ينتهي العقد في نهاية السنة ما لم يمدده أحد الطرفين.",
    "fr": "Le contrat prend fin à la fin de l'année, sauf si l'une des parties le prolonge.",
    "es": "El contrato termina al final del año, salvo que una de las partes lo prorrogue.",
    "it": "Il contratto termina alla fine dell'anno, salvo che una delle parti lo proroghi.",
    "pt": "O contrato termina no final do ano, a menos que uma das partes o prorrogue.",
    "nl": "Het contract eindigt aan het einde van het jaar, tenzij een van de partijen het verlengt.",
    "pl": "Umowa kończy się z końcem roku, chyba że jedna ze stron ją przedłuży.",
    "tr": "Sözleşme, taraflardan biri uzatmadıkça yıl sonunda sona erer.",
    "el": "Η σύμβαση λήγει στο τέλος του έτους, εκτός αν ένα από τα μέρη την παρατείνει.",
    "zh": "除非一方延长合同，否则合同将于年底终止。",
    "ja": "当事者の一方が延長しない限り、契約は年末に終了します。",
    "ko": "당사자 중 한 쪽이 연장하지 않는 한 계약은 연말에 종료됩니다.",
    "hi": "यदि कोई पक्ष इसे नहीं बढ़ाता है तो अनुबंध वर्ष के अंत में समाप्त हो जाता है।",
    "th": "สัญญาสิ้นสุดเมื่อสิ้นปี เว้นแต่ฝ่ายใดฝ่ายหนึ่งจะขยายเวลา",
}


class Certainly:
    """A detector that says what it was told, and counts."""

    def __init__(self, answers: dict[str, tuple[str, float]]) -> None:
        self.answers = answers
        self.texts: list[str] = []

    def detect(self, text: str) -> tuple[str, float]:
        self.texts.append(text)
        return next((answer for word, answer in self.answers.items() if word in text), ("", 0.0))


def chunks(*texts: str) -> list[Chunk]:
    return [Chunk(n, text, text, 0, len(text), 1, (), 1, "") for n, text in enumerate(texts)]


def detected(*texts: str, detector: Certainly | FastTextLanguages) -> list[str]:
    return [chunk.language for chunk in with_languages(chunks(*texts), detector)]


@pytest.fixture(scope="module")
def detector() -> FastTextLanguages:
    return FastTextLanguages()


@pytest.mark.parametrize("language", TEXTS)
def test_a_sentence_is_enough(detector: FastTextLanguages, language: str) -> None:
    assert detected(TEXTS[language], detector=detector) == [language]


def test_each_chunk_of_a_mixed_document_has_its_own_language(detector: FastTextLanguages) -> None:
    assert detected(*TEXTS.values(), detector=detector) == list(TEXTS)


@pytest.mark.parametrize(
    "text", ["", "12.5 | 17 | 31.12.2024", "—", "\n\n", "A-1", "https://example.org/quite/a/long/path?with=words"]
)
def test_what_has_no_words_has_no_language(detector: FastTextLanguages, text: str) -> None:
    assert detected(text, detector=detector) == [""]


def test_a_doubtful_chunk_is_in_the_language_of_its_document() -> None:
    detector = Certainly({"prose": ("de", 0.9), "names": ("fi", 0.6), "annex": ("en", 0.95)})
    texts = ["a long piece of prose, longer than the others are", "a list of names", "an annex of the thing", "1 2 3"]
    assert detected(*texts, detector=detector) == ["de", "de", "en", "de"]


def test_a_document_of_doubtful_chunks_has_no_language() -> None:
    detector = Certainly({"one": ("fi", 0.3), "two": ("la", 0.2), "three": ("eo", 0.2)})
    assert detected("code of one kind", "code of two kinds", "code of three kinds", detector=detector) == ["", "", ""]


def test_a_long_chunk_is_sampled() -> None:
    detector = Certainly({"middle": ("en", 1.0)})
    assert detected("start " * 5000 + "middle " * 50 + "ends " * 6000, detector=detector) == ["en"]
    assert all(len(text) <= 160 for text in detector.texts)


def test_languages_of_a_document_are_the_most_common_first() -> None:
    letters = "abcdefghijklmnopqrst"
    detector = Certainly({f"word {letter}.": (f"l{letter}", 1.0) for letter in letters})
    found = with_languages(chunks(*(f"a text with the word {letter}." for letter in "d" + letters + "dfd")), detector)
    assert languages_of(found)[:2] == ("ld", "lf")
    assert len(languages_of(found)) == MAX_LANGUAGES
    assert languages_of(chunks("nothing known")) == ()


def test_text_around_a_table_tells_the_language_of_a_chunk(detector: FastTextLanguages) -> None:
    rows = "\n".join(
        f"Sparte: {name}; 2024: {n},7; Kunden: {n} 200" for n, name in enumerate(("Strom", "Gas", "H2O") * 3)
    )
    assert detected(f"{TEXTS['de']}\n\n{rows}\n\n{TEXTS['de']}", detector=detector) == ["de"]
    assert detected(f"{rows}\n\n{TEXTS['de']}", detector=detector) == ["de"]


def test_ends_of_a_chunk_tell_its_language_only_where_they_are_certain() -> None:
    table = " ".join(["number column"] * 40)
    assert detected(f"likely {table}", detector=Certainly({"likely": ("ba", 0.7)})) == [""]
    assert detected(f"likely {table}", detector=Certainly({"likely": ("fr", 0.9)})) == ["fr"]
