"""The rules of answering without a model, each with a switch. They change the order of the sentences and what the trees are told,
never the probability that the trees say.

A rule is switched off by leaving it out of `ExtractiveSettings.rules`. `make eval ANSWERS=--ablate` says what each one earns.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A rule by its name, and what it does."""

    name: str
    what: str


ANSWER_KIND = Rule(
    "answer kind", "a sentence with a date, a number, a name or the like is preferred where one is asked for"
)
PRONOUNS = Rule("pronouns", "a sentence that begins with a pronoun holds half of what the sentence before it holds")
TITLES = Rule(
    "titles", "a sentence under a title that holds the whole question, and a row, hold most of what the title holds"
)
FAMILIES = Rule("word families", "words that share their first five letters meet")
TYPE_NOUN = Rule("type noun", 'the word behind "which" weighs half')
SAYS_NOTHING = Rule("says nothing", "questions, short exclamations and lines that only introduce others are no answers")
ANTECEDENTS = Rule("antecedents", "the sentence that a pronoun stands for is quoted before it")
TWO_STEPS = Rule(
    "two steps",
    'a question such as "Where was the founder of Acme born?" is asked again with the name that a passage tells',
)
RULES = frozenset({TWO_STEPS, ANSWER_KIND, PRONOUNS, TITLES, FAMILIES, TYPE_NOUN, SAYS_NOTHING, ANTECEDENTS})
