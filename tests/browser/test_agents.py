"""Research and what agents make, in a real browser: plan, rounds and coverage, quizzes, diagrams, charts, tables, timelines."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from playwright.sync_api import Browser, Locator, expect

from tests.browser.site import Site, artefact, ask, put, ready
from tests.browsing import Visit, visiting
from tests.service.gateway.fakes import answered_run, event

pytestmark = [pytest.mark.browser]


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    put(site, ready(1, name="handbook.pdf"))
    with visiting(browser, site.base_url) as visit:
        yield visit


def shown(visit: Visit, site: Site, *made: run_pb.Artefact) -> Locator:
    """The artefacts of an answer that made these."""
    log = answered_run()
    log[0].run.thread_id = "0123456789ab"
    log[5:5] = [event(0, artefact=each) for each in made]
    for seq, each in enumerate(log, 1):
        each.seq = seq
    site.world.orchestrator.log = log
    ask(visit.page)
    return visit.page.get_by_test_id("artefact")


def test_plan_rounds_and_coverage_of_research_are_shown(visit: Visit, site: Site) -> None:
    log = answered_run()
    found = run_pb.CoveragePart(
        text="the notice period", kind="asked", state=run_pb.PART_STATE_FOUND, score=0.9, evidence=[1]
    )
    missing = run_pb.CoveragePart(text="of <i>directors</i>", kind="asked", state=run_pb.PART_STATE_MISSING)
    plan = run_pb.Plan(
        route="hybrid",
        queries=["notice period", "directors"],
        reasons=["The question has two parts."],
        planned_by="rules",
        round=1,
        parts=["the notice period", "of directors"],
    )
    second = run_pb.Retrieval(round=2, evidence=[run_pb.Evidence(number=1, chunk_id="c1")])
    log[1:2] = [
        event(2, plan=plan),
        event(3, retrieval=log[1].retrieval),
        event(4, coverage=run_pb.Coverage(parts=[found, missing], share=0.45, round=1)),
        event(5, retrieval=second),
    ]
    for seq, each in enumerate(log, 1):
        each.seq = seq
    site.world.orchestrator.log = log
    page = visit.page
    ask(page, "How long is it, and of directors?", "research")
    assert site.world.orchestrator.requests[0].mode == run_pb.RUN_MODE_AGENT
    trace = page.get_by_test_id("trace")
    expect(trace.locator("summary")).to_contain_text("2 rounds")
    trace.locator("summary").click()
    expect(trace).to_contain_text("The question has two parts.")
    expect(trace).to_contain_text("Covered: 45% of the question")
    coverage = page.get_by_test_id("coverage")
    coverage.locator("summary").click()
    parts = coverage.get_by_test_id("coverage-part")
    expect(parts).to_have_count(2)
    expect(parts.nth(0)).to_contain_text("Found")
    expect(parts.nth(1)).to_contain_text("of <i>directors</i>")
    expect(parts.nth(1)).to_contain_text("Not found")


def test_a_quiz_is_answered_and_graded(visit: Visit, site: Site) -> None:
    question = {"id": "q1", "kind": "short_answer", "difficulty": "easy", "question": "When was it built?"}
    quiz = shown(visit, site, artefact("quiz", {"questions": [question]})).get_by_test_id("quiz")
    expect(quiz.get_by_test_id("quiz-question")).to_contain_text("When was it built?")
    expect(quiz.get_by_test_id("quiz-send")).to_be_disabled()
    quiz.locator("input").fill("1889")
    quiz.get_by_test_id("quiz-send").click()
    expect(quiz.get_by_test_id("quiz-verdict")).to_be_visible()
    expect(quiz.get_by_role("status")).to_contain_text("1")


def test_a_diagram_is_drawn_and_one_that_cannot_be_is_shown_as_its_outline(visit: Visit, site: Site) -> None:
    drawn = artefact("diagram", {"form": "flow", "mermaid": 'flowchart TD\n  a["Ask"] --> b["Answer"]'}, "Ask → Answer")
    broken = artefact("diagram", {"form": "flow", "mermaid": "flowchart TD\n  a[[[ -->"}, "Ask, then answer")
    made = shown(visit, site, drawn, broken)
    diagram = made.nth(0).get_by_test_id("diagram")
    expect(diagram).to_have_attribute("data-drawn", "true")
    expect(diagram.frame_locator("iframe").locator("svg")).to_contain_text("Answer")
    view = diagram.locator(".diagram-view")
    before = view.evaluate("(each) => each.style.getPropertyValue('--zoom')")
    diagram.get_by_role("button").first.click()
    assert view.evaluate("(each) => each.style.getPropertyValue('--zoom')") > before
    expect(made.nth(1).get_by_test_id("diagram-outline")).to_have_text("Ask, then answer")


def test_a_table_sorts_cites_its_cells_and_is_saved(visit: Visit, site: Site) -> None:
    rows = [["Reds", 97], ["=SUM(A1)", 121], ["Yankees", 9]]
    table = shown(visit, site, artefact("table", {"columns": ["Team", "Wins"], "rows": rows}, rows_0_1=1))
    wins = table.locator("tbody tr td:nth-child(2)")
    expect(wins).to_have_text(["97 1", "121", "9"])
    table.locator("thead").get_by_role("button", name="Wins").click()
    expect(wins).to_have_text(["9", "97 1", "121"])
    with visit.page.expect_download() as download:
        table.get_by_role("button", name="CSV").click()
    saved = list(csv.reader(Path(download.value.path()).read_text("utf-8-sig").splitlines()))
    assert saved[0] == ["Team", "Wins"]
    assert len(saved) == 4
    assert not any(cell.startswith("=") for row in saved for cell in row), "a sheet would run it"
    table.locator("sup button").click()
    expect(visit.page.get_by_test_id("passage")).to_contain_text("handbook.pdf")


def test_a_chart_a_timeline_and_documents_side_by_side_are_shown_with_their_words(visit: Visit, site: Site) -> None:
    chart = {"form": "bar", "unit": "t", "labels": ["2023", "2024"], "series": [{"name": "Steel", "values": [3, 5]}]}
    timeline = {"events": [{"when": "1889", "what": "The tower opens."}], "mermaid": ""}
    sides = {"documents": ["a.pdf", "b.pdf"], "rows": [{"topic": "Notice", "texts": ["two weeks", None]}]}
    made = shown(
        visit,
        site,
        artefact("chart", chart),
        artefact("timeline", timeline, events_0=1),
        artefact("side_by_side", sides),
    )
    expect(made.nth(0).locator("canvas, svg").first).to_be_visible()
    made.nth(0).locator("summary").click()
    expect(made.nth(0).locator("tbody")).to_contain_text("2024")
    expect(made.nth(1)).to_contain_text("The tower opens.")
    expect(made.nth(1).locator("sup button")).to_have_text("1")
    expect(made.nth(2).locator("tbody")).to_contain_text("two weeks")
