"""Documents, passages and words about the server in a real browser; the services behind the gateway are scripted."""

from collections.abc import Iterator

import pytest
from groundwork.ingest.v1 import ingest_pb2
from playwright.sync_api import Browser, FilePayload, Page, Route, expect

from tests.browser.site import Site, ask, asked, put, ready
from tests.browsing import Visit, picture, refusals_are_expected, upload_files, visiting
from tests.service.gateway.fakes import AT, answered_run, document

pytestmark = [pytest.mark.browser]

COLLECTIONS = [
    {"id": each, "name": each, "created_at": None, "owner": "local-user", "visibility": "private", "role": "owner"}
    for each in ("default", "recipes")
]
HEBREW, ARABIC = "שלום עולם", "مرحبا بالعالم"
TARGETS = """() => [...document.querySelectorAll("button, a[href], select, summary, label.choice")]
    .filter((each) => each.checkVisibility() && !each.matches(".skip, [tabindex='-1']"))
    .map((each) => [each.outerHTML.slice(0, 90), each.getBoundingClientRect()])
    .filter(([, box]) => box.width < 24 || box.height < 24)
    .map(([html, box]) => `${html} ${box.width} x ${box.height}`)"""


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    def prepare(page: Page) -> None:
        page.route("**/v1/collections", lambda route: route.fulfill(json={"collections": COLLECTIONS}))

    with visiting(browser, site.base_url, prepare) as visit:
        yield visit


def direction(page: Page, selector: str) -> list[str]:
    """Direction and alignment that an element has in the end."""
    script = "(each) => [getComputedStyle(each).direction, getComputedStyle(each).textAlign]"
    words: list[str] = page.locator(selector).last.evaluate(script)
    return words


def test_who_sees_all_asks_their_own_collection_and_not_the_only_one_that_is_listed(visit: Visit, site: Site) -> None:
    page = visit.page
    theirs = {**COLLECTIONS[1], "id": "default-0000aaaa", "owner": "anna"}
    page.route("**/v1/collections", lambda route: route.fulfill(json={"collections": [theirs]}))
    own = {**COLLECTIONS[0], "id": "default-0000bbbb"}
    page.route("**/v1/collections/default", lambda route: route.fulfill(json=own))
    with page.expect_response("**/v1/collections/default"):
        page.reload()
    ask(page)
    assert [collection for _, collection, _ in asked(site)] in (["default"], ["default-0000bbbb"])


