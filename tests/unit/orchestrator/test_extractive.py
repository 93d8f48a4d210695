"""The answerer with a scorer that is exact: similarity is what the case says, and about what MiniLM gives otherwise."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from services.orchestrator.without_model import (
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
    text = "The dam holds water.[7] The dam has the index a[1] = 3."
    found = await answer("Describe the dam", passages(text), FakeScorer(otherwise=0.8), SETTINGS)
    assert "".join(render(found)) == "The dam holds water. [1] The dam has the index a[\u20601] = 3. [2]"


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
