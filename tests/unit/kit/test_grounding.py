"""What a judge says of a sentence and one source, and how much of a question passages speak of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from kit.grounding import SUPPORT_THRESHOLD, Judge, question_coverage


@dataclass(frozen=True)
class _Source:
    number: int
    document_name: str
    text: str
    heading_path: Sequence[str] = ()


JUDGE = Judge(
    (
        _Source(1, "tower.txt", "The tower was built in 1889 by Gustave Eiffel. It is 330 metres high."),
        _Source(2, "rules.md", "Visitors may not use the stairs at night.", ("Opening hours", "Berlin office")),
    )
)


@pytest.mark.parametrize(
    ("sentence", "number", "disagrees"),
    [
        ("The tower was built in 1889.", 1, False),
        ("The tower was built in 1890.", 1, True),  # another number
        ("The tower was built in 1889 by Jean Nouvel.", 1, True),  # another name
        ("The tower was not built in 1889.", 1, True),
        ("Visitors may use the stairs at night.", 2, True),
        ("Visitors may not use the stairs in Berlin at night.", 2, False),  # the name stands in the heading
        ("The restaurant opened in 1932.", 1, False),  # speaks of something else
        ("The tower was built by workers.", 1, False),  # no number and no name of its own
    ],
)
def test_a_source_disagrees_when_it_denies_or_tells_of_another_number_or_name(
    sentence: str, number: int, disagrees: bool
) -> None:
    assert JUDGE.disagrees(sentence, number) is disagrees


def test_the_closest_sentence_shares_most_words() -> None:
    assert JUDGE.closest("How high is the tower in metres?", 1) == ("It is 330 metres high.", 2 / 3)
    assert JUDGE.closest("Oysters!", 1) == ("", 0.0)
    assert JUDGE.closest("", 1) == ("", 0.0)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (
            "यह किताब बहुत पुरानी है।",  # vowel signs are parts of words
            "नगर का पुराना पुल राजा ने बनवाया था, और आज भी बहुत से लोग उस पर से तालाब की ओर जाते हैं; यह कर हटा दिया गया।",
        ),
        ("הַסֵּפֶר עַתִּיק", "הַסּוּס רָץ עַל פְּנֵי הַשָּׂדֶה, תִּינוֹק יָשֵׁן קֹדֶם"),
        ("می‌خواهم کتاب‌ها", "می‌رود خواهم‌نوشت ها کتابخانه"),  # and so is a joiner
    ],
)
def test_a_sentence_is_carried_by_its_words_and_not_by_the_letters_they_are_made_of(text: str, other: str) -> None:
    judge = Judge((_Source(1, "a", text), _Source(2, "b", other)))
    assert judge.score(text, (1,)) >= SUPPORT_THRESHOLD > judge.score(text, (2,))


@pytest.mark.parametrize(
    ("question", "passage", "share"),
    [
        ("Welche Kündigungsfristen gelten?", "Die Kündigungsfrist gilt für alle.", 1 / 2),
        ("Какие сроки уведомления?", "Срок об уведомлении составляет месяц.", 1.0),
        ("Which contract of 1989?", "The contracts of 1988.", 1 / 2),  # a number has one form
    ],
)
def test_other_forms_of_a_word_count_for_coverage(question: str, passage: str, share: float) -> None:
    assert question_coverage(question, [passage])[0] == pytest.approx(share)


@pytest.mark.parametrize(
    ("question", "share", "missing"),
    [
        ("Who built the tower?", 1.0, []),
        ("When was the bridge built?", 0.5, ["bridge"]),
        ("What about Zurich and the tower?", 0.5, ["Zurich"]),
        ("", 0.0, []),
    ],
)
def test_coverage_of_a_question_names_its_missing_words(question: str, share: float, missing: list[str]) -> None:
    assert question_coverage(question, ["The tower was built in 1889.", "It is high."]) == (share, missing)
