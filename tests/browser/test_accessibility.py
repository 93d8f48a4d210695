"""No page breaks a rule of WCAG 2.2 AA that axe can check, in any language and theme."""

from pathlib import Path
from typing import Literal

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.browser.site import ASKED, Desk, Site, artefact, ask, begin, put, ready
from tests.browsing import visiting
from tests.service.gateway.fakes import answered_run, event, run_with_tools

pytestmark = [pytest.mark.browser]

AXE = Path(__file__).parents[2] / "console" / "checks" / "node_modules" / "axe-core" / "axe.min.js"
NEEDS_AXE = pytest.mark.skipif(not AXE.exists(), reason="skipped: make check-console installs axe-core")
OPERATING = ("health", "runs", "jobs", "models", "keys", "usage", "limits", "audit")
SCHEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
PAGES = (
    "/",
    "/conversations/0123456789ab",
    "/passages/c1",
    "/documents",
    "/sources",
    "/connections",
    "/decisions",
    "/memory",
    "/search",
    "/operating",
)
DIALOG = "[role=dialog], [role=alertdialog]"
DIALOGS = (
    ("/", "[data-testid=ask-more]"),
    ("/", "[data-testid=keys-button]"),
    ("/", "[data-testid=conversation-actions]", "[role=menuitem]"),
    ("/", "[data-testid=conversation-actions]", "[role=menuitem]:last-child"),
    ("/documents", ".collections button"),
    ("/sources", "[data-testid=new-source]"),
    ("/connections", "[data-testid=new-connection]"),
    ("/memory", "[data-testid=new-note]"),
    ("/memory", "[data-testid=memory-forget-everything]"),
)
"""Pages, and what is pressed there one after the other until a dialog is open."""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@NEEDS_AXE
def test_no_page_breaks_a_rule_of_accessibility_in_any_language_and_theme(browser: Browser, site: Site) -> None:
    put(site, ready(1, name="leave.md", media_type="text/markdown"))
    site.world.ingest.files["d0000001"] = b"Four weeks."
    with visiting(browser, site.base_url, lambda page: page.add_init_script(path=AXE)) as visit:
        page = visit.page
        visit.expected.add("status of 412")  # of the keys and the audit log of a gateway without keys
        page.set_viewport_size({"width": 1400, "height": 900})
        broken = {each for path in PAGES for each in _broken_at(page, path)}
        for part in OPERATING:
            page.get_by_test_id(f"operating-{part}").check(force=True)
            expect(page.locator(".loading")).to_have_count(0)
            broken |= _broken(page, part)
        page.goto("/")
        ask(page)
        page.get_by_test_id("answer").get_by_test_id("citation").first.click()
        expect(page.get_by_test_id("passage-text")).to_be_visible()
        broken |= _broken(page, "a passage beside its answer")
        page.goto("/documents")
        page.get_by_test_id("document-row").get_by_role("button").click()
        page.get_by_test_id("access").locator("summary").click()
        expect(page.get_by_test_id("restrict")).to_be_visible()
        broken |= _broken_now(page, "a document")
    assert not broken


@NEEDS_AXE
def test_no_answer_breaks_a_rule_of_accessibility_while_it_waits_or_with_all_that_it_may_have(
    browser: Browser, site: Site
) -> None:
    put(site, ready(1, name="leave.md", media_type="text/markdown"))
    orchestrator, desk = site.world.orchestrator, Desk(waiting=[ASKED])
    orchestrator.log, orchestrator.pause_after = _all_that_an_answer_may_have(), 7
    desk.on_decision = lambda: site.soon(orchestrator.resume.set)

    def prepare(page: Page) -> None:
        page.add_init_script(path=AXE)
        page.route("**/v1/approvals*", desk.answer)
        page.route("**/v1/approvals/*", desk.answer)

    with visiting(browser, site.base_url, prepare) as visit:
        page = visit.page
        page.set_viewport_size({"width": 1400, "height": 900})
        begin(page, "How long?", "chat")
        question = page.get_by_test_id("turn").get_by_test_id("question")
        expect(question).to_be_visible()
        page.get_by_test_id("trace").locator("summary").click()
        broken = _broken(page, "research at work that waits for a decision")
        question.get_by_test_id("allow").click()
        answer = page.get_by_test_id("answer").last
        expect(answer).to_have_attribute("aria-busy", "false")
        made = page.get_by_test_id("artefact")
        expect(made).to_have_count(6)
        expect(page.get_by_test_id("diagram").first).to_have_attribute("data-drawn", "true")
        page.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")
        broken |= _broken(page, "an answer with all that it may have", "main")
        desk.waiting = [{**ASKED, "yours_to_decide": False, "may_decide": ["olga"], "subject": "ann"}, ASKED]
        page.goto("/decisions")
        expect(page.get_by_test_id("question")).to_have_count(2)
        broken |= _broken(page, "decisions that wait", "main")
    assert not broken


