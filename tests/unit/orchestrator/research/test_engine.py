"""Planning, fusing, measuring and refining, without a run."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kit.errors import NotFound, Unavailable
from services.orchestrator.log.events import Coverage, CoveragePart, Evidence, MetadataValues, PartState, SearchFilter
from services.orchestrator.models import SearchQuery
from services.orchestrator.research.coverage import ENOUGH, measure_coverage
from services.orchestrator.research.models import Effort, PlannedSearch, Purpose, RankedPassages, RoundFound
from services.orchestrator.research.planning import MOST_FIRST, plan_by_rules
from services.orchestrator.research.question.effort import choose_effort, takes_steps
from services.orchestrator.research.question.parts import split_question
from services.orchestrator.research.question.second_steps import second_steps
from services.orchestrator.research.search.fusing import EvidenceSet, fuse
from services.orchestrator.research.search.refining import refine_by_rules
from services.orchestrator.research.search.rounds import LIMITS, is_done, search_all
from tests.unit.orchestrator.research.corpus import Corpus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION = "Where was the director of The Iron Harbour born?"
BASE = SearchQuery((), ("default",), top_k=8)


def searches(*texts: str, purpose: Purpose = Purpose.QUESTION) -> list[PlannedSearch]:
    return [PlannedSearch(text, purpose) for text in texts]


async def found(corpus: Corpus, *planned: PlannedSearch) -> RoundFound:
    return await search_all(corpus, BASE, planned, "hybrid", at_once=4)


def test_plan_searches_the_question_and_each_of_its_names() -> None:
    plan = plan_by_rules("Who is older, Tom Barrow or Paul Marsh?", NOW)
    assert [(each.purpose, each.text) for each in plan.searches[:3]] == [
        (Purpose.QUESTION, "Who is older, Tom Barrow or Paul Marsh?"),
        (Purpose.SUBJECT, "Tom Barrow"),
        (Purpose.SUBJECT, "Paul Marsh"),
    ]


def test_plan_searches_a_quoted_phrase_by_its_words() -> None:
    plan = plan_by_rules('Who wrote "the tide comes twice" in the log?', NOW)
    (phrase,) = [each for each in plan.searches if each.purpose is Purpose.PHRASE]
    assert (phrase.strategy, list(phrase.must_phrases)) == ("lexical", ["the tide comes twice"])


def test_time_of_the_question_is_looked_at_besides_and_not_instead() -> None:
    plan = plan_by_rules("What did @harbour_news report in August 2023?", NOW)
    assert not plan.searches[0].filter.is_set
    (filtered,) = [each for each in plan.searches if each.purpose is Purpose.FILTERED]
    assert filtered.filter.date_from == datetime(2023, 8, 1, tzinfo=UTC)
    assert filtered.filter.date_to == datetime(2023, 9, 1, tzinfo=UTC)
    assert filtered.filter.metadata[0].key == "channel"


def test_filter_of_the_request_holds_for_all() -> None:
    asked = SearchFilter((MetadataValues("author", ("ann",)),))
    plan = plan_by_rules("What was said in August 2023?", NOW, asked)
    assert plan.filter == asked
    assert not any(each.filter.is_set for each in plan.searches)


def test_filter_of_a_plan_never_opens_what_the_request_has_closed() -> None:
    def month(number: int) -> datetime:
        return datetime(2023, number, 1, tzinfo=UTC)

    def authors(*names: str) -> SearchFilter:
        return SearchFilter((MetadataValues("author", names),))

    asked = BASE.narrowed_to(replace(authors("ann", "bob"), date_from=month(3), date_to=month(9)))
    within = asked.narrowed_to(replace(authors("bob", "cy"), date_from=month(1), date_to=month(5)))
    assert within.metadata == {"author": ("bob",)}
    assert (within.date_from, within.date_to) == (month(3), month(5))
    outside = asked.narrowed_to(replace(authors("cy"), date_from=month(10), date_to=month(12)))
    assert outside.metadata == {"author": ("ann", "bob")}
    assert (outside.date_from, outside.date_to) == (month(3), month(9))
    besides = asked.narrowed_to(SearchFilter((MetadataValues("channel", ("news",)),)))
    assert besides.metadata == {"author": ("ann", "bob"), "channel": ("news",)}


def test_plan_has_a_bound_and_repeats_nothing() -> None:
    plan = plan_by_rules(
        "Who is Ann Lee? Who is Bob Ray? Who is Cy Poe? Who is Dan Fox? Who is Eve Orr? Who is Flo Ash?", NOW
    )
    texts = [each.text for each in plan.searches]
    assert len(texts) == len(set(texts)) <= MOST_FIRST


async def test_searches_run_side_by_side_and_one_that_fails_is_told() -> None:
    corpus = Corpus(down=["Tom Barrow"])
    round_found = await found(corpus, *searches(QUESTION, "Tom Barrow"))
    assert [each.search.text for each in round_found.lists] == [QUESTION]
    assert [each.reason for each in round_found.degraded] == ["SEARCH_UNAVAILABLE"]


async def test_outage_of_all_searches_is_raised() -> None:
    with pytest.raises(Unavailable):
        await found(Corpus(down=["*"]), *searches(QUESTION, "Tom Barrow"))


async def test_error_of_the_question_is_raised_whatever_others_find() -> None:
    class Refusing(Corpus):
        async def search(self, query: SearchQuery):  # type: ignore[no-untyped-def]
            if query.queries[0] == "Tom Barrow":
                raise NotFound("collection x does not exist")
            return await super().search(query)

    with pytest.raises(NotFound):
        await found(Refusing(), *searches(QUESTION, "Tom Barrow"))


async def test_best_passage_of_each_name_is_among_the_evidence() -> None:
    first = await found(Corpus(), *searches(QUESTION))
    second = await found(Corpus(), *searches("Uppsala", "Tom Barrow", purpose=Purpose.NAME))
    evidence = fuse([first, second], QUESTION, 4).evidence
    assert {"Uppsala.md", "Tom Barrow.md"} <= {each.document_name for each in evidence}


async def test_passages_keep_their_numbers_over_the_rounds() -> None:
    first = await found(Corpus(), *searches(QUESTION))
    before = fuse([first], QUESTION, 4)
    after = fuse([first, await found(Corpus(), *searches("Uppsala", purpose=Purpose.NAME))], QUESTION, 4, before)
    numbers = {each.chunk_id: each.number for each in before.evidence}
    assert all(numbers.get(each.chunk_id, each.number) == each.number for each in after.evidence)
    new = [each.number for each in after.evidence if each.chunk_id not in numbers]
    assert new
    assert min(new) > max(numbers.values())


async def test_evidence_tells_where_it_stood_and_what_was_left_out() -> None:
    first = await found(Corpus(), *searches(QUESTION, "Tom Barrow"))
    fused = fuse([first], QUESTION, 2)
    assert {rank.stage for rank in fused.evidence[0].ranks} == {"lexical", "queries"}
    assert {each.stage for each in fused.dropped} == {"top_k"}


def test_text_that_two_searches_found_in_two_places_counts_once() -> None:
    one = Evidence(1, "c1", "d1", "a.md", "The tide comes twice a day in the harbour of Leith.")
    other = Evidence(1, "c2", "d2", "b.md", "The tide comes twice a day in the harbour of Leith.")
    lists = [
        RankedPassages(each, (chunk,)) for each, chunk in zip(searches("tide", "harbour"), ("c1", "c2"), strict=True)
    ]
    fused = fuse([RoundFound(tuple(lists), (one, other))], "tide", 8)
    assert [each.chunk_id for each in fused.evidence] == ["c1"]
    assert [(each.chunk_id, each.stage, each.kept_chunk_id) for each in fused.dropped] == [("c2", "duplicate", "c1")]


def coverage_of(question: str, *titles: str) -> Coverage:
    corpus = Corpus()
    evidence = [corpus.evidence(title, number) for number, title in enumerate(titles, 1)]
    return measure_coverage(question, split_question(question), evidence)


def test_coverage_grows_with_what_the_question_needs() -> None:
    nothing = coverage_of(QUESTION, "Uppsala")
    subject = coverage_of(QUESTION, "The Iron Harbour")
    whole = coverage_of(QUESTION, "The Iron Harbour", "Edda Lindqvist")
    assert nothing.share < subject.share < ENOUGH <= whole.share
    assert [part.state for part in whole.parts] == [PartState.FOUND] * len(whole.parts)
    assert [list(part.evidence) for part in whole.parts if part.kind == "bridge"] == [[2]]


def test_each_side_of_a_comparison_is_a_part() -> None:
    question = "Who was born first, Tom Barrow or Edda Lindqvist?"
    half = coverage_of(question, "Tom Barrow")
    states = {part.text: part.state for part in half.parts if part.kind == "subject"}
    assert states == {"Tom Barrow": PartState.FOUND, "Edda Lindqvist": PartState.MISSING}
    assert coverage_of(question, "Tom Barrow", "Edda Lindqvist").share >= ENOUGH


def test_several_questions_are_parts_of_their_own() -> None:
    assert [part.text for part in split_question("what is the notice period and how is overtime paid?")] == [
        "what is the notice period",
        "how is overtime paid?",
    ]


async def test_second_round_follows_the_name_that_the_first_has_found() -> None:
    first = await found(Corpus(), *searches(QUESTION))
    evidence = fuse([first], QUESTION, 8).evidence
    only_film = [each for each in evidence if each.document_name == "The Iron Harbour.md"]
    parts = split_question(QUESTION)
    refined = refine_by_rules(
        QUESTION, parts, measure_coverage(QUESTION, parts, only_film), only_film, searches(QUESTION)
    )
    assert (refined[0].purpose, refined[0].text) == (Purpose.NAME, "Edda Lindqvist")
    assert QUESTION not in [each.text for each in refined if each.strategy == ""]


def share(value: float) -> Coverage:
    return Coverage((CoveragePart("x", "asked", PartState.PARTLY, value),), value)


@pytest.mark.parametrize(
    ("shares", "effort", "why"),
    [
        ([0.5], Effort.LOW, "rounds"),
        ([0.5], Effort.MEDIUM, ""),
        ([0.85], Effort.MEDIUM, "covered"),
        ([0.5, 0.6], Effort.MEDIUM, "rounds"),
        ([0.5, 0.52], Effort.HIGH, ""),
        ([0.5, 0.52, 0.53], Effort.HIGH, "fruitless"),
        ([0.5, 0.52, 0.6], Effort.HIGH, ""),
    ],
)
def test_rounds_end(shares: list[float], effort: Effort, why: str) -> None:
    assert is_done([share(each) for each in shares], LIMITS[effort], 1) == why


def test_searches_are_bounded() -> None:
    assert is_done([share(0.1)], LIMITS[Effort.MEDIUM], LIMITS[Effort.MEDIUM].searches) == "searches"


@pytest.mark.parametrize(
    ("question", "effort"),
    [
        ("How long is the notice period?", Effort.LOW),
        ("When was the tower built?", Effort.LOW),
        (QUESTION, Effort.MEDIUM),
        ("Who is older, Tom Barrow or Paul Marsh?", Effort.MEDIUM),
        ("What is the notice period and how is overtime paid?", Effort.MEDIUM),
    ],
)
def test_effort_follows_the_question(question: str, effort: Effort) -> None:
    assert choose_effort(question).effort is effort
    assert choose_effort(question, Effort.HIGH).effort is Effort.HIGH


async def test_question_of_one_step_keeps_all_that_one_search_finds() -> None:
    question = "How were harbours of iron built?"
    first = await found(Corpus(), *searches(question))
    more = await found(Corpus(), *searches("Uppsala", "Tom Barrow", purpose=Purpose.NAME))
    one_search = [each.chunk_id for each in first.passages]
    assert set(one_search) <= {each.chunk_id for each in fuse([first, more], question, len(one_search)).evidence}


@pytest.mark.parametrize(
    "question",
    ["Where was the director of The Iron Harbour born?", "Where was The Iron Harbour's director born?"],
)
def test_second_step_asks_of_whom_a_passage_tells(question: str) -> None:
    evidence = [Corpus().evidence("The Iron Harbour", 1), Corpus().evidence("Edda Lindqvist", 2)]
    parts = split_question(question)
    (step,) = second_steps(question, parts, measure_coverage(question, parts, evidence), evidence)
    assert step.question == "Where was Edda Lindqvist born?"
    assert step.passage.number == 2


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Iron Harbour and Quiet Orchard were shown in Leeds.", False),
        ("Who is older, Tom Barrow or Paul Marsh?", True),
        ("Compare Quiet Orchard and The Iron Harbour.", True),
    ],
)
def test_claim_takes_one_step_however_many_names_it_has(text: str, steps: bool) -> None:
    assert takes_steps(text) is steps


def test_evidence_set_is_empty_without_rounds() -> None:
    assert fuse([], QUESTION, 8) == EvidenceSet()
