"""Conversations in a real browser: answers with their steps and citations, decisions, and what a reload shows again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from groundwork.common.v1 import common_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from playwright.sync_api import Browser, Page, expect

from kit.errors import Unavailable
from tests.browser.site import ASKED, Desk, Site, ask, asked, begin, put, ready
from tests.browsing import Visit, picture, refusals_are_expected, visiting
from tests.service.gateway.fakes import AT, RUN_ID, answered_run, event, run_with_tools

pytestmark = [pytest.mark.browser]

COLLECTIONS = [
    {"id": each, "name": each, "created_at": None, "owner": "local-user", "visibility": "private", "role": "owner"}
    for each in ("default", "recipes")
]


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
    ask(visit.page, "Is it high?", "chat")
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
    log[9].usage.steps[0].cost_usd = 0.0021
    site.world.orchestrator.log = log
    ask(visit.page, "Mail it", "chat")
    expect(visit.page.get_by_test_id("answer")).to_have_text("It was not sent.")
    visit.page.get_by_test_id("trace").locator("summary").click()
    steps = visit.page.get_by_test_id("step")
    expect(steps).to_have_count(4)
    expect(steps.nth(0)).to_have_attribute("data-state", "ok")
    for text in ("search", "notice", "top_k", "3", "2 passages of handbook.pdf"):
        expect(steps.nth(0)).to_contain_text(text)
    expect(steps.nth(0).get_by_test_id("step-cost")).to_have_text("1.5 sec · $0.0021")
    expect(steps.nth(1)).to_contain_text("Weighing what was found")
    expect(steps.nth(2)).to_have_attribute("data-state", "degraded")
    expect(steps.nth(2)).to_contain_text("No more <i>tools</i> were allowed.")
    expect(steps.nth(3)).to_have_attribute("data-state", "failed")
    expect(steps.nth(3)).to_contain_text("the server takes no mail; ask its operator (SMTP_REFUSED)")
    sent = site.world.orchestrator.requests[0]
    assert (sent.mode, sent.question, sent.thread_id) == (run_pb.RUN_MODE_CHAT, "Mail it", "0123456789ab")
    assert not sent.HasField("tools"), "all of them"


def test_call_is_allowed_in_the_stream_by_keyboard(visit: Visit, site: Site, desk: Desk) -> None:
    orchestrator = site.world.orchestrator
    orchestrator.log, orchestrator.pause_after, desk.waiting = run_with_tools(), 5, [ASKED]
    desk.on_decision = lambda: site.soon(orchestrator.resume.set)
    page = visit.page
    begin(page, "Mail it", "chat")
    question = page.get_by_test_id("turn").get_by_test_id("question")
    expect(question).to_contain_text("Allow this: send an e-mail?")
    expect(question).to_contain_text("<b>ann@example.org")
    expect(question).to_contain_text("it is not called")
    question.get_by_test_id("allow").focus()
    picture(page, "approval-by-keyboard")
    page.keyboard.press("Enter")
    expect(question).to_have_count(0)
    expect(page.get_by_test_id("answer")).to_have_text("It was not sent.")
    page.get_by_test_id("trace").locator("summary").click()
    expect(page.get_by_test_id("step").filter(has_text="send an e-mail: allowed")).to_have_attribute("data-state", "ok")
    expect(page.get_by_test_id("approvals-count")).to_have_count(0)
    assert desk.decisions == [("ap1", {"decision": "allow", "arguments_hash": "ab" * 32})]


def test_decision_that_is_refused_says_why_and_can_be_made_again(visit: Visit, site: Site, desk: Desk) -> None:
    orchestrator = site.world.orchestrator
    orchestrator.log, orchestrator.pause_after, desk.waiting = run_with_tools(), 5, [ASKED]
    desk.refusal = "ap1 expired; ask again"
    begin(visit.page, "Mail it", "chat")
    question = visit.page.get_by_test_id("turn").get_by_test_id("question")
    question.get_by_test_id("allow").click()
    expect(question.get_by_role("alert")).to_have_text("ap1 expired; ask again")
    expect(question.get_by_test_id("allow")).to_be_enabled()
    refusals_are_expected(visit, status=412)


def test_what_others_decide_is_listed_without_buttons(visit: Visit, desk: Desk) -> None:
    desk.waiting = [{**ASKED, "yours_to_decide": False, "may_decide": ["olga"], "subject": "ann"}]
    page = visit.page
    page.goto("/decisions")
    listed = page.get_by_test_id("approvals").get_by_test_id("question")
    expect(listed).to_contain_text("olga may decide.")
    expect(listed.get_by_test_id("allow")).to_have_count(0)
    expect(listed.get_by_test_id("show-run")).to_be_visible()
    expect(page.get_by_test_id("approvals-count")).to_have_count(0)


def test_questions_are_one_conversation_until_another_begins(visit: Visit, site: Site) -> None:
    site.world.memory.thread_ids = ["a" * 12, "b" * 12]
    page = visit.page
    ask(page, "Payroll of the Yankees?")
    expect(page.get_by_test_id("answer").last).to_contain_text("Four weeks")
    page.wait_for_url("**/conversations/aaaaaaaaaaaa")
    expect(page.get_by_test_id("question-input")).to_have_value("")
    ask(page, "And the Reds?")
    page.get_by_test_id("new-conversation").click()
    expect(page.get_by_test_id("question-input")).to_be_focused()
    ask(page, "How long?")
    asked = [(each.question, each.thread_id) for each in site.world.orchestrator.requests]
    assert asked == [("Payroll of the Yankees?", "a" * 12), ("And the Reds?", "a" * 12), ("How long?", "b" * 12)]


def test_a_refused_question_stays_to_be_mended(visit: Visit, site: Site) -> None:
    page = visit.page
    page.get_by_test_id("question-input").fill("why " * 2001)
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("ask-problem")).to_contain_text("8000")
    expect(page.get_by_test_id("question-input")).to_have_value(("why " * 2001).strip())
    assert not site.world.orchestrator.requests
    refusals_are_expected(visit, status=400)


def test_a_passage_opens_beside_the_answer_and_goes_by_key(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="handbook.md", media_type="text/markdown"))
    page = visit.page
    page.set_viewport_size({"width": 1400, "height": 900})
    ask(page)
    page.get_by_test_id("answer").get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("passage")).to_be_visible()
    expect(page.get_by_test_id("passage").locator("mark")).not_to_be_empty()
    page.keyboard.press("x")
    expect(page.get_by_test_id("passage")).to_have_count(0)


def test_a_citation_is_previewed_and_its_ranks_are_shown(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="handbook.md", media_type="text/markdown"))
    page = visit.page
    page.set_viewport_size({"width": 1400, "height": 900})
    ask(page)
    page.get_by_test_id("answer").get_by_test_id("citation").first.hover()
    expect(page.get_by_test_id("citation-preview")).to_contain_text("Four weeks")
    page.get_by_test_id("answer").get_by_test_id("citation").first.click()
    why = page.get_by_test_id("why-found")
    why.locator("summary").click()
    expect(why.locator("dl")).to_contain_text("Rank")


def test_a_conversation_is_found_renamed_and_deleted(visit: Visit) -> None:
    page = visit.page
    item = page.get_by_test_id("conversation-item")
    find = page.get_by_test_id("find-conversation")
    find.fill("no such title")
    expect(item.filter(has_text="Notice")).to_have_count(0)
    find.fill("notice")
    item.get_by_test_id("conversation-actions").click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_test_id("title-input").fill("Leave")
    with page.expect_request(lambda each: each.method == "PATCH") as renamed:
        page.keyboard.press("Enter")
    assert renamed.value.post_data_json == {"title": "Leave"}
    item.get_by_test_id("conversation-actions").click()
    page.get_by_role("menuitem", name="Delete").click()
    with page.expect_request(lambda each: each.method == "DELETE"):
        page.get_by_test_id("confirm-yes").click()


def test_what_a_step_without_a_line_cost_stands_below_the_others(visit: Visit, site: Site) -> None:
    log = run_with_tools()
    log[9].usage.steps.add(step="round1/model", seconds=0.5, prompt_tokens=100, completion_tokens=20, model="qwen")
    site.world.orchestrator.log = log
    ask(visit.page, "Mail it", "chat")
    visit.page.get_by_test_id("trace").locator("summary").click()
    model = visit.page.get_by_test_id("step").filter(has_text="Round 1: words of the model")
    expect(model.get_by_test_id("step-cost")).to_have_text("500 ms · 100 + 20 tokens · qwen")


def test_waiting_run_is_left_for_another_question_and_found_again_after_a_reload(
    visit: Visit, site: Site, desk: Desk
) -> None:
    orchestrator = site.world.orchestrator
    orchestrator.log, orchestrator.pause_after, desk.waiting = run_with_tools(), 5, [ASKED]
    orchestrator.status = run_pb.RUN_STATUS_WAITING
    page = visit.page
    begin(page, "Mail it", "chat")
    question = page.get_by_test_id("turn").get_by_test_id("question")
    expect(question).to_be_visible()

    site.world.memory.thread_ids = ["a" * 12]
    site.soon(lambda: vars(orchestrator).update(log=answered_run(), pause_after=None))
    page.get_by_test_id("new-conversation").click()
    ask(page, "How long?")
    expect(page.get_by_test_id("answer").last).to_contain_text("Four weeks")
    expect(question).to_have_count(0)
    assert not orchestrator.cancelled, "it goes on waiting"

    site.soon(lambda: vars(orchestrator).update(log=run_with_tools(), pause_after=5))
    page.goto("/decisions")
    listed = page.get_by_test_id("approvals").get_by_test_id("question")
    expect(listed).to_contain_text("<b>ann@example.org")
    listed.get_by_test_id("show-run").click()
    expect(question).to_be_visible()
    page.reload()
    desk.on_decision = lambda: site.soon(orchestrator.resume.set)
    question.get_by_test_id("deny").click()
    expect(page.get_by_test_id("answer")).to_have_text("It was not sent.")
    assert [decision["decision"] for _, decision in desk.decisions] == ["deny"]


def test_a_question_of_a_run_is_answered_in_its_conversation(visit: Visit, site: Site) -> None:
    orchestrator = site.world.orchestrator
    orchestrator.log, orchestrator.pause_after = run_with_tools(), 5
    asks = "The server crm, which is not ours, asks: which customer?\nIt wants: name (string)."
    orchestrator.log[3] = event(
        4, input=run_pb.InputRequest(question=asks, state=run_pb.INPUT_STATE_PENDING, expires_at=AT)
    )
    orchestrator.log[4] = event(5, parked=run_pb.RunParked(waits_for="input", until=AT))
    page = visit.page
    begin(page, "Look her up", "chat")
    box = page.get_by_test_id("input-box")
    expect(box).to_contain_text("which customer?")
    box.get_by_test_id("input-text").fill("Ann")
    with page.expect_request(f"**/v1/runs/{RUN_ID}/input") as sent:
        page.keyboard.press("Enter")
    assert sent.value.post_data_json == {"text": "Ann"}


def test_a_question_that_goes_on_over_a_reload_keeps_its_collection_and_conversation(visit: Visit, site: Site) -> None:
    put(site, ready(1), ready(2, collection_id="recipes"))
    orchestrator = site.world.orchestrator
    started = run_pb.RunStarted(
        mode=run_pb.RUN_MODE_GROUNDED, question="How long?", collection_ids=["recipes"], thread_id="0123456789ab"
    )
    orchestrator.log[0], orchestrator.pause_after = event(1, run=started), 3
    page = visit.page
    page.route("**/v1/collections", lambda route: route.fulfill(json={"collections": COLLECTIONS}))
    page.reload()
    page.get_by_test_id("collection").select_option("recipes")
    begin(page, "How long?")
    expect(page.get_by_test_id("stop-button")).to_be_visible()
    page.reload()
    expect(page.get_by_test_id("asked")).to_have_text("How long?")
    expect(page.get_by_test_id("collection")).to_have_value("recipes")
    picture(page, "after-a-reload")
    with page.expect_response(f"**/v1/runs/{RUN_ID}/cancel"):
        page.get_by_test_id("stop-button").click()
    site.soon(orchestrator.resume.set)
    expect(page.get_by_test_id("answer").last).to_have_text("Four weeks1.")
    assert orchestrator.cancelled == [RUN_ID]
    with page.expect_response("**/v1/collections/recipes/chat"):
        begin(page, "And then?")
    assert asked(site) == [("How long?", "recipes", "0123456789ab"), ("And then?", "recipes", "0123456789ab")]


def test_a_run_that_is_left_is_not_shown_in_the_conversation_after_it(visit: Visit, site: Site) -> None:
    orchestrator = site.world.orchestrator
    orchestrator.pause_after, site.world.memory.thread_ids = 3, ["a" * 12, "b" * 12]
    page = visit.page
    begin(page, "How long?")
    expect(page.get_by_test_id("stop-button")).to_be_visible()
    page.get_by_test_id("new-conversation").click()
    expect(page.get_by_test_id("turn")).to_have_count(0)
    expect(page.get_by_test_id("stop-button")).to_have_count(0)
    site.soon(lambda: vars(orchestrator).update(pause_after=None))
    site.soon(orchestrator.resume.set)
    ask(page, "Which soup?")
    page.wait_for_url("**/conversations/bbbbbbbbbbbb")
    assert [each[2] for each in asked(site)] == ["a" * 12, "b" * 12]
    assert not orchestrator.cancelled


def test_a_question_without_the_memory_of_conversations_is_answered_and_says_so(visit: Visit, site: Site) -> None:
    site.world.memory.failure = Unavailable("the memory does not answer")
    page = visit.page
    ask(page)
    expect(page.get_by_test_id("answer")).to_contain_text("Four weeks")
    expect(page.get_by_role("status").filter(has_text="will be read by itself")).to_be_visible()
    site.world.memory.failure = None
    ask(page, "How long is it?")
    page.wait_for_url("**/conversations/0123456789ab")
    assert [each[2] for each in asked(site)] == ["", "0123456789ab"]
    refusals_are_expected(visit, status=503)


def test_a_conversation_that_is_gone_is_begun_anew_and_says_so(visit: Visit, site: Site) -> None:
    site.world.memory.thread_ids = ["a" * 12, "b" * 12]
    page = visit.page
    ask(page)
    page.wait_for_url("**/conversations/aaaaaaaaaaaa")
    site.world.memory.gone.add("a" * 12)
    ask(page, "And then?")
    page.wait_for_url("**/conversations/bbbbbbbbbbbb")
    expect(page.get_by_role("status").filter(has_text="this question was read by itself")).to_be_visible()
    assert [each[2] for each in asked(site)] == ["a" * 12, "b" * 12]
    refusals_are_expected(visit, status=404)


def test_a_conversation_is_read_again_from_its_messages(visit: Visit) -> None:
    page = visit.page
    page.goto("/conversations/0123456789ab")
    expect(page.get_by_test_id("asked")).to_have_text(["How long?"])
    expect(page.get_by_test_id("answer")).to_contain_text("Four weeks")
    expect(page.get_by_test_id("conversation-item")).to_contain_text(["Notice"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_with_a_question_fits_a_phone(visit: Visit, site: Site, desk: Desk, scheme: Any) -> None:
    site.world.orchestrator.log, site.world.orchestrator.pause_after = run_with_tools(), 5
    desk.waiting = [ASKED]
    page = visit.page
    page.emulate_media(color_scheme=scheme)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    page.set_viewport_size({"width": 360, "height": 740})
    begin(page, "Mail it", "chat")
    expect(page.get_by_test_id("turn").get_by_test_id("question")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    picture(page, f"phone-{scheme}")


@pytest.mark.parametrize("language", ["de", "ru", "he"])
def test_every_page_speaks_the_chosen_language(visit: Visit, language: str) -> None:
    page = visit.page
    english = page.locator("h1").inner_text()
    page.get_by_test_id("language").select_option(language)
    expect(page.locator("html")).to_have_attribute("lang", language)
    expect(page.locator("html")).to_have_attribute("dir", "rtl" if language == "he" else "ltr")
    expect(page.locator("h1")).not_to_have_text(english)
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", language)


def test_a_conversation_in_hebrew_is_asked_read_opened_and_exported(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="נהלים.md", media_type="text/markdown"))
    question, said = "כמה ימי חופשה מגיעים לי?", "מגיעים לך 24 ימי חופשה בשנה"
    log = answered_run()
    log[0].run.question = site.world.memory.question = question
    for at in (3, 4):
        log[at].token.text = ""
    log[5].answer.text = f"{said} [1]."
    log[5].answer.citations[0].document_name = "נהלים.md"
    log[5].answer.citations[0].text = f"{said}."
    site.world.orchestrator.log = log
    page = visit.page
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_test_id("language").select_option("he")
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    ask(page, question)
    answer = page.get_by_test_id("answer")
    expect(answer).to_contain_text(said)
    answer.get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("passage-text").locator("mark")).to_contain_text(said)
    words, passage = page.get_by_test_id("turn").bounding_box(), page.get_by_test_id("passage").bounding_box()
    assert words
    assert passage
    assert passage["x"] < words["x"], "the passage stands at the end of the line, which is on the left"
    picture(page, "hebrew")
    page.locator(".conversation-head").get_by_role("button").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Markdown").click()
    saved = Path(download.value.path()).read_text("utf-8")
    for each in (f"## {question}", f"{said} [1].", "[1] נהלים.md"):
        assert each in saved, saved
    assert download.value.suggested_filename.endswith(".md")
    page.locator(".conversation-head").get_by_role("button").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Word").click()
    assert Path(download.value.path()).read_bytes().startswith(b"PK")
    assert download.value.suggested_filename.endswith(".docx")
