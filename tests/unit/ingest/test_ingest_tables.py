"""Which row of a table names its columns, and what is one value: as statements of accounts are printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.ingest.reading import detection
from services.ingest.reading.parsers.office.sheet_tables import sheet_blocks
from services.ingest.reading.parsers.pages.pdf_tables import Table, row_blocks
from services.ingest.reading.parsers.registry import parse
from services.ingest.reading.parsers.tables.rows import SPANNED, table_rows
from services.ingest.reading.parsers.tables.table_values import is_unit, is_value, with_raised
from tests.unit.ingest.office_files import docx_of, pptx_of
from tests.unit.ingest.pdf_files import pdf_of_contents, shown


@dataclass(frozen=True)
class Case:
    name: str
    rows: tuple[tuple[str, ...], ...]
    expected: tuple[str, ...]
    header_rows: int | None = None


S = SPANNED
CASES = (
    Case(
        "a row of values is no header",
        (("Revenue", "$ 12,842", "$ 11,003"), ("Cost of revenue", "561", "400")),
        ("Revenue; $ 12,842; $ 11,003", "Cost of revenue; 561; 400"),
    ),
    Case(
        "years name columns",
        (("", "2024", "2023"), ("Revenue", "12,842", "11,003")),
        ("Revenue; 2024: 12,842; 2023: 11,003",),
    ),
    Case(
        "years above years are values",
        (("Born", "1962", "1964"), ("Died", "2012", "2019")),
        ("Born; 1962; 1964", "Died; 2012; 2019"),
    ),
    Case(
        "signs join their numbers, and the names above either column stay",
        (("", "2024", "", "", "2023", "", ""), ("Revenue", "$", "12,842", "", "$", "(561", ")"),
         ("Margin", "", "95.6", "%", "", "4", "%")),
        ("Revenue; 2024: $12,842; 2023: $(561)", "Margin; 2024: 95.6%; 2023: 4%"),
    ),
    Case(
        "the mark of a footnote is no sign",
        (("", "2024", "", "2023"), ("Revenue", "12,842", "(a)", "11,003")),
        ("Revenue; 2024: 12,842; (a); 2023: 11,003",),
    ),
    Case(
        "groups span their columns",
        (("", "Three months", S, "Six months", S), ("", "2024", "2023", "2024", "2023"), ("Revenue", "1", "2", "3", "4")),
        ("Revenue; Three months / 2024: 1; Three months / 2023: 2; Six months / 2024: 3; Six months / 2023: 4",),
    ),
    Case(
        "a row of units belongs to the names of the columns",
        (("", "Note", "2023", "2022"), ("", "", "£m", "£m"), ("Revenue", "2", "512.3", "498.1"), ("Tax", "", "(12)", "(9)")),
        ("Revenue; Note: 2; 2023 (£m): 512.3; 2022 (£m): 498.1", "Tax; 2023 (£m): (12); 2022 (£m): (9)"),
    ),
    Case(
        "rows of words below a group are no header",
        (("", "Class", S), ("Anna", "yes", "no"), ("Ben", "no", "yes")),
        ("Anna; Class: yes; Class: no", "Ben; Class: no; Class: yes"),
    ),
    Case(
        "a cell as wide as the table is its caption",
        (("Duck", S), ("Kingdom", "Animalia"), ("Class", "Aves")),
        ("Duck", "Kingdom: Animalia", "Class: Aves"),
        header_rows=0,
    ),
    Case(
        "nothing says that a row of words is a header",
        (("North", "Oslo"), ("South", "Rome")),
        ("North: Oslo", "South: Rome"),
        header_rows=0,
    ),
    Case(
        "years above values are a header though nothing says so",
        (("in millions", "2024", "2023"), ("Revenue", "12", "11")),
        ("in millions: Revenue; 2024: 12; 2023: 11",),
        header_rows=0,
    ),
    Case(
        "a header that the file declares may hold numbers",
        (("Size", "10", "20"), ("Price", "3", "5")),
        ("Size: Price; 10: 3; 20: 5",),
        header_rows=1,
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rows_carry_the_names_of_their_columns(case: Case) -> None:
    assert tuple(block.text for block in table_rows(case.rows, header_rows=case.header_rows)) == case.expected


@pytest.mark.parametrize(
    "cell", ["12,842", "$ 12,842", "(561)", "$(1.5)", "-3", "−3", "4.5 %", "1 234,50 €", "US$5", "2023", "561 ²", "2024-03-01"]
)  # fmt: skip
def test_value_is_known_as_one(cell: str) -> None:
    assert is_value(cell)


@pytest.mark.parametrize("cell", ["", "$", ")", "—", "(a)", "Q1 2024", "Note 5", "A4", "9" * 10_000])
def test_what_is_no_number_is_no_value(cell: str) -> None:
    assert not is_value(cell)


@pytest.mark.parametrize(
    ("before", "raised", "expected"),
    [("561", "2", "561 ²"), ("10", "6", "10⁶"), ("10", "-3", "10⁻³"), ("110", "6", "110 ⁶"),
     ("561", "(a)", "561 (a)"), ("m", "2", "m2")],
)  # fmt: skip
def test_raised_digit_does_not_change_the_number_before_it(before: str, raised: str, expected: str) -> None:
    assert with_raised(before, raised) == expected


def test_group_printed_above_the_middle_of_its_columns_names_all_of_them() -> None:
    rows = (
        ("", "", "", "Redeemed", "", "Returned", ""),
        ("State", "Permit", "Hand", "Long", "Hand", "Long", "Total"),
        ("Ohio", "1", "2", "3", "4", "5", "15"),
    )
    table = Table((0, 0, 700, 30), rows, ((0, 0, 700, 10), (0, 10, 700, 20), (0, 20, 700, 30)))
    (row,) = row_blocks(table, 1)
    assert row.text == (
        "State: Ohio; Permit: 1; Redeemed / Hand: 2; Redeemed / Long: 3; Returned / Hand: 4; Returned / Long: 5; Total: 15"
    )
    assert row.lines[0].box == (0, 20, 700, 30)


def test_sheet_period_above_one_column_is_that_of_its_row_or_of_its_block() -> None:
    lone = {
        0: {0: "In millions", 3: "2022"},
        1: {1: "Sales", 2: "Costs", 3: "Profit"},
        2: {0: "North", 1: "5", 2: "3", 3: "2"},
    }
    two = {
        0: {0: "In millions", 2: "2023", 5: "2022"},
        1: {1: "Sales", 2: "Costs", 4: "Sales", 5: "Costs"},
        2: {0: "North", 1: "5", 2: "3", 4: "4", 5: "2"},
    }
    assert [block.text for block in sheet_blocks(lone, {})] == [
        "In millions / 2022: North; Sales: 5; Costs: 3; Profit: 2"
    ]
    assert [block.text for block in sheet_blocks(two, {})] == [
        "In millions: North; 2023 / Sales: 5; 2023 / Costs: 3; 2022 / Sales: 4; 2022 / Costs: 2"
    ]


def test_sheet_of_an_income_statement_has_its_labels_and_units_in_each_row() -> None:
    rows = {
        0: {0: "Income statement"},
        1: {1: "Note", 2: "2023", 3: "2022"},
        2: {2: "£m", 3: "£m"},
        3: {0: "Revenue", 1: "2", 2: "512.3", 3: "498.1"},
        4: {0: "Finance costs", 1: "6", 2: "(12)", 3: "(9)"},
    }
    assert [(block.text, block.label) for block in sheet_blocks(rows, {})] == [
        ("Income statement", ""),
        ("Revenue; Note: 2; 2023 (£m): 512.3; 2022 (£m): 498.1", "Revenue"),
        ("Finance costs; Note: 6; 2023 (£m): (12); 2022 (£m): (9)", "Finance costs"),
    ]


def test_sheet_row_of_words_without_a_label_is_no_header() -> None:
    rows = {0: {1: "Name", 2: "City"}, 1: {1: "Anna", 2: "Rome"}, 2: {0: "Staff", 1: "Ben", 2: "Oslo"}}
    assert [block.text for block in sheet_blocks(rows, {})] == [
        "Name: Anna; City: Rome",
        "Staff; Name: Ben; City: Oslo",
    ]


@pytest.mark.parametrize(
    "cell", ["£m", "(£m)", "$'000", "EUR million", "in millions", "Mio. €", "T€", "%", "€", "USD bn"]
)
def test_unit_is_known_as_one(cell: str) -> None:
    assert is_unit(cell)


@pytest.mark.parametrize("cell", ["", "Jan", "B", "Total", "Note", "m", "2023", "(restated)"])
def test_what_is_no_unit(cell: str) -> None:
    assert not is_unit(cell)


def _read(tmp_path: Path, data: bytes, media_type: str, name: str) -> list[str]:
    path = tmp_path / name
    path.write_bytes(data)
    return [block.text for block in parse(path, media_type, name).blocks]


def test_html_statement_of_accounts_keeps_periods_signs_and_footnotes(tmp_path: Path) -> None:
    page = (
        "<table><tr><td rowspan=2>In millions</td><td colspan=6>Three months ended</td></tr>"
        "<tr><td colspan=3>2024</td><td colspan=3>2023</td></tr>"
        "<tr><td>Revenue</td><td>$</td><td>12,842</td><td></td><td>$</td><td>11,003</td><td></td></tr>"
        "<tr><td>Cost of revenue</td><td></td><td>561<sup>2</sup></td><td></td><td></td><td>(400</td><td>)</td></tr></table>"
    )
    assert _read(tmp_path, page.encode(), detection.HTML, "a.html") == [
        "In millions: Revenue; Three months ended / 2024: $12,842; Three months ended / 2023: $11,003",
        "In millions: Cost of revenue; Three months ended / 2024: 561 ²; Three months ended / 2023: (400)",
    ]


def test_html_cell_over_several_rows_leaves_its_columns_where_they_are(tmp_path: Path) -> None:
    page = (
        "<table><tr><th>Line</th><th>Ship</th><th>Guests</th></tr><tr><td rowspan=2>Norderney</td><td>Wega</td><td>500</td></tr>"
        "<tr><td>Vega</td><td>300</td></tr><tr><td>Juist</td><td>Lyra</td><td>200</td></tr></table>"
    )
    assert _read(tmp_path, page.encode(), detection.HTML, "a.html") == [
        "Line: Norderney; Ship: Wega; Guests: 500",
        "Line: Norderney; Ship: Vega; Guests: 300",
        "Line: Juist; Ship: Lyra; Guests: 200",
    ]


def test_html_cells_that_claim_millions_of_places_cost_no_more_than_their_bound(tmp_path: Path) -> None:
    page = "<table>" + f"<tr>{'<td rowspan=1000>a' * 500}<td colspan=1000>b" + "<tr><td>c" * 2000 + "</table>"
    texts = _read(tmp_path, page.encode(), detection.HTML, "a.html")
    assert sum(map(len, texts)) < 1_000_000
    assert texts[-1] == "c"


def test_csv_years_name_columns(tmp_path: Path) -> None:
    data = b"Country,2019,2020\nNorway,5.3,5.4\nIceland,0.36,0.37\n"
    assert _read(tmp_path, data, detection.CSV, "a.csv") == [
        "Country: Norway; 2019: 5.3; 2020: 5.4",
        "Country: Iceland; 2019: 0.36; 2020: 0.37",
    ]


def test_pdf_raised_digit_is_not_part_of_the_number_before_it(tmp_path: Path) -> None:
    line = shown("In 2019", 72, 700) + shown("1", 108.8, 704, size=6) + shown(" sales grew.", 112.5, 700)
    (text,) = _read(tmp_path, pdf_of_contents([line]), detection.PDF, "a.pdf")
    assert text.startswith("In 2019 ¹")


def _run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def _math(tag: str, base: str, shifted: str) -> str:
    inner = f"<m:e><m:r><m:t>{base}</m:t></m:r></m:e><m:{tag}><m:r><m:t>{shifted}</m:t></m:r></m:{tag}>"
    return f'<m:sSup xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math">{inner}</m:sSup>'


UP, DOWN = '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>'


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (_run("4.1 x 10") + _run("6", UP) + _run(" cells"), "4.1 x 10⁶ cells"),
        (_run("4.1 x 10") + _run("-", UP) + _run("3", UP) + _run(" cells"), "4.1 x 10⁻³ cells"),
        (_run("limit is 25") + _run("2", UP) + _run(" percent"), "limit is 25 ² percent"),
        (_run("by 41") + _run("[3]", UP) + _run("."), "by 41 [3]."),
        (_run("1011") + _run("2", DOWN), "1011₂"),
        (_run("CO") + _run("2", DOWN) + _run(" and m") + _run("3", UP), "CO2 and m3"),
        (_run("10") + _run("9", '<w:position w:val="6"/>'), "10⁹"),
        (_run("of ") + _math("sup", "10", "8"), "of 10⁸"),
    ],
)
def test_docx_shifted_digits_do_not_join_numbers(tmp_path: Path, runs: str, expected: str) -> None:
    assert _read(tmp_path, docx_of(f"<w:p>{runs}</w:p>"), detection.DOCX, "a.docx") == [expected]


def test_pptx_shifted_digits_do_not_join_numbers(tmp_path: Path) -> None:
    runs = "".join(
        f'<a:r><a:rPr baseline="{baseline}"/><a:t>{text}</a:t></a:r>'
        for text, baseline in (("3 x 10", 0), ("7", 30000), (" of 1", 0), ("2", -25000))
    )
    slide = f"<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p>{runs}</a:p></p:txBody></p:sp>"
    assert _read(tmp_path, pptx_of([slide]), detection.PPTX, "a.pptx") == ["3 x 10⁷ of 1₂"]


@pytest.mark.parametrize(("size", "rise", "expected"), [(8.8, 4, "⁶"), (9.1, 3, "⁶"), (7, 4, "⁶"), (8.8, -3, "₆")])
def test_pdf_shifted_digits_do_not_join_numbers(tmp_path: Path, size: float, rise: float, expected: str) -> None:
    line = shown("3.2 x 10", 72, 700) + shown("6", 111.9, 700 + rise, size=size) + shown("cells per ml", 120.5, 700)
    (text,) = _read(tmp_path, pdf_of_contents([line]), detection.PDF, "a.pdf")
    assert text == f"3.2 x 10{expected} cells per ml"


def test_html_subscript_does_not_join_a_number(tmp_path: Path) -> None:
    page = b"<p>1011<sub>2</sub> and H<sub>2</sub>O and 10<sup>6</sup></p>"
    assert _read(tmp_path, page, detection.HTML, "a.html") == ["1011₂ and H2O and 10⁶"]


def _columns(rows: Sequence[Sequence[str]], lefts: Sequence[float], top: float = 780) -> str:
    """Rows of a table without rules, as a page shows them."""
    return "".join(
        shown(cell, x, top - 16 * at) for at, row in enumerate(rows) for cell, x in zip(row, lefts, strict=True)
    )


BERTHS = [[f"Berth {n}", f"{n}.5", str(95 + n)] for n in range(1, 16)]


@pytest.mark.parametrize(
    ("lefts", "expected"),
    [
        ((72, 200, 330), "Ship: Berth 9; Depth: 9.5; Length: 104"),
        ((72, 260, 440), "Berth 9; 9.5; 104"),
    ],
    ids=["the same columns", "other columns"],
)
def test_table_without_rules_goes_on_over_the_page_under_its_names(
    tmp_path: Path, lefts: Sequence[float], expected: str
) -> None:
    first = _columns([["Ship", "Depth", "Length"], *BERTHS[:8]], (72, 200, 330))
    path = tmp_path / "berths.pdf"
    path.write_bytes(pdf_of_contents([first, _columns(BERTHS[8:], lefts)]))
    rows = [block.text for block in parse(path, detection.PDF, "berths.pdf").blocks]
    assert rows[0] == "Ship: Berth 1; Depth: 1.5; Length: 96"
    assert rows[8] == expected
