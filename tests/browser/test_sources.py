"""The pages of sources and of connections in a real browser."""

from collections.abc import Iterator

import pytest
from groundwork.ingest.v1 import ingest_pb2
from groundwork.tools.v1 import tools_pb2
from playwright.sync_api import Browser, expect

from tests.browser.site import Site
from tests.browsing import Visit, picture, refusals_are_expected, visiting

pytestmark = [pytest.mark.browser]


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    with visiting(browser, site.base_url) as visit:
        yield visit


def test_source_is_made_watched_run_paused_and_deleted(visit: Visit, site: Site) -> None:
    page = visit.page
    page.goto("/sources")
    expect(page.get_by_text("There is no source yet")).to_be_visible()
    page.get_by_test_id("new-source").click()
    page.get_by_test_id("source-kind").select_option("s3")
    page.get_by_label("Bucket", exact=True).fill("papers")
    page.get_by_label("Secret key").fill("s3cret")
    page.get_by_role("button", name="Make the source").click()
    shown = page.get_by_test_id("source")
    expect(shown).to_contain_text("it cannot be read (FILE_UNREADABLE)")
    asked = site.world.ingest.source_requests
    wanted = next(each for each in asked if isinstance(each, ingest_pb2.CreateSourceRequest))
    assert (wanted.kind, dict(wanted.settings), dict(wanted.secrets)) == (
        "s3",
        {"bucket": "papers"},
        {"secret_key": "s3cret"},
    )
    shown.get_by_role("button", name="Sync now").click()
    shown.get_by_role("button", name="Pause").click()
    shown.get_by_test_id("source-change").click()
    page.get_by_test_id("source-every").fill("90")
    page.get_by_label("Id of the key").fill("AK2")
    page.get_by_label("Secret key").fill("s3cret2")
    page.get_by_test_id("source-save").click()
    expect(page.get_by_test_id("source-save")).to_have_count(0)
    shown.get_by_role("button", name="Delete").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There is no source yet")).to_be_visible()
    said = [type(each).__name__ for each in asked if type(each).__name__ != "ListSourcesRequest"]
    assert said == ["CreateSourceRequest", "RunSourceRequest", "UpdateSourceRequest", "UpdateSourceRequest"]
    changed = [each for each in asked if isinstance(each, ingest_pb2.UpdateSourceRequest)][-1]
    assert changed.every.seconds == 5400
    assert dict(changed.secrets.values) == {"access_key": "AK2", "secret_key": "s3cret2"}
    assert "s3cret" not in page.content()


def test_service_is_connected_by_a_code_that_is_typed_there(visit: Visit, site: Site) -> None:
    page, tools = visit.page, site.world.tools
    refusals_are_expected(visit, 412)
    for has_refused in (True, False):
        tools.has_refused = has_refused
        site.soon(tools.agreed.clear)
        page.goto("/connections")
        page.get_by_test_id("new-connection").click()
        page.get_by_test_id("connection-login").click()
        code = page.get_by_test_id("connection-code")
        expect(code).to_contain_text("WDJB-MJHT")
        expect(code.get_by_role("link")).to_have_attribute("href", "https://example.com/device")
        expect(page.get_by_test_id("connections")).to_have_count(0)
        picture(page, f"connection-login-{has_refused}")
        site.soon(tools.agreed.set)
        if has_refused:
            expect(page.get_by_text("the person has refused it at the service")).to_be_visible()
            expect(code).to_have_count(0)
    expect(page.get_by_test_id("connections")).to_contain_text("ann-at-github")
    expect(page.get_by_test_id("connection-login")).to_have_count(0)
    assert [each.login for each in tools.logins if isinstance(each, tools_pb2.FinishConnectionLoginRequest)] == [
        "waiting",
        "agreed",
    ] * 2


def test_service_is_connected_and_disconnected(visit: Visit, site: Site) -> None:
    page = visit.page
    page.goto("/connections")
    expect(page.get_by_text("Nothing is connected yet")).to_be_visible()
    page.get_by_test_id("new-connection").click()
    page.get_by_test_id("connection-secret").fill("github_pat_1")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_test_id("connections")).to_contain_text("ann-at-github")
    assert [each.secret for each in site.world.tools.connections.values()] == ["github_pat_1"]
    assert "github_pat_1" not in page.content()
    page.get_by_role("button", name="Disconnect").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Disconnect").click()
    expect(page.get_by_text("Nothing is connected yet")).to_be_visible()
