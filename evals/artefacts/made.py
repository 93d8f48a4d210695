"""Documents that are made here, so that all of them is known: a report with many sections, one with many pages, and invoices."""

import csv
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openpyxl import load_workbook

from kit.testing.pdf_files import pdf_of

SECTIONS, PAGES, INVOICES = 60, 400, 40
FIELDS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "invoice number": {"type": "string"},
        "vendor": {"type": "string"},
        "date": {"type": "string"},
        "total": {"type": "number"},
    },
}
_LINES_A_PAGE = 40
_NOUNS = [
    "pump",
    "valve",
    "turbine",
    "bridge",
    "sluice",
    "tunnel",
    "meter",
    "pipeline",
    "reservoir",
    "filter",
    "generator",
    "crane",
    "gate",
    "lock",
    "weir",
    "canal",
]
_VERBS = ["inspected", "repaired", "replaced", "measured", "cleaned", "painted", "tested", "moved"]
_PLACES = [
    "Alder",
    "Birch",
    "Cedar",
    "Dorn",
    "Elm",
    "Fir",
    "Grove",
    "Hazel",
    "Iris",
    "Juniper",
    "Kiln",
    "Larch",
    "Maple",
    "Nettle",
    "Oak",
    "Pine",
]


def sectioned() -> bytes:
    """A report as Markdown. Each section is about another place."""
    dice = random.Random(60)
    parts = ["# Report on the works"]
    for number in range(1, SECTIONS + 1):
        place = f"{_PLACES[number % len(_PLACES)]} {number}"
        parts += [f"## Station {place}", "\n\n".join(_sentences(dice, place, 12))]
    return "\n\n".join(parts).encode()


def paged() -> bytes:
    """A report as PDF with so many pages."""
    dice = random.Random(400)
    pages = []
    for number in range(1, PAGES + 1):
        place = f"{_PLACES[number % len(_PLACES)]} {number}"
        pages.append(_sentences(dice, place, _LINES_A_PAGE))
    return pdf_of(pages)


def _sentences(dice: random.Random, place: str, count: int) -> list[str]:
    return [
        f"The {dice.choice(_NOUNS)} of station {place} was {dice.choice(_VERBS)} {dice.randint(2, 90)} times in "
        f"{dice.randint(1950, 2023)}."
        for _ in range(count)
    ]


def invoices() -> Mapping[str, tuple[bytes, Mapping[str, Any]]]:
    """Invoices in four layouts by their names, each with what is in it; every fifth has no date, every seventh no vendor."""
    return {f"invoice-{number:02}.md": _invoice(number) for number in range(1, INVOICES + 1)}


def _invoice(number: int) -> tuple[bytes, Mapping[str, Any]]:
    dice = random.Random(number)
    known = {
        "invoice number": f"R-{dice.randint(1000, 9999)}",
        "vendor": None if number % 7 == 0 else f"{dice.choice(_PLACES)} {dice.choice(('Ltd', 'GmbH', 'Inc'))}",
        "date": None if number % 5 == 0 else f"2026-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}",
        "total": dice.randint(1000, 999_999) / 100,
    }
    labels = {"invoice number": "Invoice No.", "vendor": "Vendor", "date": "Invoice date", "total": "Total"}
    lines = [
        (labels[name], f"{value:,.2f} EUR" if name == "total" else value) for name, value in known.items() if value
    ]
    lines.insert(2, ("Customer", "Umbrella Ltd"))
    layouts: Sequence[str] = [
        "\n\n".join(f"{label}: {value}" for label, value in lines),
        _table(("Item", "Entry"), *((label, str(value)) for label, value in lines)),
        _table([label for label, _ in lines], [str(value) for _, value in lines]),
        "Thank you for your order.   " + "; ".join(f"{label}: {value}" for label, value in lines),
    ]
    return f"INVOICE\n\n{layouts[number % 4]}\n\nPlease pay within 30 days.".encode(), known


def _table(head: Sequence[str], *rows: Sequence[str]) -> str:
    return "\n".join(" | ".join(row) for row in (head, ["---"] * len(head), *rows))


TABLES: Mapping[str, Mapping[str, str]] = {
    "csv/mlb_teams_2012.csv": {"Team": "string", "Payroll (millions)": "number", "Wins": "integer"},
    "csv/constituents.csv": {"Symbol": "string", "Security": "string"},
    "office/stanley-cups.xlsx": {"Team": "string", "Location": "string", "Stanley Cups": "integer"},
}
"""Tables below the folder `docs`, and columns of them with their types."""


def rows_of_table(path: Path) -> list[dict[str, str]]:
    """The rows of a table, read by other means than the system's own: cells by the names of their columns."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file, skipinitialspace=True))
    sheets = load_workbook(path, read_only=True, data_only=True)
    found = []
    for sheet in sheets.worksheets:
        rows = [[str(cell) if cell is not None else "" for cell in row] for row in sheet.iter_rows(values_only=True)]
        head = next(at for at, row in enumerate(rows) if sum(map(bool, row)) > 1)
        found += [dict(zip(rows[head], row, strict=True)) for row in rows[head + 1 :] if any(row)]
    return found
