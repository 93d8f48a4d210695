"""Summaries of whole documents: every section is read, every sentence is cited, and a run that is cut off goes on."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kit.llm import Request
from kit.reading.carrying import carrying_sentences
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import AgentChosen, Answer, Evidence, RunMode, RunStatus, SupportStatus, Thinking
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, RunRequest
from services.orchestrator.summaries.sections import inner_sections, sections_of
from services.orchestrator.summaries.wishes import Length, read_wishes
from tests.unit.orchestrator.cutting import AT, KEY, DyingLog, cut_and_continued, cuts, told, worked
from tests.unit.orchestrator.fakes import FakeLibrary, FakeScorer
from tests.unit.orchestrator.serving import document_modes, mode_services
from tests.unit.orchestrator.toolloop.scripting import Reply, ScriptedReplies


def document(sections: int, chunks: int = 2) -> Sequence[Evidence]:
    """A report with so many headings, each above a few chunks that name it."""
    return [
        Evidence(
            number,
            f"c{number}",
            "d1",
            "report.pdf",
            f"Station {section} measured {section * 7} litres of water in part {chunk}. It was a warm day in the valley. "
            f"The crew of station {section} repaired the pump {chunk + 1} times in the summer.",
            page=number,
            heading_path=(f"Station {section}",),
        )
        for section in range(1, sections + 1)
        for chunk in range(chunks)
        for number in [(section - 1) * chunks + chunk + 1]
    ]


def worker(library: FakeLibrary, question: str = "Summarise the report", drafter: Drafter | None = None) -> Any:
    record = RunRecord(
        KEY, "ann", RunRequest(RunMode.GROUNDED, question, ("default",), agent="summary"), RunStatus.RUNNING, AT
    )
    modes = document_modes(mode_services(drafter, library=library))

    async def work(journal: Journal) -> RunStatus:
        return await modes.run(record, journal)

    return work


async def answer_of(
    library: FakeLibrary, question: str = "Summarise the report", drafter: Drafter | None = None
) -> Answer:
    events = await worked(DyingLog(), worker(library, question, drafter))
    (answer,) = [each.payload for each in events if isinstance(each.payload, Answer)]
    return answer


async def test_every_section_of_a_long_document_is_cited_with_its_page() -> None:
    answer = await answer_of(FakeLibrary({"d1": document(60)}))
    cited = {each.heading_path for each in answer.citations}
    assert len(cited) == 60
    assert all(each.page and each.text[each.quote_start : each.quote_end] for each in answer.citations)
    assert answer.support_status is SupportStatus.SUPPORTED
    assert answer.text.startswith("Station 1\n")


async def test_summary_that_is_to_be_short_is() -> None:
    answer = await answer_of(FakeLibrary({"d1": document(60)}), "Give me a short summary of the report")
    assert 1 <= len(answer.citations) <= Length.SHORT.at_most


async def test_run_that_is_cut_off_reads_no_section_twice() -> None:
    whole = await worked(DyingLog(), worker(FakeLibrary({"d1": document(3, 1)})))
    steps = [each.step for each in whole if each.step.startswith("section")]
    assert steps == ["section1", "section2", "section3"]
    for cut in cuts(whole):
        workers = [worker(FakeLibrary({"d1": document(3, 1)})) for _ in range(2)]
        assert told(await cut_and_continued(DyingLog(), workers, cut)) == told(whole), str(cut)


async def test_focus_chooses_what_is_said() -> None:
    passages = [
        Evidence(
            1,
            "c",
            "d",
            "n",
            "The budget rose by nine percent in spring. Staff moved to the new building in May. Staff liked the building.",
        )
    ]
    (about,) = carrying_sentences(passages, 1, "budget")
    assert about.text.startswith("The budget rose")


def test_sections_are_the_deepest_headings_that_are_not_too_many() -> None:
    deep = [Evidence(n, f"c{n}", "d", "n", "text", heading_path=(f"A{n // 4}", f"B{n // 2}")) for n in range(16)]
    assert [each.title for each in sections_of(deep, 8)][:2] == ["A0 › B0", "A0 › B1"]
    assert [each.title for each in sections_of(deep, 4)] == ["A0", "A1", "A2", "A3"]
    assert [each.title for each in sections_of(deep, 2)] == ["A0 – A1", "A2 – A3"]
    assert [len(each.passages) for each in sections_of(deep, 2)] == [8, 8], "none is left out"


def test_wishes_are_read_from_the_words() -> None:
    assert read_wishes("Summarise this, focusing on the budget").focus == "the budget"
    assert read_wishes("A detailed summary please").length is Length.LONG
    assert read_wishes("Fasse das kurz zusammen").length is Length.SHORT
    assert read_wishes("Summarise it").length is Length.USUAL


class Summariser(ScriptedReplies):
    """A model that says what the first source says, under its number."""

    def _reply(self, request: Request) -> Reply:
        asked = request.messages[-1].content
        number = asked.partition("[")[2].partition("]")[0]
        words = next(line for line in asked.split("\n") if "measured" in line)
        return f"{words[words.index('Station') : words.index('.')]}. [{number}] Made up. [999]"


async def test_model_summarises_section_by_section_and_cites_no_passage_it_was_not_shown() -> None:
    model = Summariser([""])
    answer = await answer_of(FakeLibrary({"d1": document(3)}), drafter=Drafter(FakeScorer(), Generator(model)))
    assert answer.method == "model"
    assert {each.heading_path for each in answer.citations} >= {("Station 1",), ("Station 2",), ("Station 3",)}
    assert "999" not in answer.text
    assert len(model.requests) == 4, "one for each section, and the overview"


async def test_same_request_over_the_same_revision_asks_the_model_once() -> None:
    model = Summariser([""])
    library = FakeLibrary({"d1": document(3)})
    work = worker(library, drafter=Drafter(FakeScorer(), Generator(model)))

    async def summarised() -> str:
        events = await worked(DyingLog(), work)
        (answer,) = [each.payload for each in events if isinstance(each.payload, Answer)]
        return answer.text

    first = await summarised()
    assert (await summarised(), len(model.requests)) == (first, 4)
    changed = [replace(each, chunk_id=f"{each.chunk_id}b") if each.number <= 2 else each for each in document(3)]
    library.add("d1", changed)
    assert (await summarised(), len(model.requests)) == (first, 5), "one section has a new revision"


async def test_progress_is_told_for_each_section() -> None:
    events = await worked(DyingLog(), worker(FakeLibrary({"d1": document(3)})))
    said = [each.payload.text for each in events if isinstance(each.payload, Thinking)]
    assert "Read section 2 of 3: Station 2" in said
    assert any(isinstance(each.payload, AgentChosen) for each in events)


def test_passage_is_cut_where_a_heading_stands_within() -> None:
    said = "Water flows through the valley of this station for most of the year."
    passages = [
        Evidence(1, "c1", "d", "n", f"One\n\n{said}\n\nTwo\n\n{said}"),
        Evidence(2, "c2", "d", "n", f"{said}\n\nThree\n\n{said}"),
    ]
    groups = inner_sections(passages)
    assert [[(each.passage.number, each.text[:5]) for each in group] for group in groups] == [
        [(1, "One\n\n")],
        [(1, "Two\n\n"), (2, "Water")],
        [(2, "Three")],
    ]
    assert all(each.passage.text[each.start :].startswith(each.text) for group in groups for each in group)
