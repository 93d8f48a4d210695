"""The console in a real browser, over a gateway whose orchestrator plays a script. Approvals are answered by the test."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from groundwork.common.v1 import common_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from playwright.sync_api import Browser, Page, Route, expect

from services.gateway.settings import GatewaySettings
from tests.browsing import Visit, browser, visiting
from tests.data.run_folds import CASES
from tests.service.gateway.conftest import SERVICES, World, over_http
from tests.service.gateway.fakes import RUN_ID, answered_run, event, run_with_tools

__all__ = ["browser"]
pytestmark = [pytest.mark.browser]

MAIL = {"to": "<b>ann@example.org", "retries": 2}
ASKED = {
    "id": "ap1",
    "run_id": RUN_ID,
    "tool": "send_email",
    "arguments": MAIL,
    "arguments_hash": "ab" * 32,
    "expires_at": "2099-01-01T00:00:00.000Z",
}


@dataclass
class Site:
    """The gateway and the world behind it, on a loop of their own."""

    world: World
    base_url: str
    loop: asyncio.AbstractEventLoop

    def soon(self, do: Callable[[], object]) -> None:
        """On the world's loop."""
        self.loop.call_soon_threadsafe(do)


@pytest.fixture
def site() -> Iterator[Site]:
    ready: list[Site] = []
    is_ready, leave = threading.Event(), asyncio.Event()

    async def serve() -> None:
        world = World()
        await world.start()
        addresses = {f"{name}_address": f"127.0.0.1:{world.port}" for name in SERVICES}
        async with over_http(GatewaySettings(**{"port": 0, **addresses})) as client:
            ready.append(Site(world, str(client.base_url), asyncio.get_running_loop()))
            is_ready.set()
            await leave.wait()
            world.orchestrator.resume.set()
        await world.kill()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_ready.wait(60)
    try:
        yield ready[0]
    finally:
        ready[0].soon(leave.set)
        thread.join(60)
        assert not thread.is_alive()


@dataclass
class Desk:
    """Answers GET and POST of /v1/approvals in the browser."""

    waiting: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    on_decision: Callable[[], object] = lambda: None
    refusal: str = ""

    def answer(self, route: Route) -> None:
        if route.request.method == "GET":
            route.fulfill(json={"approvals": self.waiting})
        elif self.refusal:
            problem = {"reason": "APPROVAL_CLOSED", "detail": self.refusal}
            route.fulfill(status=412, content_type="application/problem+json", body=json.dumps(problem))
        else:
            self.decisions.append((route.request.url.rpartition("/")[2], json.loads(route.request.post_data or "{}")))
            self.waiting = []
            route.fulfill(json=ASKED)
            self.on_decision()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def visit(browser: Browser, site: Site, desk: Desk) -> Iterator[Visit]:
    def prepare(page: Page) -> None:
        page.route("**/v1/approvals*", desk.answer)
        page.route("**/v1/approvals/*", desk.answer)

    with visiting(browser, site.base_url, prepare) as visit:
        yield visit


def say(page: Page, text: str) -> None:
    page.get_by_test_id("mode-chat").check(force=True)
    page.get_by_test_id("question-input").fill(text)
    page.get_by_test_id("ask-button").click()


def test_claims_are_shown_one_by_one_with_their_judge(visit: Visit, site: Site) -> None:
    by = run_pb.CheckedBy(name="model/m", claims=0)
    span = run_pb.DecidingSpan(document_name="a.md", text="It is <i>high</i>.")
    found = run_pb.SentenceVerdict(sentence="It is high.", verdict="supported", span=span, checked_by=by)
    invented = run_pb.SentenceVerdict(sentence="I have sent it.", verdict="contradicted", is_action=True, checked_by=by)
    text = "It is high. I have sent it."
    checked = run_pb.Verification(sentences=[found, invented], checked_by=by, verify="mark")
    partial = run_pb.SUPPORT_STATUS_PARTIAL
    answer = run_pb.Answer(text=text, method="model", support_status=partial, verification=checked)
    log = run_with_tools()
    log[3:] = [
        event(4, token=run_pb.Token(text=text)),
        event(5, claim=run_pb.ClaimChecked(index=0, verdict=found)),
        event(6, verification=checked),
        event(7, answer=answer),
        event(8, done=run_pb.Done(status=run_pb.RUN_STATUS_COMPLETED)),
    ]
    site.world.orchestrator.log = log
    say(visit.page, "Is it high?")
    expect(visit.page.get_by_test_id("support-status")).to_contain_text("which was not")
    visit.page.get_by_test_id("claims").locator("summary").click()
    claims = visit.page.get_by_test_id("claim")
    expect(claims).to_have_count(2)
    expect(claims.nth(0)).to_contain_text("It is <i>high</i>.")
    expect(claims.nth(1)).to_contain_text("did not happen")
    expect(visit.page.get_by_test_id("judge")).to_contain_text("model/m")


