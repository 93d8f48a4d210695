"""What operators watch and change, and what is remembered of a person, in a real browser; the services are scripted."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.site import Site
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
        kept.append({"id": "0a" * 12, "subject": "bot", "tenant_id": "acme", "status": "active", **wanted})
        route.fulfill(status=201, json={"key": "gw_secret", "api_key": kept[-1]})

    page.route("**/v1/keys*", answer)
    page.goto("/operating")
    page.get_by_test_id("operating-keys").check(force=True)
    page.get_by_test_id("new-key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("Bot")
    page.get_by_test_id("key-guard").select_option("block")
    dialog.get_by_role("button", name="Make the key").click()
    expect(page.locator(".shown-key")).to_contain_text("gw_secret")
    (made,) = kept
    assert (made["name"], made["guard"], made["scopes"]) == ("Bot", "block", ["query"])
    expect(page.locator("tbody tr")).to_contain_text(["are refused"])


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
