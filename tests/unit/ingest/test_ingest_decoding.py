"""Damaged text is read in the encoding that most of it is in."""

import math
import struct
from pathlib import Path

import pytest

from evals.reading.encodings import EncodedText, encoded_texts
from services.ingest.documents.uploads.naming import checked_encoding
from services.ingest.errors import BadUpload
from services.ingest.reading.alphabets import is_of_one_language
from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.decoding import decode, looks_binary
from services.ingest.reading.detection import with_charset
from services.ingest.reading.models import PrepareRequest

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
    assert decode("Niño; Año; Tamaño São Paulo.".encode("cp1252")).text == "Niño; Año; Tamaño São Paulo."


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


DEGREES = (
    "Der Hafen liegt bei 54,3°N und 10,1°E. Im Sommer wird das Wasser höchstens 18,5°C warm, weil der Strom aus dem Norden kühles "
    "Wasser führt. Für größere Schiffe müssen die Hafenbehörden früh gefragt werden; die Gebühren hängen von der Länge ab."
)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("ينتهي العقد في نهاية السنة، ويدفع المستأجر الإيجار في أول كل شهر؛ هل يمكن تمديده؟", "cp1256"),
        ("صدرت النشرة، وفيها أسعار الموانئ، والرسوم، وأوقات العمل.", "cp1256"),
        (DEGREES, "mac_roman"),
        ("Договор №А-77 действует до конца года; плата по договору №Б/12 вносится ежемесячно.", "cp1251"),
        ("蒸汽的温度在565°C左右，冷凝器的温度约为30°C。", "gb18030"),
    ],
)
def test_signs_that_stand_at_words_do_not_speak_against_an_encoding(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


def test_numbers_of_16_bits_are_no_text() -> None:
    samples = b"".join(struct.pack("<h", round(20_000 * math.sin(at / 9))) for at in range(2000))
    assert looks_binary(samples)


def test_named_encoding_counts_before_any_other_and_only_for_its_file(tmp_path: Path) -> None:
    text = "Łódź"
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode("cp852"))
    named = PrepareRequest(str(path), with_charset("text/plain", "cp852"), "a.txt", "", 256)
    assert prepare(named, lambda _: None, EstimatedTokens()).chunks[0].text == text
    path.write_bytes(text.encode("utf-8"))
    unnamed = PrepareRequest(str(path), "text/plain", "a.txt", "", 256)
    assert prepare(unnamed, lambda _: None, EstimatedTokens()).chunks[0].text == text


def test_usual_encoding_counts_before_a_guess_where_it_fits(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    request = PrepareRequest(str(path), "text/plain", "a.txt", "", 256, "cp852")
    for text, encoding in (("Łódź", "cp852"), ("Łódź", "utf-8"), ("Łódź", "utf-16")):
        path.write_bytes(text.encode(encoding))
        assert prepare(request, lambda _: None, EstimatedTokens()).chunks[0].text == text


def test_encoding_of_an_upload_has_to_be_one() -> None:
    assert checked_encoding("ISO-8859-2") == "iso8859-2"
    assert with_charset("application/pdf", "iso8859-2") == "application/pdf"
    with pytest.raises(BadUpload, match="name one as iso-8859-2"):
        checked_encoding("latin-99")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "iso8859-2"),
        ("Šroubovák leží v dílně na polici.", "iso8859-2"),
        ("Šťastný ľudia", "iso8859-2"),
        ("Štěrk a písek; Železo; Měď", "cp1250"),
        ("Kraków; Gdańsk; Łódź", "cp852"),
        ("Čuvar živi u Đakovu.", "cp1250"),
        ("Čuvar živi u Đakovu.", "iso8859-2"),
        ("Größe: 14 mm", "cp850"),
        ("Niño; Año; Tamaño", "cp850"),
        ("ПРАВИЛА", "cp1251"),
        ("ПРАВИЛА", "iso8859-5"),
        ("НАСОСНАЯ СТАНЦИЯ №4", "cp1251"),
        ("倉庫の鍵は守衛室にあります。", "iso2022_jp"),
        ("창고 열쇠는 경비실에 있습니다.", "iso2022_kr"),
    ],
)
def test_a_short_text_is_read_so_that_its_letters_are_those_of_one_language(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


@pytest.mark.parametrize(
    "text", ["使用python语言编写A和B", "파이썬 python은 a와 b", "กุญแจอยู่ที่ห้องยาม", "Το κλειδί", "plain"]
)
def test_texts_of_other_scripts_are_of_one_language(text: str) -> None:
    assert is_of_one_language(text)


def test_letters_of_two_languages_or_signs_within_words_are_of_none() -> None:
    assert not any(map(is_of_one_language, ("leľí v dílně", "ľlu»oučký", "рТБЧЙМБ", "lТщlщvateur", "Gr더e", "\ufffd")))


def test_western_text_of_several_languages_stays_western() -> None:
    text = "Die schöne Frau lächelte.\n"
    text += "L'été était très chaud.\nEl niño dijo: ¡Qué rico!\nHon åt köttbullar.\nO João comprou um café."
    assert decode(text.encode("cp1252")).text == text
    assert decode("Niño; Año; Tamaño São Paulo.".encode("cp1252")).text == "Niño; Año; Tamaño São Paulo."
