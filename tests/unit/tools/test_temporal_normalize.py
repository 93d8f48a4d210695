"""Words of time as dates, counted from Sunday, 22 November 2026, noon."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.language.data import LANGUAGES
from services.tools.errors import ToolError
from services.tools.toolbox.calculation.temporal_normalize import temporal_normalize

NOW = "2026-11-22T12:00:00"

# Text; what is found in it, as "expression: from to", with - where there is no limit. Midnight is left out.
CASES = """
    last month                        | last month: 2026-10-01 2026-11-01
    What happened last month?         | last month: 2026-10-01 2026-11-01
    last month's sales                | last month: 2026-10-01 2026-11-01
    this quarter                      | this quarter: 2026-10-01 2027-01-01
    next week                         | next week: 2026-11-23 2026-11-30
    yesterday                         | yesterday: 2026-11-21 2026-11-22
    the day before yesterday          | the day before yesterday: 2026-11-20 2026-11-21
    last Monday                       | last Monday: 2026-11-16 2026-11-17
    last Sunday                       | last Sunday: 2026-11-15 2026-11-16
    next Sunday                       | next Sunday: 2026-11-29 2026-11-30
    this Monday                       | this Monday: 2026-11-16 2026-11-17
    on Sunday                         | Sunday: 2026-11-22 2026-11-23
    last 7 days                       | last 7 days: 2026-11-15 2026-11-23
    in the past three months          | past three months: 2026-08-22 2026-11-23
    the last 24 hours                 | last 24 hours: 2026-11-21T12:00 2026-11-22T12:00
    in the next 2 weeks               | next 2 weeks: 2026-11-22 2026-12-07
    two weeks ago                     | two weeks ago: 2026-11-02 2026-11-09
    an hour ago                       | an hour ago: 2026-11-22T11:00 2026-11-22T12:00
    since March 3                     | since March 3: 2026-03-03 -
    since March 3, 2024               | since March 3, 2024: 2024-03-03 -
    since the beginning of the year   | since the beginning of the year: 2026-01-01 -
    until June 2024                   | until June 2024: - 2024-07-01
    before June 2024                  | before June 2024: - 2024-06-01
    after 2020                        | after 2020: 2021-01-01 -
    between March 2024 and May 2024   | between March 2024 and May 2024: 2024-03-01 2024-06-01
    between March and May             | between March and May: 2026-03-01 2026-06-01
    from March to May 2023            | from March to May 2023: 2023-03-01 2023-06-01
    from November to February         | from November to February: 2025-11-01 2026-03-01
    from December 2024 to February    | from December 2024 to February: 2024-12-01 2025-03-01
    from 3 to 5 March 2024            | from 3 to 5 March 2024: 2024-03-03 2024-03-06
    March 3-5, 2024                   | March 3-5, 2024: 2024-03-03 2024-03-06
    between 2020 and 2022             | between 2020 and 2022: 2020-01-01 2023-01-01
    2020–2022                         | 2020–2022: 2020-01-01 2023-01-01
    March 2023 and March 2024         | March 2023: 2023-03-01 2023-04-01; March 2024: 2024-03-01 2024-04-01
    in December                       | December: 2025-12-01 2026-01-01
    in November                       | November: 2026-11-01 2026-12-01
    last November                     | last November: 2025-11-01 2025-12-01
    next January                      | next January: 2027-01-01 2027-02-01
    May                               | May: 2026-05-01 2026-06-01
    February 29                       | February 29: 2024-02-29 2024-03-01
    3rd of March 2024                 | 3rd of March 2024: 2024-03-03 2024-03-04
    Sales in 2023                     | 2023: 2023-01-01 2024-01-01
    Sales figures for 2023?           | 2023: 2023-01-01 2024-01-01
    in the 1990s                      | 1990s: 1990-01-01 2000-01-01
    2024-03-05                        | 2024-03-05: 2024-03-05 2024-03-06
    2024-03                           | 2024-03: 2024-03-01 2024-04-01
    since 2024-03-05T10:00:00+02:00   | since 2024-03-05T10:00:00+02:00: 2024-03-05T08:00 -
    31.12.2023                        | 31.12.2023: 2023-12-31 2024-01-01
    03/04/2024                        | 03/04/2024: 2024-04-03 2024-04-04
    12/31/2023                        | 12/31/2023: 2023-12-31 2024-01-01
    2024-W12                          | 2024-W12: 2024-03-18 2024-03-25
    Q3 2023                           | Q3 2023: 2023-07-01 2023-10-01
    2023-Q3                           | 2023-Q3: 2023-07-01 2023-10-01
    Q1 results                        | Q1: 2026-01-01 2026-04-01
    third quarter of 2023             | third quarter of 2023: 2023-07-01 2023-10-01
    first half of 2024                | first half of 2024: 2024-01-01 2024-07-01
    the last week of March 2024       | March 2024: 2024-03-01 2024-04-01

    в январе 2024                     | январе 2024: 2024-01-01 2024-02-01
    новости РБК за январь             | январь: 2026-01-01 2026-02-01
    что делал @durov в августе 2023?  | августе 2023: 2023-08-01 2023-09-01
    новости за прошлую неделю         | прошлую неделю: 2026-11-09 2026-11-16
    за последние 3 месяца             | последние 3 месяца: 2026-08-22 2026-11-23
    за неделю                         | за неделю: 2026-11-15 2026-11-23
    за 2024 год                       | 2024 год: 2024-01-01 2025-01-01
    3 дня назад                       | 3 дня назад: 2026-11-19 2026-11-20
    неделю назад                      | неделю назад: 2026-11-09 2026-11-16
    позавчера                         | позавчера: 2026-11-20 2026-11-21
    в понедельник                     | понедельник: 2026-11-16 2026-11-17
    III квартал 2023 года             | III квартал 2023 года: 2023-07-01 2023-10-01
    во 2-м квартале 2024              | 2-м квартале 2024: 2024-04-01 2024-07-01
    первое полугодие 2023 года        | первое полугодие 2023 года: 2023-01-01 2023-07-01
    с 3 по 5 марта 2024 года          | с 3 по 5 марта 2024 года: 2024-03-03 2024-03-06
    с января по март 2024             | с января по март 2024: 2024-01-01 2024-04-01
    с прошлого месяца                 | с прошлого месяца: 2026-10-01 -
    с начала года                     | с начала года: 2026-01-01 -
    до марта 2024                     | до марта 2024: - 2024-03-01
    до конца марта 2024               | до конца марта 2024: - 2024-04-01
    после 1 мая 2023                  | после 1 мая 2023: 2023-05-02 -

    letzte Woche                      | letzte Woche: 2026-11-09 2026-11-16
    in den letzten zwei Wochen        | letzten zwei Wochen: 2026-11-08 2026-11-23
    im letzten Jahr                   | letzten Jahr: 2025-01-01 2026-01-01
    vor 3 Tagen                       | vor 3 Tagen: 2026-11-19 2026-11-20
    vorgestern                        | vorgestern: 2026-11-20 2026-11-21
    seit letztem Monat                | seit letztem Monat: 2026-10-01 -
    seit Anfang 2024                  | seit Anfang 2024: 2024-01-01 -
    bis Ende 2023                     | bis Ende 2023: - 2024-01-01
    3.–5. März 2024                   | 3.–5. März 2024: 2024-03-03 2024-03-06
    von 2020 bis 2022                 | von 2020 bis 2022: 2020-01-01 2023-01-01
    2. Quartal 2024                   | 2. Quartal 2024: 2024-04-01 2024-07-01
    KW 12 2024                        | KW 12 2024: 2024-03-18 2024-03-25
    am 3. Oktober                     | 3. Oktober: 2026-10-03 2026-10-04

    le mois dernier                   | mois dernier: 2026-10-01 2026-11-01
    les trois derniers mois           | trois derniers mois: 2026-08-22 2026-11-23
    il y a deux semaines              | il y a deux semaines: 2026-11-02 2026-11-09
    depuis janvier 2024               | depuis janvier 2024: 2024-01-01 -
    entre mars et mai 2024            | entre mars et mai 2024: 2024-03-01 2024-06-01
    premier trimestre 2024            | premier trimestre 2024: 2024-01-01 2024-04-01
    Qu'est-ce qui est arrivé hier ?   | hier: 2026-11-21 2026-11-22

    el mes pasado                     | mes pasado: 2026-10-01 2026-11-01
    últimos 7 días                    | últimos 7 días: 2026-11-15 2026-11-23
    hace dos semanas                  | hace dos semanas: 2026-11-02 2026-11-09
    desde el 3 de marzo de 2024       | desde el 3 de marzo de 2024: 2024-03-03 -
    entre enero y marzo de 2023       | entre enero y marzo de 2023: 2023-01-01 2023-04-01
    primer trimestre de 2024          | primer trimestre de 2024: 2024-01-01 2024-04-01

    settimana scorsa                  | settimana scorsa: 2026-11-09 2026-11-16
    vorige maand                      | vorige maand: 2026-10-01 2026-11-01
    先月                              | 先月: 2026-10-01 2026-11-01

    He has 2000 users                 |
    for 2000 dollars                  |
    5 may be wrong                    |
    It may help                       |
    life on Mars                      |
    Was ist hier passiert?            |
    version 2024.1.3 was released     |
    CVE-2024-12345                    |
    30 February 2024                  |
    9999 years ago                    |
    hello                             |
    12                                |
