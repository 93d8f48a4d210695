"""Text as it is said aloud."""

from dataclasses import dataclass

import pytest

from services.gateway.voice.wording import document_title, spoken


@dataclass(frozen=True)
class Case:
    text: str
    said: str
    language: str = "en"


CASES = [
    Case(
        "**28 days** of _leave_, until 2026-11-27 [1].",
        "twenty-eight days of leave, until November twenty-seventh, twenty twenty-six.",
    ),
    Case("See [the page](https://a.example/b) or https://www.foo.example/bar.", "See the page or foo.example."),
    Case("- It costs $1,250.50.", "It costs one thousand two hundred fifty point five US dollars."),
    Case("500 €", "five hundred euros"),
    Case("12.5% more on the 3rd of May at 9:05", "twelve point five percent more on the third of May at nine oh five"),
    Case("# Notice\n\na | b | 45", "Notice a, b, forty-five"),
    Case("COVID-19, A4, v2.1, +49 30 1234567, 0123, 2-3 days", "COVID-19, A4, v2.1, +49 30 1234567, 0123, 2-3 days"),
    Case("2026-13-40", "2026-13-40"),
    Case(
        "Es kostet 1.250,50 € bis 27.11.2026 um 9:30 Uhr, 12 % mehr, nach 1 Tag.",
        "Es kostet eintausendzweihundertfünfzig Komma fünf Euro bis siebenundzwanzigster November zweitausendsechsundzwanzig um "
        "neun Uhr dreißig, zwölf Prozent mehr, nach 1 Tag.",
        "de",
    ),
    Case("15 дней, 2 недели, до 2026-11-27", "пятнадцать дней, 2 недели, до 27 ноября 2026 года", "ru"),
    Case("עד 2026-11-27", "עד 27 בנובמבר 2026", "he"),
    Case("[1]", ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_text_is_said_in_words(case: Case) -> None:
    assert spoken(case.text, case.language) == case.said


def test_document_is_named_without_its_ending() -> None:
    assert document_title("notes/staff_hand-book.pdf") == "staff hand book"
    assert document_title("_.pdf") == "_.pdf"