def test_steps_are_shown_with_arguments_result_time_and_cost(visit: Visit, site: Site) -> None:
    degraded = common_pb2.Degradation(
        part="planner", reason="BUDGET_SPENT", message="No more <i>tools</i> were allowed."
    )
    log = run_with_tools()
    log[3:6] = [
        event(4, thinking=run_pb.Thinking(phase="reason", text="Weighing what was found")),
        event(5, thinking=run_pb.Thinking(phase="reason", text="Weighing what was found")),
        event(6, thinking=run_pb.Thinking(phase="reason", degraded=degraded)),
    ]
    site.world.orchestrator.log = log
    say(visit.page, "Mail it")
    expect(visit.page.get_by_test_id("answer")).to_have_text("It was not sent.")
    expect(visit.page.get_by_test_id("trace")).to_have_attribute("open", "")
    steps = visit.page.get_by_test_id("step")
    expect(steps).to_have_count(4)
    expect(steps.nth(0)).to_have_attribute("data-state", "ok")
    for text in ("search", "notice", "top_k", "3", "2 passages of handbook.pdf", "1.5 s"):
        expect(steps.nth(0)).to_contain_text(text)
    expect(steps.nth(1)).to_contain_text("Weighing what was found")
    expect(steps.nth(2)).to_have_attribute("data-state", "degraded")
    expect(steps.nth(2)).to_contain_text("No more <i>tools</i> were allowed.")
    expect(steps.nth(3)).to_have_attribute("data-state", "failed")
    expect(steps.nth(3)).to_contain_text("the server takes no mail; ask its operator (SMTP_REFUSED)")
    expect(steps.nth(3)).to_contain_text("<b>ann@example.org")
    sent = site.world.orchestrator.requests[0]
    assert (sent.mode, sent.question, sent.thread_id) == (run_pb.RUN_MODE_CHAT, "Mail it", "0123456789ab")
    assert not sent.HasField("tools"), "all of them"


def test_what_a_step_cost_stands_with_it(visit: Visit, site: Site) -> None:
    log = run_with_tools()
    usage = log[9].usage
    usage.steps[0].cost_usd = 0.0021
    usage.steps.add(step="round1/model", seconds=0.5, prompt_tokens=100, completion_tokens=20, model="qwen")
    site.world.orchestrator.log = log
    say(visit.page, "Mail it")
    steps = visit.page.get_by_test_id("step")
    expect(steps.filter(has_text="2 passages").get_by_test_id("step-cost")).to_have_text("1.5 s · $0.0021")
    model = steps.filter(has_text="Round 1: words of the model")
    expect(model.get_by_test_id("step-cost")).to_have_text("100 + 20 tokens · 500 ms · qwen")


def test_call_is_allowed_in_the_stream_by_keyboard(visit: Visit, site: Site, desk: Desk) -> None:
    orchestrator = site.world.orchestrator
    orchestrator.log, orchestrator.pause_after, desk.waiting = run_with_tools(), 5, [ASKED]
    desk.on_decision = lambda: site.soon(orchestrator.resume.set)
    page = visit.page
    say(page, "Mail it")
    question = page.get_by_test_id("decisions").get_by_test_id("question")
    expect(question).to_contain_text("Allow this: send an e-mail?")
    expect(question).to_contain_text("<b>ann@example.org")
    expect(question).to_contain_text("it is not called")
    expect(page.get_by_test_id("approvals-count")).to_have_text("1")
    question.get_by_test_id("allow").focus()
    page.keyboard.press("Enter")
    expect(question).to_have_count(0)
    expect(page.get_by_test_id("answer")).to_have_text("It was not sent.")
    expect(page.get_by_test_id("step").filter(has_text="send an e-mail: Allowed")).to_have_attribute("data-state", "ok")
    expect(page.get_by_test_id("approvals-button")).to_be_hidden()
    assert desk.decisions == [("ap1", {"decision": "allow", "arguments_hash": "ab" * 32})]