"""
ROWS = [tuple(part.strip() for part in line.split("|")) for line in CASES.splitlines() if line.strip()]


def _shown(time: str | None) -> str:
    return (time or "-").removesuffix("+00:00").removesuffix(":00").removesuffix("T00:00")


@pytest.mark.parametrize(("text", "expected"), ROWS, ids=[text for text, _ in ROWS])
def test_times_are_found_in_a_text(text: str, expected: str) -> None:
    found = temporal_normalize(text, reference_time=NOW)["expressions"]
    shown = [f"{one['text']}: {_shown(one['date_from'])} {_shown(one['date_to'])}" for one in found]
    assert "; ".join(shown) == expected


IN_EVERY_LANGUAGE = """
    en | since March 2024    | 2024-03-01 -
    de | seit März 2024      | 2024-03-01 -
    fr | depuis mars 2024    | 2024-03-01 -
    es | desde marzo de 2024 | 2024-03-01 -
    it | la settimana scorsa | 2026-11-09 2026-11-16
    pt | na semana passada   | 2026-11-09 2026-11-16
    nl | vorige week         | 2026-11-09 2026-11-16
    sv | förra veckan        | 2026-11-09 2026-11-16
    pl | 3 dni temu          | 2026-11-19 2026-11-20
    cs | před 3 dny          | 2026-11-19 2026-11-20
    ro | acum 3 zile         | 2026-11-19 2026-11-20
    tr | geçen hafta         | 2026-11-09 2026-11-16
    ru | 3 дня назад         | 2026-11-19 2026-11-20
    uk | минулого тижня      | 2026-11-09 2026-11-16
    el | πριν από 3 ημέρες   | 2026-11-19 2026-11-20
    ar | الأسبوع الماضي      | 2026-11-09 2026-11-16
    fa | هفته گذشته          | 2026-11-09 2026-11-16
    he | לפני 3 ימים         | 2026-11-19 2026-11-20
    hi | 3 दिन पहले          | 2026-11-19 2026-11-20
    th | สัปดาห์ที่แล้ว          | 2026-11-09 2026-11-16
    vi | tuần trước          | 2026-11-09 2026-11-16
    zh | 2024年3月            | 2024-03-01 2024-04-01
    ja | 2024年3月以降         | 2024-03-01 -
    ko | 지난 주              | 2026-11-09 2026-11-16
