"""Which text layers are believed."""

import pytest

from services.ingest.reading.text_quality import garbage_reason, is_partly_readable, with_encoding_repaired

ENGLISH = "The quick brown fox jumps over the lazy dog, and then it sleeps for quite some time under the old tree. "
GERMAN = "Die Rechtsschutzversicherungsgesellschaften übernehmen die Kosten größerer Verfahren über mehrere Instanzen. "
VIETNAMESE = "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. "
RUSSIAN = "Все люди рождаются свободными и равными в своём достоинстве и правах. "
CHINESE = "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。"
THAI = "มนุษย์ทั้งปวงเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ"
TABLE = "18,870 23,022 22,650 859 1,178 0 14 15 0 2,179 2,307 11 0 0 0 13 14 0 3 2 0 71,137 "
FORMULA = "x = a + b - c, y = f ( x ) where a , b , c are real and f is monotone on the whole of R . "


@pytest.mark.parametrize("text", [ENGLISH, GERMAN, VIETNAMESE, RUSSIAN, CHINESE, THAI, TABLE, FORMULA, "p. 7", "", "§"])
def test_text_of_any_language_is_believed(text: str) -> None:
    assert garbage_reason(text * 3) == ""


@pytest.mark.parametrize(
    ("text", "unmapped_count", "says"),
    [
        ("(cid:12)(cid:7)(cid:33) (cid:4)(cid:12)(cid:7)" * 9, 0, "fonts"),
        ("\ue001\ue002\ue003 \ue004\ue005" * 9, 0, "fonts"),
        ("\ufffd\ufffd\ufffd\ufffd word" * 9, 36, "fonts"),
        (ENGLISH, 60, "fonts"),
        ("\x01\x02\x03\x04\x05\x06" * 9, 0, "fonts"),
        (RUSSIAN.encode().decode("latin-1") * 2, 0, "encoding"),
        ("CafÃ© crÃ¨me brÃ»lÃ©e Ã  la carte, dÃ©jÃ  vu. ", 0, "encoding"),
        (RUSSIAN.encode("cp1251").decode("latin-1") * 2, 0, "encoding"),
        ((ENGLISH * 3).replace(" ", ""), 0, "run into each other"),
        (" ".join(ENGLISH.replace(" ", "") * 2), 0, "fall into letters"),
        ("\ue001\ue002\ue003", 3, "unreadable"),
    ],
)
def test_rubbish_is_not_believed_and_says_what_it_is(text: str, unmapped_count: int, says: str) -> None:
    assert says in garbage_reason(text, unmapped_count)


def test_symbols_of_bullets_do_not_make_rubbish() -> None:
    assert garbage_reason(f"\uf0b7 {ENGLISH}\n\uf0b7 {ENGLISH}", 2) == ""


def test_partly_readable_text_is_better_than_nothing() -> None:
    assert is_partly_readable(ENGLISH + "\ue001" * 30)
    assert not is_partly_readable("(cid:12)(cid:7) (cid:33)")
    assert not is_partly_readable("CafÃ© crÃ¨me brÃ»lÃ©e")


@pytest.mark.parametrize(
    ("meant", "taken_for"), [("utf-8", "latin-1"), ("cp1251", "latin-1"), ("cp1251", "cp1252")], ids=str
)
def test_russian_in_the_wrong_encoding_is_put_right(meant: str, taken_for: str) -> None:
    pieces = [RUSSIAN.strip(), RUSSIAN.strip().upper(), "42"]
    assert with_encoding_repaired([piece.encode(meant).decode(taken_for) for piece in pieces]) == pieces


def test_accented_rubbish_is_not_made_into_russian() -> None:
    assert with_encoding_repaired(["\xd9\xdc\xde\xfa\xfb\xe9 \xf6\xff\xfd\xfe\xf9\xf8 " * 20]) is None


ARABIC = (
    "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء. "
)
HEBREW = "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון לפיכך חובה עליהם לנהוג ברוח אחווה. "
HINDI = "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और अन्तरात्मा की देन प्राप्त है। "


@pytest.mark.parametrize("text", [ARABIC * 3, HEBREW * 3, HINDI * 4], ids=["ar", "he", "hi"])
def test_prose_of_any_script_is_believed(text: str) -> None:
    assert garbage_reason(text) == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ARABIC.translate(str.maketrans("الينمورت", "ظغذثشزضط")) * 2, "make no words"),
        ("يبيبحabibi حَbib يبيبحh ˴يبيh " * 3, "make no words"),
        ("!#$%&'()*+,-./:;<=>?@[]^_ a1 " * 5, "signs"),
    ],
)
def test_text_layer_of_noise_is_not_believed_nor_kept(text: str, says: str) -> None:
    assert says in garbage_reason(text)


def test_words_of_two_alphabets_are_not_better_than_nothing() -> None:
    assert not is_partly_readable("يبيبحَ˴\ufffd\ufffdabibi يبيبح hَ")


@pytest.mark.parametrize(("text", "meant"), [(ARABIC, "cp1256"), (HEBREW, "cp1255")], ids=["ar", "he"])
def test_right_to_left_text_in_the_wrong_encoding_is_put_right(text: str, meant: str) -> None:
    pieces = [text.strip(), "1948"]
    assert with_encoding_repaired([piece.encode(meant).decode("latin-1") for piece in pieces]) == pieces
    painted = [text.strip()[::-1].encode(meant).decode("latin-1"), "1948"]
    assert with_encoding_repaired(painted) == pieces
