"""Words of scripts that write without spaces."""

from __future__ import annotations

import pytest

from kit.language.segmentation import segments
from kit.language.terms import tokens


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("กุญแจคลังสินค้าเก็บไว้ที่ห้องยาม", {"กุญแจ", "สินค้า", "ห้อง"}),
        ("ខ្ញុំទៅផ្សារនៅថ្ងៃស្អែក", {"ខ្ញុំ", "ផ្សារ", "ថ្ងៃស្អែក"}),
        ("ຂ້ອຍຕ້ອງການໄປຕະຫຼາດມື້ອື່ນ", {"ຂ້ອຍ", "ຕ້ອງການ", "ຕະຫຼາດ"}),
        ("မြန်မာစာသင်တန်း", {"မြန်မာ"}),
    ],
    ids=["Thai", "Khmer", "Lao", "Burmese"],
)
def test_a_run_is_cut_into_words_of_the_dictionary(run: str, words: set[str]) -> None:
    cut = segments(run)
    assert "".join(cut) == run
    assert words <= set(cut)


def test_words_of_a_sentence_keep_their_tone_marks_and_places() -> None:
    text = "เปิด 9 โมง ใช้PDFได้"
    found = tokens(text)
    assert {"เปิด", "9", "โมง", "PDF"} <= {token.surface for token in found}
    assert all(text[token.start : token.end] == token.surface for token in found)


def test_a_sign_behind_a_letter_is_part_of_its_name() -> None:
    assert [token.stem for token in tokens("C, C++ and C#. a+b")] == ["c", "c++", "and", "c#", "a", "b"]
