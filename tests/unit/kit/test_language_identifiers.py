"""Words of identifiers, sentences of scripts without full stops, and entries of logs, as the lexical cues see them."""

from __future__ import annotations

import pytest

from kit.language.sentences import UnitKind, split_units
from kit.language.terms import tokens


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("MAX_RETRY_COUNT", ["max", "retri", "count"]),
        ("v3.0.0 and V2.1", ["3.0.0", "and", "2.1"]),
        ("v3 is an idea", ["v3", "is", "an", "idea"]),
        ("10.20.30.41:5432", ["10.20.30.41", "5432"]),
        ("at 10:30 on 1.2.2024", ["at", "10:30", "on", "1.2.2024"]),
    ],
)
def test_an_identifier_has_the_words_that_it_is_asked_for_by(text: str, stems: list[str]) -> None:
    found = tokens(text)
    assert [token.stem for token in found] == stems
    assert all(text[token.start : token.end] == token.surface for token in found)


def test_a_line_of_thai_is_a_sentence_also_without_a_full_stop() -> None:
    lines = ["กุญแจคลังสินค้าเก็บไว้ที่ห้องยาม", "พนักงานมีวันลาพักร้อนสิบวันต่อปี"]
    assert [(unit.text, unit.kind) for unit in split_units("\n\n".join(lines))] == [
        (line, UnitKind.PROSE) for line in lines
    ]
    assert split_units(f"{lines[0]}\nบรรทัดถัดไป")[0].kind is UnitKind.HEADING


def test_khmer_and_burmese_end_their_sentences() -> None:
    text = "ကားသည် အနီရောင်ဖြစ်သည်။ ဈေးကြီးသည်။"
    assert len(split_units(text)) == 2


def test_each_entry_of_a_log_is_a_unit() -> None:
    lines = [f"2024-05-0{day} 04:04:11 INFO node-{day} job=700{day} code=E-400{day} took=52ms" for day in range(1, 6)]
    found = split_units("\n".join(lines))
    assert [unit.text for unit in found] == lines
    assert {unit.kind for unit in found} == {UnitKind.PROSE}
