"""What Groundwork says itself, in the language of the question."""

import pytest

from kit.language.detection import FastTextLanguages
from kit.language.question_language import QuestionLanguages
from services.orchestrator.answering.refusals import is_refusal, refusal
from services.orchestrator.log.events import Degradation
from services.orchestrator.without_model.wording import REFUSALS, wording

LANGUAGES = QuestionLanguages(FastTextLanguages())


@pytest.mark.parametrize(
    ("question", "refused"),
    [
        ("What is the boiling point of ethanol?", "The documents do not say."),
        ("Wie hoch ist der Eiffelturm eigentlich?", "Die Dokumente sagen dazu nichts."),
        ("Quelle est la capitale du pays ?", "Les documents ne le disent pas."),
        ("¿Quién ganó el mundial de fútbol?", "Los documentos no lo dicen."),
        ("Кто написал эту книгу?", "В документах этого нет."),
        ("长城有多长?", "文档中没有说明。"),
        ("من كتب هذا الكتاب؟", "لا تذكر الوثائق ذلك."),
        ("Que mangent les canards ?", "Les documents ne le disent pas."),
        ("Was kostet das Mittagessen in der Kantine?", "Die Dokumente sagen dazu nichts."),
        ("Was the harbour of Emden built by Die Zeit?", "The documents do not say."),
        ("R2D2 C3PO", "The documents do not say."),
    ],
)
def test_refusal_is_in_the_language_of_the_question(question: str, refused: str) -> None:
    assert wording(question, LANGUAGES).refusal == refused


def test_documents_are_said_not_to_say_only_where_nothing_is_near() -> None:
    words = wording("Wie alt ist der Kaiser von China?", LANGUAGES)
    assert refusal((), words, is_near=True).text == words.unsure != words.refusal
    lacking = [Degradation("dense", "UNAVAILABLE", "away")]
    assert "do not say" not in refusal(lacking, words, is_near=False).text


def test_every_refusal_is_known_as_one() -> None:
    assert all(is_refusal(each) and is_refusal(f"{each} …") for each in REFUSALS)


def test_refusal_is_whole_without_the_closest_passages() -> None:
    words = wording("Wie alt ist der Kaiser von China?", LANGUAGES)
    assert refusal((), words, is_near=False).text == words.refusal
    assert len(REFUSALS) == 2 * 24
    assert not [each for each in REFUSALS if each.endswith((":", "："))]
