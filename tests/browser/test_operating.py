"""What operators watch and change, and what is remembered of a person, in a real browser; the services are scripted."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.site import Site, put, ready
from tests.browsing import Visit, visiting

pytestmark = [pytest.mark.browser]


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    with visiting(browser, site.base_url) as visit:
        yield visit


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("runs", "not only research"),
        ("jobs", "Given up"),
        ("models", "qwen"),
    ],
)
def test_each_part_of_operating_says_what_the_server_says(visit: Visit, part: str, words: str) -> None:
    page = visit.page
    page.goto("/operating")
    page.get_by_test_id(f"operating-{part}").check(force=True)
    expect(page.locator("main")).to_contain_text(words)


def test_costs_are_grouped_one_way_and_back(visit: Visit) -> None:
    page = visit.page
    page.goto("/operating")
    page.get_by_test_id("operating-usage").check(force=True)
    rows = page.locator("tbody tr")
    for way, words in (("day", "2026"), ("model", "qwen"), ("day", "2026")):
        page.get_by_label(re.compile(f"^(By )?{way}$", re.IGNORECASE)).check(force=True)
        expect(rows).to_contain_text(words)


def test_limits_are_shown_set_and_removed(visit: Visit, site: Site) -> None:
    page = visit.page
    page.goto("/operating")
    page.get_by_test_id("operating-limits").check(force=True)
    expect(page.get_by_test_id("limits")).to_contain_text("10 of 1,000 used")
    page.get_by_test_id("new-rule").click()
    page.get_by_test_id("rule-whose").fill("subject:ann")
    page.get_by_test_id("rule-amount").fill("5000")
    page.get_by_test_id("rule-save").click()
    expect(page.get_by_test_id("rule-save")).to_have_count(0)
    rules = page.get_by_test_id("limit-rules")
    expect(rules).to_contain_text("questions: 5 a day")
    rules.get_by_role("button").click()
    page.get_by_role("menuitem", name="Remove").click()
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("confirm-yes")).to_have_count(0)
    made, removed = site.world.orchestrator.set_limits
    (limit,) = made.limits
    assert (made.whose, limit.what, limit.amount, limit.per) == ("subject:ann", "tokens", 5000, "day")
    assert (removed.whose, list(removed.limits)) == ("subject:*", [])


def test_a_new_key_gets_its_guard_and_the_list_says_which(visit: Visit) -> None:
    page = visit.page
    kept: list[dict[str, Any]] = []

    def answer(route: Route) -> None:
        if route.request.method == "GET":
            route.fulfill(json={"keys": kept, "next_page_token": None})
            return
        wanted = json.loads(route.request.post_data or "{}")
        if route.request.method == "PATCH":
            kept[-1] |= wanted
            route.fulfill(json=kept[-1])
            return
        kept.append({"id": "0a" * 12, "subject": "bot", "tenant_id": "acme", "status": "active", **wanted})
        route.fulfill(status=201, json={"key": "gw_secret", "api_key": kept[-1]})

    page.route(re.compile(r"/v1/keys(\?|$|/)"), answer)
    page.goto("/operating")
    page.get_by_test_id("operating-keys").check(force=True)
    page.get_by_test_id("new-key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("Bot")
    page.get_by_test_id("key-guard").select_option("block")
    page.get_by_test_id("key-memory").select_option("off")
    dialog.get_by_role("button", name="Make the key").click()
    expect(page.locator(".shown-key")).to_contain_text("gw_secret")
    (made,) = kept
    assert (made["name"], made["guard"], made["memory"], made["scopes"]) == ("Bot", "block", "off", ["query"])
    expect(page.locator("tbody tr")).to_contain_text(["are refused"])
    expect(page.locator("tbody tr")).to_contain_text(["nothing is learnt"])
    page.locator("tbody tr").get_by_role("button").click()
    page.get_by_role("menuitem", name="Memory").click()
    page.get_by_test_id("memory-mode").select_option("always")
    page.get_by_test_id("memory-save").click()
    expect(page.locator("tbody tr")).to_contain_text(["The same for every message"])
    assert made["memory"] == "always"


def test_the_audit_log_is_read_by_pages_newest_first_and_filtered(visit: Visit) -> None:
    page = visit.page
    asked: list[tuple[str, int]] = []
    newest = 501

    def entry(number: int) -> str:
        return json.dumps(
            {
                "number": number,
                "at": "2026-11-26T10:00:00Z",
                "action": "key_revoked" if number == 501 else "request",
                "subject": f"ann{number}",
                "method": "DELETE",
                "route": "/v1/documents/{document_id}",
                "about": {"document_id": f"doc{number}"},
                "status": 204,
                "previous": "",
                "hash": "0" * 64,
            }
        )

    def answer(route: Route) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        chain, before = query["chain"][0], int(query["before"][0])
        asked.append((chain, before))
        assert query["order"] == ["newest"]
        last = before - 1 if before else newest
        numbers = range(last, max(last - 500, 0), -1) if chain == "tenant" else ()
        route.fulfill(content_type="application/x-ndjson", body="".join(f"{entry(each)}\n" for each in numbers))

    page.route("**/v1/audit*", answer)
    page.goto("/operating")
    page.get_by_test_id("operating-audit").check(force=True)
    entries = page.get_by_test_id("audit-entry")
    expect(entries).to_have_count(500)
    expect(entries.first).to_contain_text("Key revoked")
    newest = 502  # it arrives between two pages
    page.get_by_role("button", name="load earlier ones").click()
    expect(entries).to_have_count(501)
    page.get_by_role("button", name="Look again").click()
    expect(entries.first).to_contain_text("ann502")
    expect(entries).to_have_count(502)
    expect(entries.last).to_contain_text("ann1")
    page.get_by_placeholder("Find in these entries").fill("DOC17")
    expect(entries).to_have_count(11)  # 17 and 170 to 179
    with page.expect_download() as download:
        page.get_by_role("button", name="Save these").click()
    saved = Path(download.value.path()).read_text("utf-8").splitlines()
    assert [json.loads(each)["number"] for each in saved] == [*range(179, 169, -1), 17]
    page.get_by_test_id("audit-chain").select_option("unknown_callers")
    expect(page.get_by_test_id("audit")).to_contain_text("No entries.")
    assert asked == [("tenant", 0), ("tenant", 2), ("tenant", 0), ("tenant", 3), ("unknown_callers", 0)]


def test_a_note_is_written_changed_and_deleted(visit: Visit, site: Site) -> None:
    put(site, ready(2, name="tea.md", size_bytes=12, collection_id="notes", media_type="text/markdown"))
    site.world.ingest.files["d0000002"] = b"Tea at four."
    page = visit.page
    page.goto("/memory")
    page.get_by_test_id("new-note").click()
    page.get_by_test_id("note-name").fill("MEMORY.md")
    page.get_by_test_id("note-text").fill("I live in Bern.")
    page.get_by_test_id("note-save").click()
    expect(page.get_by_test_id("note-dialog")).to_have_count(0)
    note = page.get_by_test_id("note").filter(has_text="tea.md")
    note.get_by_role("button", name="Change").click()
    expect(page.get_by_test_id("note-text")).to_have_value("Tea at four.")
    page.get_by_test_id("note-text").fill("Tea at five.")
    page.get_by_test_id("note-save").click()
    expect(page.get_by_test_id("note-dialog")).to_have_count(0)
    assert [(each.collection_id, each.name) for each in site.world.ingest.headers] == [
        ("notes", "MEMORY.md"),
        ("notes", "tea.md"),
    ]
    note.get_by_role("button", name="Delete").click()
    page.get_by_test_id("confirm-yes").click()
    expect(note).to_have_count(0)


def test_what_is_remembered_is_changed_saved_forgotten_and_paused(visit: Visit, site: Site) -> None:
    page = visit.page
    page.goto("/memory")
    fact = page.get_by_test_id("fact")
    expect(fact).to_contain_text("I like tea")
    fact.get_by_role("textbox").fill("Likes green tea.")
    with page.expect_response("**/v1/memory/facts/*"):
        fact.get_by_role("button", name="Save").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save all").click()
    assert json.loads(Path(download.value.path()).read_text("utf-8"))["facts"][0]["text"] == "Likes tea."
    with page.expect_response("**/v1/memory/pause"):
        page.get_by_test_id("memory-pause").click()
    page.get_by_test_id("memory-forget-everything").click()
    with page.expect_response("**/v1/memory/forget"):
        page.get_by_test_id("confirm-yes").click()
    changed, paused, forgotten = site.world.memory.changes
    assert (changed.text, paused.paused, forgotten.all) == ("Likes green tea.", True, True)


def test_a_language_model_that_is_away_is_said_in_the_words_of_the_reader(visit: Visit, site: Site) -> None:
    page, line = visit.page, visit.page.get_by_test_id("system")
    page.get_by_test_id("language").select_option("de")
    expect(page.locator("html")).to_have_attribute("lang", "de")  # by then it is remembered
    for kinds, words in ((("language_model",), "Das Sprachmodell"), (("language_model", "other"), "orchestrator")):
        site.world.health.detail, site.world.health.kinds = "eine neue Art, es zu sagen", kinds
        page.reload()
        expect(line).to_contain_text(words)
    site.world.health.detail, site.world.health.kinds = "", ()
    page.reload()
    expect(page.locator("h1")).to_be_visible()
    expect(line).to_have_count(0)
