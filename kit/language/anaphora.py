"""Words that point back to what was named before: in a sentence of a document ("It opened in 1990"), and in a question after
another one ("Where was she born?", "And in 2020?")."""

from kit.language.data import ENGLISH, LANGUAGES, all_phrases, all_words
from kit.language.question_language import language_by_words
from kit.language.questions import AnswerKind, read_question
from kit.language.terms import Token, tokens

_PRONOUNS = all_words("pronouns")
_UNSPACED = ("th", "zh", "ja", "ko")
_PRONOUNS_WITHOUT_SPACES = tuple(word for code in _UNSPACED for word in LANGUAGES[code].pronouns)
_CONNECTORS_WITHOUT_SPACES = tuple(word for code in _UNSPACED for word in LANGUAGES[code].connectors)
_MOST_TRAILING_TERMS = 2
"""A question of so few content words behind an "and" goes on from the one before it."""


def starts_with_anaphor(text: str) -> bool:
    """Whether `text` begins with a pronoun or another word that points back, in the language of the text: "Ella" is a name in
    English. Names and capitals ("ESA", "IT") point nowhere."""
    first = next(iter(text.split(maxsplit=1)), "").strip("\"'“‘«(,")
    if len(first) > 1 and first.isupper():
        return False
    return _is_pronoun(first.lower(), text) or text.startswith(_PRONOUNS_WITHOUT_SPACES)


def leans_on_the_last(question: str) -> bool:
    """Whether a question cannot be understood without the one before it: it has a pronoun for what it is about, goes on with "and",
    or has at most one word of its own and asks not what that is."""
    found = content_words(question)
    return (
        not found
        or (len(found) == 1 and not found[0].is_exact and read_question(question).kind is not AnswerKind.DEFINITION)
        or goes_on(question)
        or has_pronoun(question)
    )


def has_pronoun(text: str) -> bool:
    """Whether a word of `text` is a pronoun of its language."""
    return any(word in text for word in _PRONOUNS_WITHOUT_SPACES) or any(
        _is_pronoun(token.surface.lower(), text) for token in tokens(text)
    )


def goes_on(question: str) -> bool:
    """Whether a question asks in a few words behind "and" what the one before it asked, of something else: "And in 2020?"."""
    folded = question.lower().lstrip("¿¡ ")
    language = LANGUAGES.get(language_by_words(folded))
    known = language.connectors if language else all_phrases("connectors")
    begins = folded.startswith((*(f"{each} " for each in known), *_CONNECTORS_WITHOUT_SPACES))
    return begins and len(content_words(question)) <= _MOST_TRAILING_TERMS


def content_words(text: str) -> list[Token]:
    """The words of a text without stop words and function words of its language."""
    language = LANGUAGES.get(language_by_words(text.lower()), LANGUAGES[ENGLISH])
    return [
        token
        for token in tokens(text)
        if not token.is_stopword and token.surface.lower() not in language.function_words
    ]


def _is_pronoun(word: str, text: str) -> bool:
    """Whether a word is a pronoun of the language of the text, or of any language where that is uncertain."""
    if word not in _PRONOUNS:
        return False
    language = LANGUAGES.get(language_by_words(text.lower()))
    return language is None or word in language.pronouns
