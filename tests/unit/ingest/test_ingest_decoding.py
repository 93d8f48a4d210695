"""Damaged text is read in the encoding that most of it is in."""

import math
import struct

import pytest

from evals.reading.encodings import EncodedText, encoded_texts
from services.ingest.reading.decoding import decode, looks_binary

RUSSIAN = "Паром на Нордерней отправляется в семь часов. "


def test_utf8_cut_within_a_letter_stays_utf8() -> None:
    decoded = decode(RUSSIAN.encode()[:-3])
    assert decoded.encoding == "utf-8"
    assert decoded.text.startswith("Паром на Нордерней")


def test_stray_bytes_do_not_change_the_encoding_of_the_rest() -> None:
    decoded = decode(RUSSIAN.encode() + "größer".encode("cp1252") + RUSSIAN.encode())
    assert decoded.text.count("Паром") == 2


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN * 3, "cp1251"),
        (RUSSIAN * 3, "koi8_r"),
        ("Die Fähre nach Norderney fährt um sieben. Größere Schiffe fahren später.", "cp1252"),
        ("これは日本語の文章です。文字コードを確認します。" * 3, "shift_jis"),
        ("这是一个用来检查编码的中文句子。渡轮七点出发。" * 3, "gb18030"),
        ("הספינה יוצאת בשעה שבע בבוקר מהנמל הישן." * 3, "cp1255"),
    ],
)
def test_other_encodings_are_not_taken_for_damaged_utf8(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


@pytest.mark.parametrize(
    "text",
    [
        "Die Gebühr für die Verlängerung beträgt zwölf Euro.",
        "Größe: 5 m²",
        "Straße",
        "Lämmitys on päällä kesällä.",
        "Île-de-France",
        "L’été “naïf” d’un café – 12 € à l’œil",
    ],
)
def test_a_short_western_text_is_no_other_script(text: str) -> None:
    assert decode(text.encode("cp1252")).text == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Zażółć gęślą jaźń", "cp1250"),
        ("Příliš žluťoučký kůň", "cp1250"),
        ("Zażółć gęślą jaźń", "cp852"),
        ("Καλημέρα σε όλους", "cp1253"),
    ],
)
def test_a_short_text_in_other_letters_is_not_western(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


@pytest.mark.parametrize(
    "case", tuple(encoded_texts()), ids=lambda case: f"{case.language} {case.encoding} {case.shape}"
)
def test_text_is_read_in_the_encoding_that_it_is_in(case: EncodedText) -> None:
    assert not looks_binary(case.data)
    assert decode(case.data).text == case.text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_wide_chinese_without_marks_or_punctuation_is_read(encoding: str) -> None:
    text = "仓库规定每周三上午九点清点一次货物钥匙由值班员保管"
    assert decode(text.encode(encoding)).text == text


def test_numbers_of_16_bits_are_no_text() -> None:
    samples = b"".join(struct.pack("<h", round(20_000 * math.sin(at / 9))) for at in range(2000))
    assert looks_binary(samples)
