"""The answerer with a scorer that is exact: similarity is what the case says, and about what MiniLM gives otherwise."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from services.orchestrator.answering.extractive import (
    EMPTY_QUESTION,
    NO_EVIDENCE,
    WEAK_EVIDENCE,
    ExtractiveAnswer,
    ExtractiveSettings,
    Passage,
    answer,
    render,
)

SETTINGS = ExtractiveSettings()


@dataclass
class FakeScorer:
    """Similarity by the first phrase that a sentence contains; `otherwise` for the rest."""

    by_phrase: Mapping[str, float] = field(default_factory=dict)
    otherwise: float = 0.3
    asked: list[Sequence[str]] = field(default_factory=list)

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        self.asked.append(sentences)
        return [next((s for p, s in self.by_phrase.items() if p in sentence), self.otherwise) for sentence in sentences]


@dataclass
class BrokenScorer:
    scores: Sequence[float] | None = None

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        if self.scores is None:
            raise ConnectionError("model server is gone")
        return self.scores


class HangingScorer:
    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        await asyncio.Event().wait()
        raise AssertionError


def passages(*texts: str, dense: float | None = 0.6, document: str | None = None) -> list[Passage]:
    return [
        Passage(
            number=number,
            text=text,
            document_id=document or f"d{number}",
            chunk_id=f"c{number}",
            dense_score=dense,
            ordinal=number,
        )
        for number, text in enumerate(texts, 1)
    ]


def shown(found: ExtractiveAnswer) -> list[str]:
    return [sentence.text for sentence in found.sentences]


APOLLO = (
    "Apollo 11 was launched on July 16, 1969 from Kennedy Space Center. It was commanded by Neil Armstrong. "
    "Michael Collins stayed in orbit."
)
HANDBOOK = "Customers may return any item within 30 days. Refunds are paid within five business days. Opened software is excluded."


async def test_only_sentence_of_the_only_document_answers() -> None:
    found = await answer(
        "What is the capital of Freedonia?",
        passages("The capital of Freedonia is Sylvania City."),
        FakeScorer(otherwise=0.85),
        SETTINGS,
    )
    assert found.answerable
    assert render(found) == ["The capital of Freedonia is Sylvania City. [1]"]


@dataclass(frozen=True)
class Fact:
    question: str
    text: str
    best: str


FACTS = [
    Fact("When was Apollo 11 launched?", APOLLO, "Apollo 11 was launched on July 16, 1969 from Kennedy Space Center."),
    Fact("Who stayed in orbit?", APOLLO, "Michael Collins stayed in orbit."),
    Fact(
        "How many days do customers have to return an item?", HANDBOOK, "Customers may return any item within 30 days."
    ),
    Fact(
        "Wann wurde die Firma gegründet?",
        "Heute ist sie groß. Die Firma wurde 1987 gegründet.",
        "Die Firma wurde 1987 gegründet.",
    ),
    Fact("人口は？", "首都は東京です。人口は約1400万人です。", "人口は約1400万人です。"),
    Fact("price of gadget", "name: Widget; price: 5\nname: Gadget; price: 12", "name: Gadget; price: 12"),
]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.question)
@pytest.mark.parametrize("scored", [True, False], ids=["with scorer", "words alone"])
async def test_factoid_question_gets_the_one_sentence(fact: Fact, scored: bool) -> None:
    scorer = FakeScorer({fact.best: 0.8}) if scored else None
    assert shown(await answer(fact.question, passages(fact.text), scorer, SETTINGS)) == [fact.best]


async def test_similarity_decides_when_words_do_not() -> None:
    found = await answer(
        "What does the plant emit?",
        passages("The plant has a tall chimney. The factory releases steam."),
        FakeScorer({"steam": 0.9}),
        SETTINGS,
    )
    assert "The factory releases steam." in shown(found)


async def test_span_points_into_the_passage() -> None:
    text = "Intro line.\n\nThe capital of\nFreedonia is Sylvania City."
    (sentence,) = (await answer("capital of Freedonia", passages(text), FakeScorer(otherwise=0.8), SETTINGS)).sentences
    assert text[sentence.start : sentence.end] == "The capital of\nFreedonia is Sylvania City."
    assert sentence.text == "The capital of Freedonia is Sylvania City."


async def test_pronoun_pulls_its_antecedent_in() -> None:
    found = await answer("Who commanded Apollo 11?", passages(APOLLO), FakeScorer({"commanded": 0.75}), SETTINGS)
    assert shown(found)[1] == "It was commanded by Neil Armstrong."
    assert shown(found)[0].startswith("Apollo 11 was launched")


async def test_question_that_is_only_quoted_and_exclamations_are_no_answers() -> None:
    text = 'gw ask "How many days of leave do I have?"  # asks\n\nLeave days!\n\nYou have 27 days of leave a year.'
    found = await answer("How many days of leave do I have?", passages(text), None, SETTINGS)
    assert shown(found) == ["You have 27 days of leave a year."]


async def test_procedure_keeps_its_next_step() -> None:
    text = "To restart the billing service, drain its traffic. Then run the restart job. The team is in Oslo."
    found = await answer(
        "How do I restart the billing service?", passages(text), FakeScorer({"To restart": 0.8}), SETTINGS
    )
    assert shown(found) == ["To restart the billing service, drain its traffic.", "Then run the restart job."]


async def test_list_is_answered_with_its_items() -> None:
    text = "All employees receive:\n- paid leave\n- health insurance\n\nThe office is in Oslo."
    found = await answer(
        "What benefits do employees receive?", passages(text), FakeScorer({"employees": 0.7}), SETTINGS
    )
    assert shown(found) == ["All employees receive:\n- paid leave\n- health insurance"]


async def test_keywords_of_a_title_get_the_section_below_it() -> None:
    section = [replace(passages(HANDBOOK)[0], heading_path=("Handbook", "Refund policy"))]
    found = await answer("refund policy", section, FakeScorer(otherwise=0.5), SETTINGS)
    assert shown(found)[0] == "Customers may return any item within 30 days."
    assert len(found.sentences) > 1


async def test_parts_of_a_question_are_answered_from_several_passages() -> None:
    texts = ("The Alpha plan costs 10 euros.", "The weather is mild.", "The Beta plan costs 20 euros.")
    scorer = FakeScorer({"plan": 0.7})
    found = await answer("What do the Alpha plan and the Beta plan cost?", passages(*texts), scorer, SETTINGS)
    assert {sentence.number for sentence in found.sentences} == {1, 3}


async def test_same_statement_in_two_passages_is_said_once() -> None:
    texts = ("The fee is 40 euros a year for members.", "The fee is 40 euros a year for all members.")
    found = await answer("Describe the fee for members", passages(*texts), FakeScorer(otherwise=0.8), SETTINGS)
    assert [sentence.number for sentence in found.sentences] == [1]


async def test_overlap_of_neighbouring_chunks_is_said_once() -> None:
    texts = ("Rain falls. The dam holds two lakes of water.", "The dam holds two lakes of water. Snow falls.")
    found = await answer("Describe the dam", passages(*texts, document="d"), FakeScorer({"dam": 0.8}), SETTINGS)
    assert shown(found).count("The dam holds two lakes of water.") == 1


async def test_sentences_of_one_document_stand_in_reading_order() -> None:
    later, earlier = passages("The dam was raised in 1950.", "The dam was begun in 1930.", document="d")
    found = await answer(
        "Describe the dam",
        [replace(later, ordinal=7), replace(earlier, ordinal=2)],
        FakeScorer(otherwise=0.8),
        SETTINGS,
    )
    assert [sentence.number for sentence in found.sentences] == [2, 1]


async def test_no_answer_is_longer_than_the_limit() -> None:
    text = " ".join(
        f"The dam has part {word} of stone."
        for word in ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    )
    found = await answer("Describe the dam", passages(text), FakeScorer(otherwise=0.8), SETTINGS)
    assert 1 <= len(found.sentences) <= SETTINGS.max_units


REFUSALS = [
    ("Who won the football cup?", APOLLO, 0.1, 0.15),
    ("When was Apollo 13 launched?", APOLLO, 0.65, 0.55),
    ("What is the population of Freedonia?", "The capital of Freedonia is Sylvania City.", 0.55, 0.6),
    ("Which items can not be stored outside?", "Many of the items are stored outside.", 0.6, 0.6),
]


@pytest.mark.parametrize(("question", "text", "similarity", "dense"), REFUSALS)
async def test_weak_evidence_is_refused(question: str, text: str, similarity: float, dense: float) -> None:
    found = await answer(question, passages(text, dense=dense), FakeScorer(otherwise=similarity), SETTINGS)
    assert (found.answerable, found.sentences, found.reason) == (False, (), WEAK_EVIDENCE)
    assert found.confidence < SETTINGS.min_confidence


@pytest.mark.parametrize("scorer", [FakeScorer(otherwise=0.1), None], ids=["scorer", "no scorer"])
@pytest.mark.parametrize("dense", [0.1, None], ids=["dense", "no dense"])
async def test_off_topic_question_is_refused_whatever_is_known(scorer: FakeScorer | None, dense: float | None) -> None:
    found = await answer("How do I bake sourdough bread?", passages(APOLLO, HANDBOOK, dense=dense), scorer, SETTINGS)
    assert not found.answerable


async def test_stronger_evidence_gives_more_confidence() -> None:
    weak, strong = [
        await answer("Who stayed in orbit?", passages(APOLLO), FakeScorer(otherwise=similarity), SETTINGS)
        for similarity in (0.5, 0.8)
    ]
    assert weak.confidence < strong.confidence


@pytest.mark.parametrize(
    ("question", "texts", "reason"),
    [
        ("", (APOLLO,), EMPTY_QUESTION),
        ("?!", (APOLLO,), EMPTY_QUESTION),
        ("Who?", (), NO_EVIDENCE),
        ("Who?", ("", " \n"), NO_EVIDENCE),
    ],
)
async def test_nothing_to_ask_or_to_read_is_refused(question: str, texts: tuple[str, ...], reason: str) -> None:
    assert (await answer(question, passages(*texts), FakeScorer(), SETTINGS)).reason == reason


BROKEN = [
    (None, "no sentence scorer is configured"),
    (BrokenScorer(), "ConnectionError"),
    (BrokenScorer([0.5]), "1 scores for 3 sentences"),
    (BrokenScorer([float("nan")] * 3), "not all were numbers"),
    (HangingScorer(), "longer than"),
]


@pytest.mark.parametrize(("scorer", "said"), BROKEN, ids=["none", "raises", "too few", "nan", "hangs"])
async def test_answer_survives_a_failing_scorer_and_says_so(
    scorer: BrokenScorer | HangingScorer | None, said: str
) -> None:
    settings = replace(SETTINGS, scorer_timeout_s=0.02)
    found = await answer("Who stayed in orbit?", passages(APOLLO), scorer, settings)
    assert shown(found) == ["Michael Collins stayed in orbit."]
    assert said in found.degraded_reason


async def test_working_scorer_is_not_called_degraded() -> None:
    found = await answer("Who stayed in orbit?", passages(APOLLO), FakeScorer(otherwise=0.7), SETTINGS)
    assert found.degraded_reason == ""


async def test_cancelling_the_run_cancels_the_answer() -> None:
    task = asyncio.ensure_future(answer("Who stayed in orbit?", passages(APOLLO), HangingScorer(), SETTINGS))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_scores_of_another_scale_still_rank() -> None:
    scorer = FakeScorer({"Collins": 9.5}, otherwise=-7.0)
    found = await answer("Who stayed in orbit?", passages(APOLLO), scorer, SETTINGS)
    assert shown(found) == ["Michael Collins stayed in orbit."]


async def test_scorer_sees_few_sentences_and_each_once() -> None:
    scorer = FakeScorer(otherwise=0.7)
    text = " ".join(f"Sentence {number} is about the dam." for number in range(200))
    await answer("What about the dam?", passages(text, text), scorer, SETTINGS)
    (asked,) = scorer.asked
    assert len(asked) == len(set(asked)) <= SETTINGS.max_scored_units
    assert sum(map(len, asked)) <= SETTINGS.max_scored_chars


async def test_pieces_join_to_text_with_a_mark_after_each_sentence() -> None:
    found = await answer("Who commanded Apollo 11?", passages(APOLLO), FakeScorer({"commanded": 0.75}), SETTINGS)
    assert "".join(render(found)) == (
        "Apollo 11 was launched on July 16, 1969 from Kennedy Space Center. [1] It was commanded by Neil Armstrong. [2]"
    )


async def test_footnote_marks_of_the_source_are_not_shown_as_citations() -> None:
    text = "The dam holds water.[7] Its index is a[1] = 3."
    found = await answer("Describe the dam", passages(text), FakeScorer(otherwise=0.8), SETTINGS)
    assert "".join(render(found)) == "The dam holds water. [1] Its index is a[\u20601] = 3. [2]"


async def test_sentence_that_points_back_is_scored_with_what_it_points_to() -> None:
    text = (
        "The lighthouse of Roter Sand stands in the Weser. It was finished in 1885. The light was switched off in 1986."
    )
    scorer = FakeScorer({"Roter Sand": 0.7, "1885": 0.3, "1986": 0.3})
    found = await answer("When was the lighthouse of Roter Sand finished?", passages(text), scorer, SETTINGS)
    assert "The lighthouse of Roter Sand stands in the Weser. It was finished in 1885." in scorer.asked[0]
    assert "It was finished in 1885." in shown(found)


async def test_identifier_that_the_evidence_does_not_hold_is_refused() -> None:
    text = "Note 104: the locker number of employee E104 is 1728."
    scorer = FakeScorer({"E104": 0.75})
    asked = "What is the locker number of employee {}?"
    assert (await answer(asked.format("E104"), passages(text), scorer, SETTINGS)).answerable
    assert not (await answer(asked.format("E999"), passages(text), scorer, SETTINGS)).answerable


async def test_yes_or_no_question_with_another_number_is_answered_by_the_true_one() -> None:
    text = (
        "The lighthouse of Skarvholm was built between 1861 and 1864. Its architect was Henrik Aas. "
        "Formerly the lamp burned paraffin. Visitors may climb the tower in July and August.\n\n"
        "The lighthouse of Grindholm is 21 metres high and was built in 1902."
    )
    scorer = FakeScorer({"Grindholm": 0.8})
    found = await answer("Was the lighthouse of Grindholm built in 1912?", passages(text), scorer, SETTINGS)
    assert "built in 1902" in shown(found)[0]
    alone = text.rpartition("\n\n")[2]
    assert (
        await answer("Was the lighthouse of Grindholm built in 1912?", passages(alone), scorer, SETTINGS)
    ).answerable
    assert not (
        await answer("Was the lighthouse of Grindholm sold in 1912?", passages(text), scorer, SETTINGS)
    ).answerable
    assert not (await answer("Which lighthouse was built in 1912?", passages(text), scorer, SETTINGS)).answerable


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How much does admission cost?", "Admission is free."),
        ("Was kostet der Eintritt?", "Der Eintritt ist kostenlos."),
        ("Combien coûte l'entrée ?", "L'entrée est gratuite."),
        ("¿Cuánto cuesta la entrada?", "La entrada es gratis."),
        ("Сколько стоит вход?", "Вход бесплатный."),
    ],
)
async def test_what_costs_nothing_answers_what_it_costs(question: str, text: str) -> None:
    found = await answer(question, passages(text), FakeScorer(otherwise=0.6), SETTINGS)
    assert shown(found) == [text]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the price of a massage?", "A massage is 60 euros an hour."),
        ("How much does membership cost?", "The yearly fee for membership is $40."),
        ("Was kostet die Unterkunft?", "Für die Unterkunft zahlen Gäste 80 Euro pro Nacht."),
    ],
)
async def test_amount_of_money_answers_what_something_costs(question: str, text: str) -> None:
    other = "The massage, the membership and die Unterkunft are booked at the desk."
    found = await answer(question, passages(f"{other} {text}"), FakeScorer({text: 0.8, other: 0.6}), SETTINGS)
    assert shown(found)[0] == text


async def test_what_is_free_of_something_is_not_free_of_charge() -> None:
    for text in (
        "The kiosk sells sugar-free drinks.",
        "The drink is free on Mondays from sugar.",
        "Please feel free to ask for a drink.",
        "You are free to take the drink with you.",
        "The table with the drink is free again.",
    ):
        found = await answer("How much does the drink cost?", passages(text), FakeScorer(otherwise=0.6), SETTINGS)
        assert not found.answerable


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Darf man hier parken?", "Parken verboten!"),
        ("Ist der Eintritt frei?", "Eintritt frei!"),
        ("Was kostet der Eintritt?", "Eintritt frei!"),
    ],
)
async def test_notice_answers_what_it_is_about(question: str, text: str) -> None:
    notices = f"Hinweise\n\n{text}\n\nDie Haustür wird um zehn Uhr abgeschlossen."
    found = await answer(question, passages(notices), FakeScorer({text: 0.8}), SETTINGS)
    assert shown(found) == [text]


async def test_exclamation_says_nothing_about_what_is_asked() -> None:
    found = await answer(
        "Who is Ada?", passages("Welcome Ada!\n\nAda is the cook."), FakeScorer({"Ada": 0.8}), SETTINGS
    )
    assert shown(found) == ["Ada is the cook."]


async def test_row_that_does_not_answer_hides_no_sentence_that_does() -> None:
    rows = "metric: retriever_engine_info; labels: engine, system; meaning: which search engines of the system are embedded, used"
    text = "On one machine two embedded search engines find the passages, Qdrant Edge and tantivy."
    scorer = FakeScorer({"On one machine": 0.75, "metric": 0.4})
    found = await answer("Which embedded search engines does the system use?", passages(rows, text), scorer, SETTINGS)
    assert shown(found) == [text]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("The visitor must sign in at gate 4 [99].", "The visitor must sign in at gate 4. [1]"),
        ("The visitor must sign in at gate 4.[7][8]", "The visitor must sign in at gate 4. [1]"),
        ("The visitor is read from `gate[4]` at sign in.", "The visitor is read from `gate[\u20604]` at sign in. [1]"),
    ],
)
async def test_marks_of_the_source_are_not_taken_for_citations(text: str, quoted: str) -> None:
    found = await answer("Where must the visitor sign in?", passages(text), FakeScorer({"visitor": 0.8}), SETTINGS)
    assert "".join(render(found)) == quoted