def test_documents_are_those_of_the_chosen_collection(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md"), ready(2, name="soup.md", collection_id="recipes"))
    page = visit.page
    page.goto("/documents?collection=default")
    rows = page.get_by_test_id("document-row")
    expect(rows).to_contain_text(["leave.md"])
    expect(rows).to_have_count(1)
    page.get_by_test_id("collection-item").filter(has_text="recipes").get_by_role("button").first.click()
    expect(rows).to_contain_text(["soup.md"])
    expect(rows).to_have_count(1)


def test_files_are_taken_once_it_is_known_which_collection_they_are_for(visit: Visit) -> None:
    held: list[Route] = []
    page = visit.page
    expect(page.get_by_test_id("collection")).to_be_visible()

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/collections", hold)
    with page.expect_request("**/v1/collections"):
        page.goto("/documents?collection=recipes")
    expect(page.get_by_test_id("file-input")).to_be_disabled()
    held[0].fulfill(json={"collections": COLLECTIONS})
    with page.expect_request("**/v1/collections/*/documents") as request:
        upload_files(page, FilePayload(name="soup.md", mimeType="text/markdown", buffer=b"Soup is hot."))
    assert "/recipes/" in request.value.url


def test_5000_documents_are_listed_filtered_and_scrolled_within_their_list(visit: Visit, site: Site) -> None:
    put(site, *(ready(number, name=f"{number}.md") for number in range(5000)))
    page = visit.page
    page.goto("/documents")
    rows = page.get_by_test_id("document-row")
    expect(rows.first).to_have_attribute("aria-setsize", "5000", timeout=60_000)
    assert rows.count() < 100, "only those in sight are drawn"
    assert page.evaluate("document.documentElement.scrollHeight") < 2 * page.evaluate("innerHeight")
    page.locator(".rows").evaluate("(each) => each.scrollTo(0, each.scrollHeight)")
    expect(rows.last).to_have_attribute("aria-posinset", "5000")
    expect(rows.last).to_be_in_viewport()
    picture(page, "five-thousand-documents")
    page.get_by_test_id("find-document").fill("4711.md")
    expect(rows).to_have_count(1)


def test_versions_of_a_document_say_when_by_whom_and_what_became_of_them(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md", media_type="application/msword"))
    made = {"size_bytes": 2048, "queued_by": "anna", "queued_at": AT}
    site.world.ingest.revisions["d0000001"] = [
        ingest_pb2.DocumentRevision(
            revision_id="r3",
            number=3,
            state=ingest_pb2.REVISION_STATE_FAILED,
            sha256="ef" * 32,
            error=ingest_pb2.DocumentError(reason="NO_TEXT", message="leave.md holds no text"),
            **made,
        ),
        ingest_pb2.DocumentRevision(
            revision_id="r2",
            number=2,
            state=ingest_pb2.REVISION_STATE_ACTIVE,
            sha256="ab" * 32,
            chunk_count=3,
            **made,
        ),
        ingest_pb2.DocumentRevision(
            revision_id="r1", number=1, state=ingest_pb2.REVISION_STATE_REPLACED, sha256="ab" * 32
        ),
    ]
    page = visit.page
    page.goto("/documents")
    page.get_by_test_id("document-row").get_by_role("button").click()
    page.get_by_test_id("versions").locator("summary").click()
    versions = page.get_by_test_id("version")
    expect(versions).to_contain_text(["Version 3", "Version 2", "Version 1"])
    expect(versions.nth(0)).to_contain_text("leave.md holds no text")
    expect(versions.nth(1)).to_contain_text("In use")
    for words in ("anna", "3 passages", "the same file, read again", "abababababab"):
        expect(versions.nth(1)).to_contain_text(words)
    expect(versions.nth(2)).to_contain_text("date not recorded")


def test_a_long_name_is_cut_in_its_middle(visit: Visit, site: Site) -> None:
    name = "docs/adr/0020-token-vectors-of-long-passages-are-kept-on-disk-and-nowhere-else-of-all-places-in-the-end.md"
    put(site, ready(1, name=name))
    page = visit.page
    page.set_viewport_size({"width": 480, "height": 800})
    page.goto("/documents")
    shown = page.get_by_test_id("document-row").locator(".name")
    expect(shown).to_have_text(name)
    expect(shown).to_have_attribute("title", name)
    start, end = shown.locator(".name-start"), shown.locator(".name-end")
    expect(end).to_have_text("-in-the-end.md")
    assert start.evaluate("(each) => each.scrollWidth > each.clientWidth"), "the start is what is cut"
    row, box = page.get_by_test_id("document-row").bounding_box(), end.bounding_box()
    assert row
    assert box
    assert box["x"] + box["width"] <= row["x"] + row["width"], "the end is seen"


def test_another_try_is_offered_only_where_it_may_help(visit: Visit, site: Site) -> None:
    failed = ingest_pb2.DOCUMENT_STATUS_FAILED
    reasons = ["PDF_ENCRYPTED", "EMPTY_FILE", "PARSER_STOPPED"]
    put(
        site,
        *(
            document(
                name=reason,
                document_id=f"d{number:07}",
                status=failed,
                media_type="application/msword",
                error={"reason": reason, "message": reason},
            )
            for number, reason in enumerate(reasons)
        ),
        ready(9, name="fine", media_type="application/msword"),
    )
    page = visit.page
    page.goto("/documents")
    offered = {}
    for name in [*reasons, "fine"]:
        page.get_by_test_id("document-row").filter(has_text=name).get_by_role("button").click()
        offered[name] = page.get_by_test_id("reindex").inner_text()
        if name == "PDF_ENCRYPTED":
            expect(page.get_by_test_id("document")).to_contain_text("will not help")
        page.keyboard.press("Escape")
        expect(page.get_by_test_id("document")).to_have_count(0)
    assert [name for name, words in offered.items() if words == "Try again"] == ["PARSER_STOPPED"]


def test_a_document_is_deleted_only_after_a_second_press(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md", media_type="application/msword"))
    page = visit.page
    page.goto("/documents")
    page.get_by_test_id("document-row").get_by_role("button").click()
    page.get_by_test_id("delete").click()
    expect(page.get_by_test_id("confirm")).to_contain_text("leave.md")
    page.keyboard.press("Enter")  # what is harmless has the focus
    expect(page.get_by_test_id("confirm")).to_have_count(0)
    assert "d0000001" in site.world.ingest.documents
    page.get_by_test_id("delete").click()
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("document-row")).to_have_count(0)
    assert not site.world.ingest.documents


def test_right_to_left_words_begin_on_the_right(visit: Visit, site: Site) -> None:
    put(site, ready(1, name=f"{HEBREW}.md", media_type="text/markdown"))
    log = answered_run()
    log[5].answer.text = f"{ARABIC} [1]."
    log[5].answer.citations[0].document_name = f"{HEBREW}.md"
    log[5].answer.citations[0].text = ARABIC
    log[0].run.question = site.world.memory.question = HEBREW
    site.world.orchestrator.log = log
    page = visit.page
    page.set_viewport_size({"width": 1400, "height": 900})
    ask(page, HEBREW)
    page.get_by_test_id("source").wait_for()
    page.get_by_test_id("question-input").fill(HEBREW)
    for selector in ("#question", ".asked p", ".plain-answer", ".source"):
        assert direction(page, selector) == ["rtl", "start"], selector
    page.get_by_test_id("source").click()
    expect(page.get_by_test_id("passage-text")).to_be_visible()
    for selector in (".panel-title h2", ".passage-text:not(.around)"):
        assert direction(page, selector) == ["rtl", "start"], selector
    page.goto("/documents")
    expect(page.get_by_test_id("document-row")).to_have_count(1)
    assert direction(page, ".row .name")[0] == "rtl"


def test_sharing_a_collection_asks_first(visit: Visit, site: Site) -> None:
    put(site, ready(1), ready(2, collection_id="recipes"))
    page = visit.page
    changes: list[object] = []

    def change(route: Route) -> None:
        changes.append(route.request.post_data_json)
        route.fulfill(json={**COLLECTIONS[1], "visibility": "tenant"})

    page.route("**/v1/collections/recipes", change)
    page.goto("/documents")
    actions = page.get_by_test_id("collection-item").filter(has_text="recipes").get_by_test_id("collection-actions")
    for answer in ("Cancel", "Share"):
        actions.click()
        page.get_by_role("menuitem", name="Share").click()
        expect(page.get_by_test_id("confirm")).to_contain_text("reads all of its documents")
        page.get_by_test_id("confirm").get_by_role("button", name=answer, exact=True).click()
        expect(page.get_by_test_id("confirm")).to_have_count(0)
    assert changes == [{"visibility": "tenant"}]


def test_what_chats_over_a_collection_use_of_memory_is_chosen(visit: Visit, site: Site) -> None:
    put(site, ready(1), ready(2, collection_id="recipes"))
    page = visit.page
    page.goto("/documents")
    page.get_by_test_id("collection-item").filter(has_text="recipes").get_by_test_id("collection-actions").click()
    page.get_by_role("menuitem", name="Memory").click()
    page.get_by_test_id("memory-mode").select_option("off")
    page.get_by_test_id("memory-save").click()
    expect(page.get_by_test_id("memory-dialog")).to_have_count(0)
    (update,) = site.world.ingest.updates
    assert (update.collection_id, update.memory) == ("recipes", "off")


def test_members_of_a_collection_are_listed_given_a_role_and_removed(visit: Visit, site: Site) -> None:
    put(site, ready(1), ready(2, collection_id="recipes"))
    page = visit.page
    page.goto("/documents")
    page.get_by_test_id("collection-item").filter(has_text="recipes").get_by_test_id("collection-actions").click()
    page.get_by_role("menuitem", name="Members").click()
    dialog = page.get_by_test_id("members")
    expect(dialog).to_contain_text("Nobody but its owner")
    dialog.get_by_label("Who").select_option("group")
    dialog.get_by_test_id("member-name").fill("sales")
    dialog.get_by_label("Role").select_option("editor")
    dialog.get_by_test_id("give-role").click()
    expect(dialog.get_by_test_id("member")).to_contain_text("salesGroup, Editor")
    (member,) = site.world.ingest.members
    assert (member.kind, member.name, member.role) == (
        ingest_pb2.COLLECTION_MEMBER_KIND_GROUP,
        "sales",
        ingest_pb2.COLLECTION_ROLE_EDITOR,
    )
    dialog.get_by_role("button", name="Remove sales").click()
    expect(dialog).to_contain_text("Nobody but its owner")
    assert not site.world.ingest.members


def test_only_some_read_a_document_until_its_access_list_is_taken_away(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="salaries.md", media_type="application/msword"))
    page = visit.page
    page.goto("/documents")
    page.get_by_test_id("document-row").get_by_role("button").click()
    access = page.get_by_test_id("access")
    access.locator("summary").click()
    access.get_by_test_id("restrict").click()
    for kind, name in (("subjects", "anna"), ("groups", "sales"), ("subjects", "boris")):
        access.get_by_test_id("reader-kind").select_option(kind)
        access.get_by_test_id("reader-name").fill(name)
        access.get_by_test_id("let-in").click()
        expect(access.get_by_test_id("reader").filter(has_text=name)).to_be_visible()
    access.get_by_role("button", name="Remove boris").click()
    expect(access.get_by_test_id("reader")).to_have_count(2)
    expect(access.locator("summary")).to_contain_text("Only some")
    made = site.world.ingest.access
    assert made
    assert (list(made.subjects), list(made.groups)) == (["anna"], ["sales"])
    made.subjects.remove("anna")  # by somebody else, after this page has read the list
    access.get_by_test_id("reader-name").fill("carol")
    access.get_by_test_id("let-in").click()
    expect(access.get_by_test_id("reader")).to_contain_text(["carol", "sales"])
    access.get_by_test_id("open-to-all").click()
    page.get_by_test_id("confirm-yes").click()
    expect(access.get_by_test_id("restrict")).to_be_visible()
    assert site.world.ingest.access is None


def test_a_file_that_is_stored_and_not_read_says_so_in_each_language(visit: Visit, site: Site) -> None:
    put(site, document(document_id="d0000001", status=ingest_pb2.DOCUMENT_STATUS_KEPT))
    page = visit.page
    page.goto("/documents")
    for language, words in (("en", "not read"), ("de", "nicht gelesen"), ("ru", "не прочитан"), ("he", "לא נקרא")):
        page.get_by_test_id("language").select_option(language)
        expect(page.get_by_test_id("document-row").locator(".status")).to_contain_text(words)


@pytest.mark.parametrize("width", [360, 860, 1280, 1600])
def test_what_is_chosen_for_a_question_stays_within_its_box_at_each_width(visit: Visit, site: Site, width: int) -> None:
    put(site, ready(1), ready(2, collection_id="recipes"))
    page = visit.page
    page.set_viewport_size({"width": width, "height": 800})
    page.reload()
    expect(page.get_by_test_id("collection")).to_be_visible()
    outer, *inner = page.evaluate(
        """() => [...document.querySelectorAll(".composer, .composer .choice, .composer .segments, .composer .send")]
          .map((each) => each.getBoundingClientRect().toJSON())"""
    )
    assert len(inner) > 3
    for box in inner:
        assert outer["left"] <= box["left"]
        assert box["right"] <= outer["right"]
        assert box["bottom"] <= outer["bottom"]


def test_what_is_pressed_is_large_enough_for_a_finger(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md", media_type="text/markdown"))
    page = visit.page
    page.set_viewport_size({"width": 360, "height": 740})
    ask(page)
    assert page.evaluate(TARGETS) == []
    page.get_by_test_id("answer").get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("passage")).to_be_visible()
    assert page.evaluate(TARGETS) == []
    page.goto("/documents")
    expect(page.get_by_test_id("document-row")).to_have_count(1)
    assert page.evaluate(TARGETS) == []


def test_a_server_that_is_away_is_said_at_once_and_in_words(visit: Visit) -> None:
    page = visit.page
    system = page.get_by_test_id("system")
    expect(system).to_have_count(0)
    page.context.set_offline(True)
    expect(system).to_contain_text("The server does not answer", ignore_case=True)
    page.get_by_test_id("question-input").fill("How long?")
    page.get_by_test_id("ask-button").click()
    expect(page.get_by_test_id("ask-problem")).to_contain_text("The server does not answer.")
    page.context.set_offline(False)
    expect(system).to_have_count(0)
    visit.complaints[:] = [each for each in visit.complaints if "ERR_INTERNET_DISCONNECTED" not in each]


def test_a_request_that_fails_has_the_server_looked_at(visit: Visit) -> None:
    page = visit.page
    visit.expected.add("ERR_CONNECTION_REFUSED")
    for path in ("**/v1/**", "**/readyz"):
        page.route(path, lambda route: route.abort("connectionrefused"))
    page.get_by_test_id("question-input").fill("How long?")
    page.get_by_test_id("ask-button").click()
    expect(page.get_by_test_id("system")).to_contain_text("The server does not answer")


def test_a_download_that_is_refused_says_so_on_the_page(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md", media_type="application/msword"))
    page = visit.page
    page.goto("/documents")
    page.get_by_test_id("document-row").get_by_role("button").click()
    site.world.ingest.documents.clear()
    page.get_by_test_id("download").click()
    expect(page.get_by_test_id("document")).to_contain_text("there is no document")
    assert page.url == f"{site.base_url}/documents"
    visit.complaints[:] = [each for each in visit.complaints if "status of 404" not in each]


def test_no_link_leads_to_a_page_of_json(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md"))
    page = visit.page
    page.goto("/operating")
    state = page.get_by_test_id("state")
    expect(state).to_contain_text("Everything serves.")
    expect(state.get_by_text("retriever")).to_be_visible()
    pages = {"/", "/documents", "/sources", "/search", "/decisions", "/memory", "/connections", "/operating"}
    for link in page.locator("a[href^='/']:visible").all():
        address = link.get_attribute("href") or ""
        is_page = address in pages or address.startswith("/conversations/")
        assert is_page or link.get_attribute("download") is not None, address


def test_samples_are_offered_where_there_is_nothing_and_a_refusal_is_told(visit: Visit, site: Site) -> None:
    page = visit.page
    button = page.get_by_test_id("load-samples")
    expect(button).to_be_visible()

    def refuse(route: Route) -> None:
        problem = {"reason": "SCOPE_MISSING", "detail": "your key may not make collections"}
        if route.request.method == "POST":
            route.fulfill(status=403, content_type="application/problem+json", json=problem)
        else:
            route.fallback()

    page.route("**/v1/collections", refuse)
    button.click()
    expect(page.locator(".samples").get_by_role("alert")).to_contain_text("your key may not make collections")
    expect(button).to_be_enabled()
    put(site, ready(1, name="leave.md"))
    page.reload()
    expect(page.get_by_test_id("ask-button")).to_be_visible()
    expect(button).to_have_count(0)
    refusals_are_expected(visit, status=403)
