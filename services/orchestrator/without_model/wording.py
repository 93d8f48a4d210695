"""What Groundwork says itself in the language of the question: that the documents do not answer, and a sentence to small talk."""

from kit.language.data import ENGLISH, LANGUAGES, Language
from kit.language.question_language import Languages

_LEAST_CERTAINTY = 0.25
"""Below this certainty the words of a short question are no reason to leave English."""
_LEAST_CERTAINTY_OF_ENGLISH = 0.4
"""Names of other languages in an English question ("What is the Gleichschaltung?") share its certainty."""
REFUSALS = tuple(text for language in LANGUAGES.values() for text in (language.refusal, language.unsure))


def wording(question: str, languages: Languages | None) -> Language:
    """The language of the question; English where it is uncertain, and without `languages`. Loads a model when first used."""
    certainties = languages.certainties(" ".join(question.lower().split())) if languages else {}
    code = max(certainties, key=lambda each: certainties[each], default=ENGLISH)
    is_english = certainties.get(ENGLISH, 0.0) >= _LEAST_CERTAINTY_OF_ENGLISH
    if is_english or certainties.get(code, 0.0) < _LEAST_CERTAINTY:
        code = ENGLISH
    return LANGUAGES.get(code, LANGUAGES[ENGLISH])