@NEEDS_AXE
def test_no_dialog_breaks_a_rule_of_accessibility(browser: Browser, site: Site) -> None:
    put(site, ready(1, name="leave.md", media_type="text/markdown"))

    def prepare(page: Page) -> None:
        page.add_init_script(path=AXE)
        page.add_init_script("delete window.webkitSpeechRecognition; delete window.SpeechRecognition;")
        page.route_web_socket("**/ws/voice-chat", hold)

    def hold(socket: WebSocketRoute) -> None:
        sockets.append(socket)

    sockets: list[WebSocketRoute] = []
    with visiting(browser, site.base_url, prepare) as visit:
        page = visit.page
        visit.expected.add("status of 412")  # of the audit log of a gateway without keys
        page.set_viewport_size({"width": 1400, "height": 900})
        microphone = page.get_by_test_id("microphone")
        microphone.click()
        expect(microphone).to_have_attribute("aria-pressed", "true")
        broken = _broken(page, "the microphone listens", "main")
        sockets[0].close()
        expect(page.get_by_test_id("ask-problem")).to_be_visible()
        broken |= _broken(page, "the microphone cannot listen", "main")
        for path, *presses in DIALOGS:
            if path != page.url.removeprefix(site.base_url):
                page.goto(path)
            for press in presses:
                page.locator(press).first.click()
            expect(page.locator(DIALOG)).to_be_visible()
            expect(page.locator(".loading")).to_have_count(0)
            broken |= _broken(page, f"{path} {presses[-1]}", DIALOG)
            page.keyboard.press("Escape")
            expect(page.locator(DIALOG)).to_have_count(0)
    assert not broken


def _all_that_an_answer_may_have() -> list[run_pb.RunEvent]:
    """A run that plans, searches, covers, asks for a decision, makes one artefact of each kind, and whose sources disagree."""
    calls, answered = run_with_tools(), answered_run()
    plan = run_pb.Plan(route="hybrid", queries=["notice"], reasons=["It has two parts."], planned_by="rules", round=1)
    part = run_pb.CoveragePart(text="notice", kind="asked", state=run_pb.PART_STATE_FOUND, score=0.9, evidence=[1])
    answer = answered[5].answer
    answer.method = "model"
    conflict = answer.conflicts.add(what="The notice is … weeks.", found_by="wording")
    for value in ("Four", "Six"):
        conflict.sides.add(value=value, citation=1, document_name="handbook.pdf")
    answer.verification.sentences.add(sentence="Four weeks", verdict="supported", citations=[1])
    answer.verification.sentences.add(sentence="I have sent it.", verdict="contradicted", is_action=True)
    mermaid = 'flowchart TD\n  a["Ask"] --> b["Answer"]'
    quiz = {"id": "q1", "kind": "short_answer", "difficulty": "easy", "question": "When was it built?"}
    chart = {"form": "bar", "unit": "t", "labels": ["2023", "2024"], "series": [{"name": "Steel", "values": [3, 5]}]}
    made = [
        artefact("quiz", {"questions": [quiz]}),
        artefact("diagram", {"form": "flow", "mermaid": mermaid}, "Ask → Answer"),
        artefact("chart", chart),
        artefact("table", {"columns": ["Team", "Wins"], "rows": [["Reds", 97], ["Yankees", 9]]}, rows_0_1=1),
        artefact("timeline", {"events": [{"when": "1889", "what": "The tower opens."}], "mermaid": ""}, events_0=1),
        artefact(
            "side_by_side", {"documents": ["a.pdf", "b.pdf"], "rows": [{"topic": "Notice", "texts": ["two", None]}]}
        ),
    ]
    log = [
        calls[0],
        event(0, plan=plan),
        answered[1],
        event(0, coverage=run_pb.Coverage(parts=[part], share=0.5, round=1)),
        calls[1],
        calls[2],
        calls[3],
        *calls[5:8],
        *(event(0, artefact=each) for each in made),
        event(0, verification=answer.verification),
        answered[5],
        *calls[9:],
    ]
    for seq, each in enumerate(log, 1):
        each.seq = seq
    return log


def _broken_at(page: Page, path: str) -> set[str]:
    page.goto(path)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    return _broken(page, path)


def _broken(page: Page, place: str, part: str = "html") -> set[str]:
    """What breaks a rule in this part of the page, in each language and theme. The page ends in English."""
    found: set[str] = set()
    for language in ("de", "ru", "he", "en"):
        page.get_by_test_id("language").select_option(language, force=True)  # a dialog lies over it
        expect(page.locator("html")).to_have_attribute("lang", language)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            expect(page.locator("html")).to_have_attribute("data-theme", scheme)
            found |= _broken_now(page, f"{place}, {language}, {scheme}", part)
    return found


def _broken_now(page: Page, place: str, part: str = "html") -> set[str]:
    found: list[str] = page.evaluate(
        """async ([part, tags]) => (await axe.run(part, { runOnly: { type: "tag", values: tags } }))
          .violations.map(({ id, nodes }) => `${id}: ${nodes.map((each) => each.html.slice(0, 160)).join(" | ")}`)""",
        [part, RULES],
    )
    return {f"{place}: {each}" for each in found}