def test_waiting_run_is_left_for_another_question_and_found_again_after_a_reload(
    visit: Visit, site: Site, desk: Desk
) -> None:
    orchestrator = site.world.orchestrator
    orchestrator.log, orchestrator.pause_after, desk.waiting = run_with_tools(), 5, [ASKED]
    orchestrator.status = run_pb.RUN_STATUS_WAITING
    page = visit.page
    say(page, "Mail it")
    expect(page.get_by_test_id("decisions").get_by_test_id("question")).to_be_visible()

    site.soon(lambda: vars(orchestrator).update(log=answered_run(), pause_after=None))
    page.get_by_test_id("mode-documents").check(force=True)
    page.get_by_test_id("question-input").fill("How long?")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("answer")).to_contain_text("Four weeks")
    expect(page.get_by_test_id("decisions").get_by_test_id("question")).to_have_count(0)
    assert not orchestrator.cancelled, "it goes on waiting"

    site.soon(lambda: vars(orchestrator).update(log=run_with_tools(), pause_after=5))
    page.reload()
    page.get_by_test_id("approvals-button").click()
    listed = page.get_by_test_id("approvals").get_by_test_id("question")
    expect(listed).to_contain_text("<b>ann@example.org")
    listed.get_by_test_id("show-run").click()
    question = page.get_by_test_id("decisions").get_by_test_id("question")
    expect(question).to_be_visible()
    expect(page.get_by_test_id("approvals")).to_be_hidden()

    page.reload()
    expect(question).to_be_visible()
    desk.on_decision = lambda: site.soon(orchestrator.resume.set)
    question.get_by_test_id("deny").click()
    expect(page.get_by_test_id("answer")).to_have_text("It was not sent.")
    assert [decision["decision"] for _, decision in desk.decisions] == ["deny"]


def test_what_others_decide_is_listed_without_buttons(visit: Visit, desk: Desk) -> None:
    desk.waiting = [{**ASKED, "yours_to_decide": False, "may_decide": ["olga"], "subject": "ann"}]
    page = visit.page
    page.reload()
    expect(page.get_by_test_id("approvals-count")).to_have_text("0")
    page.get_by_test_id("approvals-button").click()
    listed = page.get_by_test_id("approvals").get_by_test_id("question")
    expect(listed).to_contain_text("olga may decide.")
    expect(listed.get_by_test_id("allow")).to_have_count(0)
    expect(listed.get_by_test_id("show-run")).to_be_visible()


def test_decision_that_is_refused_says_why_and_can_be_made_again(visit: Visit, site: Site, desk: Desk) -> None:
    orchestrator = site.world.orchestrator
    orchestrator.log, orchestrator.pause_after, desk.waiting = run_with_tools(), 5, [ASKED]
    desk.refusal = "ap1 expired; ask again"
    say(visit.page, "Mail it")
    question = visit.page.get_by_test_id("decisions").get_by_test_id("question")
    question.get_by_test_id("allow").click()
    expect(question.get_by_role("alert")).to_have_text("ap1 expired; ask again")
    expect(question.get_by_test_id("allow")).to_be_enabled()
    visit.complaints.remove(
        next(each for each in visit.complaints if "412" in each)
    )  # the browser tells of each refusal


def test_conversation_is_kept_over_a_reload_and_begun_anew(visit: Visit, site: Site) -> None:
    page = visit.page
    say(page, "How long?")
    expect(page.get_by_test_id("answer")).to_contain_text("Four weeks")
    page.reload()
    expect(page.get_by_test_id("mode-chat")).to_be_checked()
    expect(page.get_by_test_id("message")).to_contain_text(["A day.", "How long?"])
    page.get_by_test_id("new-conversation").click()
    expect(page.get_by_test_id("message")).to_have_count(0)
    say(page, "And then?")
    expect(page.get_by_test_id("answer")).to_contain_text("Four weeks")
    assert [each.thread_id for each in site.world.orchestrator.requests] == ["0123456789ab"] * 2


def test_the_page_with_a_question_fits_a_phone_in_both_colours(visit: Visit, site: Site, desk: Desk) -> None:
    site.world.orchestrator.log, site.world.orchestrator.pause_after = run_with_tools(), 5
    desk.waiting = [ASKED]
    page = visit.page
    page.set_viewport_size({"width": 360, "height": 740})
    say(page, "Mail it")
    expect(page.get_by_test_id("decisions").get_by_test_id("question")).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the words it knows
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_events_add_up_to_the_same_as_in_the_gateway_and_the_command_line(visit: Visit) -> None:
    fold = """async (events) => {
      const { addEvent, newRun } = await import("/console/run.js");
      const run = newRun();
      for (const event of events) addEvent(run, event);
      return run;
    }"""
    for case in CASES:
        assert visit.page.evaluate(fold, case["events"]) == case["result"], case["case"]
