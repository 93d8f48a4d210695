"""Different amounts of one thing, found without a model."""

import pytest

from services.orchestrator.log.events import Evidence, Origin
from services.orchestrator.research.amounts import find_different_amounts


def _passages(*texts: str, is_chat: bool = False) -> list[Evidence]:
    return [
        Evidence(
            number,
            f"c{number}",
            "chat" if is_chat else f"d{number}",
            "name",
            text,
            origin=Origin(channel="Harbour", message_id=str(number)) if is_chat else None,
        )
        for number, text in enumerate(texts, start=1)
    ]


@pytest.mark.parametrize(("question", "texts", "values"), [
    (
        "What did the crane of quay 3 cost?",
        ("The crane of quay 3 cost 2.1 million euros, cabling included.", "By the audit, quay 3's crane cost 1.8 million euros."),
        ["2.1 million euros", "1.8 million euros"],
    ),
    (
        "Сколько стоил ремонт ледокола «Громов»?",
        ("Ремонт ледокола «Громов» закончен, он стоил 64 миллиона рублей.",
         "Портовики пишут, что ремонт ледокола «Громов» стоил 70 миллионов рублей."),
        ["64 миллиона рублей", "70 миллионов рублей"],
    ),
    (
        "What is the discount of the Brell card?",
        ("The Brell card's discount: 5%.", "A discount of 8% comes with the Brell card."),
        ["5%", "8%"],
    ),
])  # fmt: skip
def test_different_amounts_of_what_is_asked_are_found(question: str, texts: tuple[str, ...], values: list[str]) -> None:
    (found,) = find_different_amounts(question, _passages(*texts))
    assert [each.text for each in found.values] == values
    assert [texts[each.source - 1][each.start : each.end] for each in found.values] == values
    assert "…" in found.what


@pytest.mark.parametrize(("question", "texts"), [
    ("What did the crane of quay 3 cost?", ("Crane of quay 3: cost 2 million euros.", "Crane of quay 4: cost 5 million euros.")),
    ("What did the crane cost?", ("The crane cost 2 million euros.", "The crane cost 2 million euros, says the audit.")),
    ("What did the crane cost?", ("The crane cost 2 million euros, its rail 1 million euros.", "The crane cost 3 million euros.")),
    ("What did the crane cost?", ("The crane cost 2 million euros.", "The crane, whose cost is known, lifts 45 tonnes.")),
    ("When was the crane built?", ("The crane was built within 3 months.", "The crane was built in 5 months.")),
    ("How was the crane shown?", ("The crane was shown in 1998.", "The crane was shown again in 2004.")),
])  # fmt: skip
def test_other_things_and_the_same_amount_are_no_disagreement(question: str, texts: tuple[str, ...]) -> None:
    assert find_different_amounts(question, _passages(*texts)) == []


def test_messages_of_one_export_are_sources_of_their_own_and_chunks_of_a_document_are_not() -> None:
    texts = "The crane cost 2 million euros.", "The crane cost 3 million euros, they say."
    assert find_different_amounts("What did the crane cost?", _passages(*texts, is_chat=True))
    one_document = [Evidence(number, f"c{number}", "d", "name", text) for number, text in enumerate(texts, start=1)]
    assert find_different_amounts("What did the crane cost?", one_document) == []