"""
LANGUAGE_ROWS = [
    tuple(part.strip() for part in line.split("|")) for line in IN_EVERY_LANGUAGE.splitlines() if line.strip()
]


@pytest.mark.parametrize(("code", "text", "expected"), LANGUAGE_ROWS, ids=[code for code, *_ in LANGUAGE_ROWS])
def test_every_language_has_words_of_time(code: str, text: str, expected: str) -> None:
    assert code in LANGUAGES
    (found,) = temporal_normalize(text, reference_time=NOW)["expressions"]
    assert f"{_shown(found['date_from'])} {_shown(found['date_to'])}" == expected


PIECES = (
    "last",
    "in",
    "since",
    "between",
    "and",
    "May",
    "31",
    "February",
    "99",
    "2024",
    "0000",
    "месяца",
    "назад",
    "9999",
    "years",
    "-",
)


@given(st.one_of(st.text(min_size=1, max_size=40), st.lists(st.sampled_from(PIECES), min_size=1).map(" ".join)))
def test_any_text_is_read(text: str) -> None:
    for found in temporal_normalize(text, reference_time=NOW)["expressions"]:
        assert found["text"] in " ".join(text.split()) or found["text"] in text
        assert not (found["date_from"] and found["date_to"]) or found["date_from"] < found["date_to"]


def test_dates_are_those_of_the_time_zone() -> None:
    found = temporal_normalize("last month", "Europe/Berlin", "2026-11-22T12:00:00Z")
    assert (found["date_from"], found["date_to"]) == ("2026-10-01T00:00:00+02:00", "2026-11-01T00:00:00+01:00")
    new_year = temporal_normalize("today", "Asia/Tokyo", "2026-12-31T16:00:00+00:00")
    assert new_year["date_from"] == "2027-01-01T00:00:00+09:00"


def test_hours_are_counted_across_a_change_of_the_clocks() -> None:
    found = temporal_normalize("last 24 hours", "Europe/Berlin", "2026-10-25T12:00:00+01:00")
    assert found["date_from"] == "2026-10-24T13:00:00+02:00"


def test_all_that_is_found_lies_between_the_dates() -> None:
    found = temporal_normalize("March 2024 and January 2023", reference_time=NOW)
    assert (found["date_from"][:10], found["date_to"][:10]) == ("2023-01-01", "2024-04-01")
    open_ended = temporal_normalize("January 2023, and everything since March 2024", reference_time=NOW)
    assert (open_ended["date_from"][:10], open_ended["date_to"]) == ("2023-01-01", None)
    nothing = temporal_normalize("hello", reference_time=NOW)
    assert (nothing["expressions"], nothing["date_from"], nothing["date_to"]) == ([], None, None)


def test_order_of_day_and_month_can_be_chosen() -> None:
    assert temporal_normalize("03/04/2024", date_order="MDY")["date_from"][:10] == "2024-03-04"


def test_without_a_reference_time_it_counts_from_now() -> None:
    today = temporal_normalize("today")
    assert today["date_from"] < today["date_to"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [({"timezone": "Mars/Olympus"}, "UNKNOWN_TIMEZONE"), ({"reference_time": "next Tuesday"}, "INVALID_TIME")],
)
def test_arguments_that_make_no_sense_are_named(arguments: dict[str, str], reason: str) -> None:
    with pytest.raises(ToolError) as error:
        temporal_normalize("today", **arguments)
    assert error.value.reason == reason


def test_the_service_starts_without_the_date_parser() -> None:
    script = "import sys, services.tools.toolbox.calculation.temporal_normalize; sys.exit('dateparser' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
