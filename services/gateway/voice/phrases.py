"""What is said besides the answer, in the languages of the console; in English to all others."""

from collections.abc import Sequence

_SOURCE = {"en": "Source", "de": "Quelle", "ru": "Источник", "he": "מקור"}
_SOURCES = {"en": "Sources", "de": "Quellen", "ru": "Источники", "he": "מקורות"}
_WAITS = {
    "en": "I need your decision before I go on.",
    "de": "Ich brauche deine Entscheidung, bevor ich weitermache.",
    "ru": "Мне нужно ваше решение, чтобы продолжить.",
    "he": "אני צריך את ההחלטה שלך כדי להמשיך.",
}
_FAILED = {
    "en": "Something went wrong. Please ask again.",
    "de": "Etwas ist schiefgegangen. Bitte frag noch einmal.",
    "ru": "Что-то пошло не так. Пожалуйста, спросите ещё раз.",
    "he": "משהו השתבש. אפשר לשאול שוב.",
}


def sources_named(names: Sequence[str], language: str) -> str:
    """Names the documents of an answer."""
    label = _SOURCE if len(names) == 1 else _SOURCES
    return f"{label.get(language, label['en'])}: {', '.join(names)}."


def waits(language: str) -> str:
    """Says that the run waits for a person."""
    return _WAITS.get(language, _WAITS["en"])


def failed(language: str) -> str:
    """Says that there is no answer."""
    return _FAILED.get(language, _FAILED["en"])
