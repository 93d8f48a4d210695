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
        "Es kostet eintausendzweihundertfünfzig Komma fünf Euro bis siebenundzwanzigsten November zweitausendsechsundzwanzig um "
        "neun Uhr dreißig, zwölf Prozent mehr, nach 1 Tag.",
        "de",
    ),
    Case("until 31 March, on May 5, in 1987", "until thirty-first March, on May fifth, in nineteen eighty-seven"),
    Case("1 € and 1%", "one euro and one percent"),
    Case("am 27. November", "am siebenundzwanzigsten November", "de"),
    Case("der 1. Mai 1987", "der erste Mai neunzehnhundertsiebenundachtzig", "de"),
    Case("1 €, 1 %, 3,5 %", "ein Euro, ein Prozent, drei Komma fünf Prozent", "de"),
    Case("Es sind 27. Mehr nicht.", "Es sind siebenundzwanzig. Mehr nicht.", "de"),
    Case("15 дней, 2 недели, 2 дня", "пятнадцать дней, две недели, два дня", "ru"),
    Case("1 неделя, 21 документ, 22 страницы", "одна неделя, двадцать один документ, двадцать две страницы", "ru"),
    Case("1 день, 2 рабочих дня", "1 день, 2 рабочих дня", "ru"),
    Case("2 мужчины", "два мужчины", "ru"),
    Case("до 15 дней, не более 2 недель", "до пятнадцати дней, не более двух недель", "ru"),
    Case("в 15 случаях, с 20 сотрудниками", "в пятнадцати случаях, с двадцатью сотрудниками", "ru"),
    Case("до 2026-11-27", "до двадцать седьмого ноября две тысячи двадцать шестого года", "ru"),
    Case("27.11.2026 г.", "двадцать седьмого ноября две тысячи двадцать шестого г.", "ru"),
    Case("1 мая 1987 года", "первого мая тысяча девятьсот восемьдесят седьмого года", "ru"),
    Case("в 1987 году", "в тысяча девятьсот восемьдесят седьмом году", "ru"),
    Case("к 2026 году", "к две тысячи двадцать шестому году", "ru"),
    Case(
        "12 %, 1 %, до 12 %, до 21 %",
        "двенадцать процентов, один процент, до двенадцати процентов, до двадцати одного процента",
        "ru",
    ),
    Case("2,5 %", "две целых пять десятых процента", "ru"),
    Case("500 €, 2 $, до 500 ₽", "пятьсот евро, два доллара США, до пятисот российских рублей", "ru"),
    Case(
        "в 9:30, до 9:05, до 18:00, к 9:00",
        "в девять тридцать, до девяти ноль пяти, до восемнадцати часов, к 9:00",
        "ru",
    ),
    Case("עד 2026-11-27", "עד עשרים ושבעה בנובמבר אלפיים עשרים ושש", "he"),
    Case("27 בנובמבר", "עשרים ושבעה בנובמבר", "he"),
    Case("בשנת 1987", "בשנת אלף תשע מאות שמונים ושבע", "he"),
    Case("15 ימים, 2 שבועות, 3 שעות, 2 שנים", "חמישה עשר ימים, שני שבועות, שלוש שעות, שתי שנים", "he"),
    Case("20 עמודים, 17 כלבים", "עשרים עמודים, 17 כלבים", "he"),
    Case("12%, 1%, 500 ₪, 3 £", "שניים עשר אחוז, אחוז אחד, חמש מאות שקלים חדשים, שלוש לירה שטרלינג", "he"),
    Case("עד 9:05", "עד תשע אפס חמש", "he"),
    Case("2,5 %", "deux virgule cinq pour cent", "fr"),
    Case("It rains . Then it stops.", "It rains. Then it stops."),
    Case("[1]", ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_text_is_said_in_words(case: Case) -> None:
    assert spoken(case.text, case.language) == case.said


def test_document_is_named_without_its_ending() -> None:
    assert document_title("notes/staff_hand-book.pdf") == "staff hand book"
    assert document_title("_.pdf") == "_.pdf"
