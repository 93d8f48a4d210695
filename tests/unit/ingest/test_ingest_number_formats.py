"""Numbers of sheets and charts are written as their formats show them."""

import io

import openpyxl
import pytest

from services.ingest.reading.parsers.office.xlsx import parse_xlsx
from services.ingest.reading.parsers.tables.number_formats import formatted_number
from services.ingest.reading.parsers.tables.table_values import can_name_columns
from services.ingest.reading.source import Unpacked


@pytest.mark.parametrize(
    ("value", "number_format", "shown"),
    [
        (0.25, "0%", "25%"),
        (0.2534, "0.0 %", "25.3 %"),
        (1234.5, '"$"#,##0.00', "$1234.50"),
        (-1234.5, '"$"#,##0.00_);[Red]("$"#,##0.00)', "-$1234.50"),
        (1234.5, "[$€-2] #,##0.00", "€ 1234.50"),
        (1234.5, "#,##0.00\\ [$€-407]", "1234.50 €"),
        (1234.5, '_-* #,##0.00\\ "€"_-;-* #,##0.00\\ "€"_-', "1234.50 €"),
        (0, '_($* #,##0_);_($* (#,##0);_($* "-"??_);_(@_)', "$0"),
        (5, "£#,##0", "£5"),
        (5, "#,##0 zł", "5 zł"),
        (12, '0" kg"', "12 kg"),
        (12.5, 'General" kg"', "12.5 kg"),
        (12345678, '0.0,,"M"', "12.3M"),
        (1234567, "#,##0,", "1235"),
        (1234.567, "#,##0", "1235"),
        (1.5, "0.0##", "1.5"),
        (1.0, "0.0##", "1.0"),
        (3, "00000", "00003"),
        (-0.001, "0.00", "0.00"),
        (0.5, "# ?/?", "0.5"),
        (1234.5, "0.00E+00", "1234.5"),
        (123456789, "000-00-0000", "123456789"),
        (7, "", "7"),
        (7, ";;;", "7"),
        (10**20, "0", "1" + "0" * 20),
        (1e301, "0", "1e+301"),
    ],
)
def test_number_is_written_as_its_format_shows_it(value: float, number_format: str, shown: str) -> None:
    assert formatted_number(value, number_format) == shown


def test_format_as_long_as_a_book_costs_no_more_than_its_beginning() -> None:
    assert formatted_number(3, '0"' + "x" * 1_000_000 + '"') == f"3{'x' * 40}"
    assert len(formatted_number(3, "[$" + "x" * 300 + "]0" * 100_000)) < 100


def test_prices_and_weights_of_a_sheet_are_no_header() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for at, (ship, price, weight) in enumerate((("Wega", 12, 7), ("Vega", 15.5, 900), ("Spica", 9, 12)), 1):
        sheet.append([ship, price, weight])
        sheet.cell(at, 2).number_format, sheet.cell(at, 3).number_format = '#,##0.00 "CHF"', '0" kg"'
    out = io.BytesIO()
    book.save(out)
    document = parse_xlsx(Unpacked("a.xlsx", out.getvalue(), is_whole=True), "a.xlsx")
    assert [block.text for block in document.blocks] == [
        "Wega; 12.00 CHF; 7 kg",
        "Vega; 15.50 CHF; 900 kg",
        "Spica; 9.00 CHF; 12 kg",
    ]


def test_numbered_names_are_a_header_unless_the_like_stands_below_them() -> None:
    assert can_name_columns(["Item", "3 months", "6 months"], ["Deposits", "1,000", "2,000"])
    assert not can_name_columns(["Deck 1", "open"], ["Deck 2", "closed"])
