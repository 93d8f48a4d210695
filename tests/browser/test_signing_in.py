"""How a person gets in and out of the console: with a provider's login, and where a login at a tool server ends."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.site import Site
from tests.browsing import Visit, refusals_are_expected, visiting

pytestmark = [pytest.mark.browser]
ISSUERS = {"issuers": [{"issuer": "https://id.example.org/realm", "name": "Example"}]}


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    def prepare(page: Page) -> None:
        page.route("**/oidc/issuers", lambda route: route.fulfill(json=ISSUERS))

    with visiting(browser, site.base_url, prepare) as visit:
        yield visit


def test_who_is_not_known_is_led_to_a_provider_and_back_to_the_same_page(visit: Visit) -> None:
    page = visit.page
    problem = {"reason": "API_KEY_MISSING", "detail": "who are you?"}
    page.route("**/v1/**", lambda route: route.fulfill(status=401, json=problem))
    page.goto("/documents?collection=default")
    login = page.get_by_test_id("key-issuers").get_by_role("link", name="Sign in with Example")
    expect(login).to_have_attribute(
        "href",
        "/oidc/login?issuer=https%3A%2F%2Fid.example.org%2Frealm&to=%2Fdocuments%3Fcollection%3Ddefault",
    )
    refusals_are_expected(visit)


def test_signing_out_ends_the_login_here_and_at_the_provider(visit: Visit) -> None:
    page = visit.page
    ended: list[str] = []

    def leave(route: Route) -> None:
        ended.append(route.request.method)
        route.fulfill(json={"then": "/documents?collection=left"})

    page.route("**/oidc/logout", leave)
    page.get_by_test_id("sign-out").click()
    page.wait_for_url("**/documents?collection=left")
    assert ended == ["POST"]


def test_a_login_at_a_tool_server_is_finished_and_its_code_stays_in_no_history(visit: Visit, site: Site) -> None:
    page = visit.page
    page.goto("/tool-servers/callback?state=crm.abc&code=secret&iss=https%3A%2F%2Flogin.example.com")
    expect(page.get_by_test_id("login-said")).to_contain_text("You are logged in at crm.")
    expect(page.get_by_test_id("login-said")).to_contain_text("groundwork tool-servers list")
    assert page.url == f"{site.base_url}/tool-servers/callback"
    (login,) = site.world.tools.logins
    assert (login.name, login.state, login.code, login.issuer) == (
        "crm",
        "crm.abc",
        "secret",
        "https://login.example.com",
    )
    page.goto("/tool-servers/callback")
    expect(page.get_by_test_id("login-said")).to_contain_text("groundwork tool-servers login NAME")


def test_a_key_of_somebody_else_begins_the_page_anew_and_each_keeps_what_they_have_typed(visit: Visit) -> None:
    page = visit.page
    callers = {"": "anna", "Bearer gw_boris": "boris", "Bearer gw_anna": "anna"}
    revoked: set[str] = set()

    def answer(route: Route) -> None:
        key = route.request.headers.get("authorization", "")
        caller = {"subject": callers[key], "tenant": "acme", "scopes": ["query"], "groups": []}
        if key in revoked:
            route.fulfill(status=401, json={"reason": "API_KEY_REVOKED", "detail": "it was revoked"})
        elif route.request.url.endswith("/v1/me"):
            route.fulfill(json=caller)
        else:
            route.fallback()

    page.route("**/v1/**", answer)
    typed = page.get_by_test_id("question-input")
    with page.expect_response("**/v1/me"):
        page.reload()
    typed.fill("A question of Anna's")
    for key, expected in (("gw_boris", ""), ("gw_anna", "A question of Anna's")):
        revoked.add(shown(page))
        revoked.discard(f"Bearer {key}")
        page.goto("/documents")
        page.get_by_test_id("key-input").fill(key)
        with page.expect_navigation(url="**/"):
            page.get_by_test_id("key-submit").click()
        expect(typed).to_have_value(expected)
    refusals_are_expected(visit)


def shown(page: Page) -> str:
    """The header by which the page says now who it is."""
    key: str | None = page.evaluate("sessionStorage.getItem('groundwork.api-key')")
    return f"Bearer {key}" if key else ""
