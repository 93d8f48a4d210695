"""Alphabets of languages whose texts are found in old encodings. A text read in the wrong one has letters of no one language,
capitals within words, and signs between letters."""

import re

_LATIN = (
    "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "ąćęłńóśźż", "áéíóöőúüű", "čćđšž", "ăâîşţșț", "çğıöşüâîûi̇", "äöüßé",
    "àâæçéèêëîïôœùûüÿ", "áéíñóúüªº", "ãáàâçéêíóôõúüªº", "åäöæøé", "äöõüšž", "āčēģīķļņšūž", "ąčęėįšųūž", "àèéìíîòóùúªº",
    "áéëèêïíöóúü", "áðéíóúýþæö", "çë", "àçéèíïóòúü",
)  # fmt: skip
"""Czech, Slovak, Polish, Hungarian, Croatian, Romanian, Turkish, German, French, Spanish, Portuguese, the Nordic languages,
Estonian, Latvian, Lithuanian, Italian, Dutch, Icelandic, Albanian, Catalan."""
_RUSSIAN = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
_CYRILLIC = (_RUSSIAN + "ё", "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя", _RUSSIAN + "ѝ", "абвгдђежзијклљмнњопрстћуфхцчџшѓќѕ",
             "абвгдеёжзійклмнопрстуўфхцчшыьэюя")  # fmt: skip
_ALPHABETS = tuple(map(frozenset, (*_LATIN, *_CYRILLIC)))
ENCODINGS = (
    "cp1250", "iso8859-2", "cp1252", "cp1254", "cp1257", "cp852", "cp850", "cp1251", "koi8-r", "koi8-u", "cp866", "iso8859-5",
)  # fmt: skip
"""Those that are tried, the commonest first."""
_WORD = re.compile(r"[^\W\d_]+")
_SIGN_WITHIN = re.compile("[^\\W\\d_][^\x00-\x7f\\w\u2019\u2010-\u2015\xad·][^\\W\\d_]")
_ODD_SIGN = re.compile(
    "[©®™¬¦¶¤¢¨¸µ\u02db\u02c7\u02d8\u02d9\u2500-\u259f][^\\W\\d_]|[^\\W\\d_][\u2500-\u259f]|[\x00-\x08\x0e-\x1a\x80-\x84\x86-\x9f]"
)
_MIXED = re.compile("[a-zA-Z][\u0400-\u04ff]|[\u0400-\u04ff][a-zA-Z]")
_LONE_CHARACTER = re.compile(
    "(?<![\u1100-\u11ff\u2e80-\uffef])[\u1100-\u11ff\u2e80-\uffef](?![\u1100-\u11ff\u2e80-\uffef])"
)
_BESIDE_LETTER = re.compile("[a-z][\u1100-\u11ff\u2e80-\uffef]|[\u1100-\u11ff\u2e80-\uffef][a-z]")
_WIDE = re.compile("[\u1100-\u11ff\u2e80-\uffef]")


def is_of_one_language(text: str, least_share: float = 1.0) -> bool:
    """Whether the letters that are not English are those of one language, capitals begin words or fill them, and no sign stands
    between letters. Texts of other scripts pass, unless they are single characters between letters.
    `least_share`: of the letters."""
    if "\ufffd" in text:
        return False
    if wide := _WIDE.findall(text):
        return len(_LONE_CHARACTER.findall(text)) < len(wide) or not _BESIDE_LETTER.search(text)
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    letters = [each for word in words for char in word if char.isalpha() for each in char.lower() if not each.isascii()]
    if not all(
        "\xaa" <= each <= "\u024f" or "\u02b0" <= each <= "\u02ff" or "\u0400" <= each <= "\u04ff" for each in letters
    ):
        return True
    if _SIGN_WITHIN.search(text) or _ODD_SIGN.search(text) or not all(map(_is_word, words)):
        return False
    return any(sum(each in alphabet for each in letters) >= least_share * len(letters) for alphabet in _ALPHABETS)


def _is_word(letters: str) -> bool:
    is_cased = letters.istitle() or letters.islower() or letters.isupper()
    return is_cased and not _MIXED.search(letters)


def encoding_of_one_language(sample: bytes) -> str | None:
    """The commonest encoding in which the letters of a text are those of one language."""
    for encoding in ENCODINGS:
        text = sample.decode(encoding, "replace")
        if is_of_one_language(text) and any(char.isalpha() and not char.isascii() for char in text):
            return encoding
    return None
