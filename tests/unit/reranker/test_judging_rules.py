# ruff: noqa: E501 - a table of sentences is read across
"""The exact rules in front of the learned judge: what each speaks against, and what it leaves alone."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from kit.language.data import LANGUAGES
from services.reranker.judging import reasons, small_words
from services.reranker.judging.features import Alignment
from services.reranker.judging.reading import ReadText, joined, read_text, with_vectors
from services.reranker.judging.rules.table import RULES, rules_against, switched
from services.reranker.judging.rules.word_for_word import stands_word_for_word
from services.reranker.models import Float32
from tests.unit.reranker.test_judging import pieces_of

_DIMENSION = 128
_GERMAN = {
    "boris": "boris", "anna": "anna", "trägt": "carries", "die": "the", "kisten": "crates", "keine": "no", "nicht": "not", "treppe": "stairs",
    "alle": "all", "köche": "cooks", "unterschreiben": "sign", "lieferungen": "deliveries", "nur": "only", "hat": "has", "geliehen": "lent",
    "säge": "saw", "märz": "march", "mai": "may", "schließt": "closes", "kantine": "canteen", "im": "in",
}  # fmt: skip


def read(text: str, heading: str = "", same_as: Mapping[str, str] | None = None) -> ReadText:
    """A text whose words have a vector each, that of their translation where `same_as` has one."""
    words = [word.lower().strip(".,;!?:") for word in joined(heading, text).split()]
    known = [(same_as or {}).get(word, word) for word in words]
    tokens = np.stack([_vector(word) for word in known])
    pooled = np.ones(_DIMENSION, np.float32) / np.sqrt(_DIMENSION)
    return with_vectors(text, heading, read_text(text, heading, pieces_of), (tokens * 10).astype(np.int8), pooled)


def _vector(word: str) -> Float32:
    """Of its own for each word; numbers are near each other."""
    own = np.random.default_rng(sum(map(ord, word)) + len(word)).normal(size=_DIMENSION)
    number = np.random.default_rng(1).normal(size=_DIMENSION)
    return np.asarray(own + 2 * number if any(map(str.isdigit, word)) or word == "twelve" else own, np.float32)


def against(claim: str, passage: str, heading: str = "") -> set[str]:
    is_german = small_words.language_of(claim) == "de"
    rules = [replace(rule, is_on=True) for rule in RULES]
    found = rules_against(Alignment(read(claim, "", _GERMAN if is_german else None), read(passage, heading)), rules)
    return {rule.name for rule in found}


HOUSE = "Boris does not carry the crates up the stairs. Only the head cook signs the deliveries."


@pytest.mark.parametrize(
    ("rule", "passage", "false", "true"),
    [
        ("number", "The fee is 1,200 euros.", "The fee is 1,300 euros.", "The fee is 1200 euros."),
        ("number", "There are twelve trees.", "There are 13 trees.", "There are 12 trees."),
        ("number", "The gate opens at 20:00.", "The gate opens at 9 pm.", "The gate opens at 8 pm."),
        ("unit", "The check takes 20 minutes.", "The check takes 20 hours.", "The check takes 20 minutes."),
        ("date", "The canteen closes in March.", "The canteen closes in May.", "In March the canteen closes."),
        ("date", "The library is closed on Mondays and on Friday.", "The library is closed on Sunday.", "It is closed on Friday."),
        ("denial", HOUSE, "Boris does carry the crates up the stairs.", "Boris does not carry the crates up the stairs."),
        ("denial", "Smoking in the back yard behind house three is forbidden.", "Smoking in the back yard behind house three is fine.", "In the back yard behind house three smoking is forbidden."),
        (
            "denial",
            "The cold room may not be entered without a jacket.",
            "The cold room may be entered without a jacket.",
            "The cold room may not be entered without a jacket.",
        ),
        ("scope", "Some of the rooms have a balcony.", "All of the rooms have a balcony.", "Some rooms have a balcony."),
        ("comparison", "The pool is smaller than the lake.", "The pool is larger than the lake.", "The pool is smaller than the lake."),
        ("comparison", "The pool is smaller than the lake.", "The lake is smaller than the pool.", "The lake is larger than the pool."),
        ("comparison", "Wheels are checked before brakes.", "Brakes are checked before wheels.", "Brakes are checked after wheels."),
        ("roles", "Then Boris taught Anna to weld.", "Then Anna taught Boris to weld.", "Then Boris taught Anna to weld."),
        ("roles", "Then Boris taught Anna to weld.", "Then Boris was taught by Anna.", "Then Anna was taught by Boris."),
        (
            "attribution",
            "Boris blamed the weather, and Anna blamed the driver.",
            "Anna blamed the weather.",
            "Boris blamed the weather.",
        ),
        ("cause", "The yard is closed.", "The yard is closed because some pipes burst.", "The yard is closed."),
    ],
)  # fmt: skip
def test_rule_speaks_against_a_false_claim_and_not_against_a_true_one(
    rule: str, passage: str, false: str, true: str
) -> None:
    assert rule in against(false, passage)
    assert not against(true, passage)


@pytest.mark.parametrize(
    ("rule", "passage", "claim"),
    [
        ("denial", HOUSE, "Boris trägt die Kisten die Treppe."),
        ("scope", HOUSE, "Alle Köche unterschreiben die Lieferungen."),
        ("roles", "Today Boris lent Anna the saw.", "Ja, Anna geliehen Boris die Säge."),
        ("date", "The canteen closes in March.", "Die Kantine schließt im Mai."),
    ],
)
def test_rules_hold_across_languages(rule: str, passage: str, claim: str) -> None:
    passage = passage.replace("carry", "carries").replace("cook signs", "cooks sign")
    assert rule in against(claim, passage)


def test_true_claims_in_another_language_are_left_alone() -> None:
    passage = HOUSE.replace("carry", "carries")
    assert not against("Boris trägt die Kisten nicht die Treppe.", passage)


def test_a_number_in_the_heading_is_there() -> None:
    assert not against("The budget of 2024 is fixed.", "The budget is fixed.", "Budget 2024")


def test_a_rule_can_be_switched_off() -> None:
    assert "number" not in {rule.name for rule in switched(["number"])}
    assert len(switched([])) == len(RULES)
    with pytest.raises(ValueError, match="there are no rules"):
        switched(["luck"])


def test_each_rule_has_its_figure_and_each_language_its_words() -> None:
    assert set(reasons.ceilings()) == {rule.name for rule in RULES}
    assert all(small_words.cues_of("", code) == frozenset() for code in LANGUAGES)
    assert set(small_words.languages()) == set(LANGUAGES)
    assert all(0.0 < ceiling <= 1.0 for ceiling in reasons.ceilings().values())


@pytest.mark.parametrize(
    ("word", "language", "value"),
    [("zwölf", "de", "12"), ("двух", "ru", "2"), ("on", "tr", "10"), ("on", "en", ""), ("sept", "fr", "7"), ("sei", "it", "")],
)  # fmt: skip
def test_numbers_are_read_in_the_language_of_their_text(word: str, language: str, value: str) -> None:
    assert small_words.number_of(word, language) == value


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Nachtschicht wird gestrichen.", "de"),
        ("夜班不会取消。", "zh"),
        ("写真を撮ってはいけません。", "ja"),
        ("נועה אוספת את הילדים בצהריים.", "he"),
        ("Ящики носит Мирела.", "ru"),
    ],
)
def test_language_of_a_short_claim_is_told(text: str, language: str) -> None:
    assert small_words.language_of(text) == language


@pytest.mark.parametrize(
    ("claim", "passage", "is_carried"),
    [
        ("Boris carries the crates.", "Boris carries the crates, and Anna signs.", True),
        ("Anna signs the list.", "Boris carries the crates and Anna signs the list.", True),
        ("The gate opens at 8.", "The hall is old. The gate opens at 8.", True),
        ("Boris carries the crates.", "Nobody knows that Boris carries the crates.", False),
        ("Boris carries the crates.", "Boris carries the crates unless it rains.", False),
        ("Boris carries the crates.", "Boris carries the crates up the stairs.", False),
        ("Boris carries the list.", "Boris carries the crates. Anna signs the list.", False),
        ("Anna the crates.", "Boris and Anna. The crates.", False),
        ("Boris carries.", "Boris carries.", False),
    ],
)
def test_whole_clauses_that_nothing_beside_them_changes_are_carried(claim: str, passage: str, is_carried: bool) -> None:
    assert stands_word_for_word(Alignment(read(claim), read(passage))) is is_carried
