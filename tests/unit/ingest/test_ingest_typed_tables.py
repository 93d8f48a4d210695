"""Tables that somebody typed into a text: each row is a unit, and no line is joined to the next. Names of columns that repeat."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.reading.files import read_file

_WIDE = (
    "Name of the applicant and address | Telephone number | Room number\n"
    "Ines Varg, Harbour street 12, Osk | 0049 30 555 01 | Oak room 12\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name | Phone\nInes Varg | 221\n", "Name: Ines Varg; Phone: 221"),
        ("| Name | Phone |\n|---|---|\n| Ines Varg | 221 |\n", "Name: Ines Varg; Phone: 221"),
        ("+------+-----+\n| Name | Tel |\n+------+-----+\n| Ines | 221 |\n+------+-----+\n", "Name: Ines; Tel: 221"),
        ("Berth\t\tFee\nA-1\t\t40\n", "Berth: A-1; Fee: 40"),
        ("Case no. | AZ-2207/19\nApplicant | Orla Finch\n", "Case no.: AZ-2207/19\nApplicant: Orla Finch"),
        ("| Berth | Fee | Note |\n| A-1 | | none |\n| B-2 | 40 |  |\n", "Berth: A-1; Note: none\nBerth: B-2; Fee: 40"),
        (
            "=====  =====\nShip   Flag\n=====  =====\nOrla   NO\nFinn A DK\n=====  =====\n",
            "Ship: Orla; Flag: NO\nShip: Finn A; Flag: DK",
        ),
        (
            f"Before it.\n\n{_WIDE}\nAfter it.\n",
            (
                "Before it.\n\nName of the applicant and address: Ines Varg, Harbour street 12, Osk; "
                "Telephone number: 0049 30 555 01; Room number: Oak room 12\n\nAfter it."
            ),
        ),
    ],
    ids=["bars", "framed", "drawn", "tabs", "labels", "empty cells", "columns of a rule", "two long lines"],
)
def test_rows_are_read_with_their_columns(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "table.txt").write_text(text, "utf-8")
    assert read_file(tmp_path / "table.txt").text == expected


@pytest.mark.parametrize(
    "text",
    [
        "We use the pipe cat one | sort to do this here\nand then ls | wc gives the numbers of the day.",
        "Entrance of the warehouse on the quay | see the plan\nIn the evening the porter keeps the key | ask him",
        "One line | alone",
        "Harbours above it\n===== =====\nwords across the rule",
    ],
    ids=["about bars", "two long cells", "one line", "words across a rule"],
)
def test_other_lines_with_bars_stay_as_they_are(tmp_path: Path, text: str) -> None:
    (tmp_path / "text.txt").write_text(text, "utf-8")
    assert read_file(tmp_path / "text.txt").text == text


def test_a_wrapped_paragraph_is_still_joined(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(
        "The porter keeps the key of the warehouse and gives it\nto nobody else.\n", "utf-8"
    )
    assert "gives it to nobody" in read_file(tmp_path / "text.txt").text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name,Fee,Fee,\nOsk,4,5,x\n", "Name: Osk; Fee: 4; Fee: 5; column 4: x"),
        ("id,id,name\n1,2,Osk\n3,4,Lind\n", "id: 1; id: 2; name: Osk\nid: 3; id: 4; name: Lind"),
        (
            "no,no,yes\nyes,no,no\n",
            "column 1: no; column 2: no; column 3: yes\ncolumn 1: yes; column 2: no; column 3: no",
        ),
    ],
    ids=["and an empty one", "two above numbers", "no names at all"],
)
def test_names_of_columns_may_be_the_same_above_values(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "table.csv").write_text(text, "utf-8")
    assert read_file(tmp_path / "table.csv").text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Store;Stock;;\n;;;\nItem;Qty;Price;\nRope;40;2,50;\nChain;9;12,00;\n",
         "Store: Stock\n\nItem: Rope; Qty: 40; Price: 2,50\nItem: Chain; Qty: 9; Price: 12,00"),
        ("By,Oda,,\n,,,\nSite,Quay 3,,\n\nItem,Qty,Unit,Note\nRope,40,m,\nChain,9,m,new\nBuoy,2,pcs,\n",
         ("By: Oda\nSite: Quay 3\n\n"
         "Item: Rope; Qty: 40; Unit: m\nItem: Chain; Qty: 9; Unit: m; Note: new\nItem: Buoy; Qty: 2; Unit: pcs")),
        ("Item;Qty;Unit\n;;\nRope;40;m\nChain;9;m\n", "Item: Rope; Qty: 40; Unit: m\nItem: Chain; Qty: 9; Unit: m"),
        (";2023;2024\n;;\nIncome;12;14\nCosts;9;11\n",
         "column 1: Income; 2023: 12; 2024: 14\ncolumn 1: Costs; 2023: 9; 2024: 11"),
    ],
    ids=["a title", "two blocks of labels", "a header", "a header without a first name"],
)  # fmt: skip
def test_narrower_rows_above_an_empty_one_are_no_header(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "table.csv").write_text(text, "utf-8")
    found = read_file(tmp_path / "table.csv").text
    assert " ".join(found.split()) == " ".join(expected.split())


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "two.csv",
            "Date,Amount,Note\n2026-05-01,40,rope\n\nEmployee,Hours\nInes,8\nTomo,7\n",
            "Date: 2026-05-01; Amount: 40; Note: rope\nEmployee: Ines; Hours: 8\nEmployee: Tomo; Hours: 7",
        ),
        (
            "one.csv",
            "name,dept,phone\nInes,Stores,221\n\nTomo,Yard,310\nOrla,Office,118\n",
            "name: Ines; dept: Stores; phone: 221\nname: Tomo; dept: Yard; phone: 310\nname: Orla; dept: Office; phone: 118",
        ),
        (
            "cells.md",
            "| A | B |\n|---|---|\n| 1 | `x|y` |\n| 1 | 2 | more |\n\n> | C | D |\n> |---|---|\n> | 1 | `p|q` |\n",
            "A: 1; B: x|y\nA: 1; B: 2; more\nC: 1; D: p|q",
        ),
    ],
    ids=["another table below", "records in groups", "bars within code and cells beyond the header"],
)
def test_every_cell_stands_under_its_own_name(tmp_path: Path, name: str, text: str, expected: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    assert read_file(tmp_path / name).text == expected
