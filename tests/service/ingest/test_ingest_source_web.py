"""Web sites and feeds over real HTTP: what is done there is done to their documents."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kit.errors import FailedPrecondition, GroundworkError, InvalidArgument
from services.ingest.adapters.sources import web_site
from tests.doubles.http_double import OTHER_LOOPBACK, Failure
from tests.doubles.web_site import Resource, WebSite
from tests.service.ingest.conftest import System
from tests.service.ingest.source_user import FAILED, SourceUser, source_user

RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>http://x.test</link>{}</channel></rss>"""
ITEM = "<item><guid>http://x.test/{0}</guid><title>{0}</title><description>{1}</description></item>"


@pytest.fixture
async def site() -> AsyncIterator[WebSite]:
    made = WebSite()
    async with made.running():
        yield made


@pytest.fixture
async def user(system: System) -> AsyncIterator[SourceUser]:
    async with source_user(system) as made:
        yield made


async def made(user: SourceUser, site: WebSite, **more: str) -> None:
    await user.make(kind="web", name="site", settings={"url": f"{site.url}/docs/", "delay": "0", **more})
    await user.until(lambda it: it.sync.HasField("ended_at") and not it.pending_count)
    site.read_whole()


async def names(user: SourceUser) -> set[str]:
    return {document.name.removeprefix("site/") for document in (await user.documents()).values()}


async def test_what_is_done_on_the_site_is_done_to_its_documents(site: WebSite, user: SourceUser) -> None:
    site.page(
        "/docs/", "The towers.", "plan", "costs", "/blog/", "gone", "http://elsewhere.test/x", "plan#top", "secret"
    )
    site.page("/docs/plan", "The tower is to be painted green.", "./", "deep")
    site.page("/docs/costs", "The paint costs 400 crowns.", "list.csv")
    site.page("/docs/deep", "It is deep down.")
    site.page("/docs/secret", "Nobody reads this.")
    site.page("/blog/", "Not meant.")
    site.write("/docs/list.csv", "colour,price\ngreen,400\n", "text/csv")
    site.write("/robots.txt", "User-agent: *\nDisallow: /docs/secret\n", "text/plain")
    await made(user, site, path="/docs/", depth="2")
    expected = {"docs/index.html", "docs/plan.html", "docs/costs.html", "docs/deep.html", "docs/list.csv"}
    assert await names(user) == expected
    before = await user.documents()

    source = await user.synced()
    assert source.sync.total_count == 0
    assert set(site.read_whole()) <= {"/docs/", "/robots.txt", "/docs/list.csv"}

    site.page("/docs/plan", "The tower is to be painted blue, not green.", "./")
    site.resources["/docs/prices"] = site.resources.pop("/docs/costs")
    site.page("/docs/", "The towers.", "plan", "prices")
    source = await user.synced()
    after = await user.documents()
    assert (source.sync.moved_count, source.sync.removed_count) == (1, 1)
    assert await names(user) == expected - {"docs/costs.html", "docs/deep.html"} | {"docs/prices.html"}
    assert after[f"{site.url}/docs/prices"].document_id == before[f"{site.url}/docs/costs"].document_id
    assert after[f"{site.url}/docs/plan"].sha256 != before[f"{site.url}/docs/plan"].sha256


async def test_page_that_fails_is_named_and_keeps_its_document(site: WebSite, user: SourceUser) -> None:
    site.page("/docs/", "The towers.", "plan", "costs")
    site.page("/docs/plan", "The tower is to be painted green.")
    site.page("/docs/costs", "The paint costs 400 crowns.")
    await made(user, site)
    site.resources["/docs/plan"] = Resource(b"", status=403)
    del site.resources["/docs/costs"]
    source = await user.synced()
    assert [(file.path, file.reason) for file in source.failing] == [(f"{site.url}/docs/plan", "PAGE_UNREADABLE")]
    assert await names(user) == {"docs/index.html", "docs/plan.html"}


async def test_page_that_fails_costs_no_page_behind_it(site: WebSite, user: SourceUser) -> None:
    site.page("/docs/", "The towers.", "hub", "away", "loop", "old")
    site.page("/docs/loop", "It will turn round.")
    site.page("/docs/hub", "More.", "plan")
    site.page("/docs/away", "More.", "costs")
    site.page("/docs/plan", "The tower is to be painted green.")
    site.page("/docs/costs", "The paint costs 400 crowns.")
    site.page("/docs/old", "It goes.")
    await made(user, site)
    site.resources["/docs/hub"] = Resource(b"", status=403)
    login = "http://login.elsewhere.test/"
    site.resources["/docs/away"] = Resource(b"", status=302, headers={"location": login})
    site.resources["/docs/loop"] = Resource(b"", status=302, headers={"location": "/docs/loop"})
    del site.resources["/docs/old"]
    source = await user.synced()
    assert {file.path for file in source.failing} == {f"{site.url}/docs/{name}" for name in ("hub", "away", "loop")}
    assert await names(user) == {f"docs/{name}.html" for name in ("index", "hub", "away", "loop", "plan", "costs")}

    site.resources["/docs/"] = Resource(b"", status=302, headers={"location": login})
    source = await user.synced()
    assert (source.error.reason, "login.elsewhere.test" in source.error.message) == ("SOURCE_AWAY", True)
    assert len(await names(user)) == 6


@pytest.mark.parametrize("broken", [Resource(b"", status=404), Resource(b"<urlset><url>", "application/xml")])
async def test_sitemap_that_fails_costs_no_page(site: WebSite, user: SourceUser, broken: Resource) -> None:
    index = "<sitemapindex><sitemap><loc>{0}/one.xml</loc></sitemap><sitemap><loc>{0}/two.xml</loc></sitemap></sitemapindex>"
    site.write("/docs/", index.format(site.url), "application/xml")
    for name, page in (("one", "a"), ("two", "b")):
        site.write(f"/{name}.xml", f"<urlset><url><loc>{site.url}/{page}</loc></url></urlset>", "application/xml")
        site.page(f"/{page}", f"Page {page}.")
    await made(user, site)
    assert await names(user) == {"a.html", "b.html"}
    site.resources["/two.xml"] = broken
    source = await user.synced()
    assert [file.path for file in source.failing] == [f"{site.url}/two.xml"]
    assert await names(user) == {"a.html", "b.html"}


async def test_site_without_end_is_listed_in_part(
    site: WebSite, user: SourceUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_site, "_KEPT_BYTES_MOST", 0)
    site.page("/docs/", "The towers.", "plan", *(f"no-{number}" for number in range(40)))
    site.page("/docs/plan", "The tower is to be painted green.")
    await made(user, site, pages="3")
    source = await user.get()
    assert [file.reason for file in source.failing] == ["SITE_TOO_LARGE"]
    assert await names(user) == {"docs/index.html", "docs/plan.html"}


async def test_site_that_is_away_or_wants_rest_loses_no_document(site: WebSite, user: SourceUser) -> None:
    site.page("/docs/", "The towers.", "plan")
    site.page("/docs/plan", "The tower is to be painted green.")
    await made(user, site)
    site.failures = [Failure("GET /docs/plan", 429, headers={"retry-after": "3600"})]
    source = await user.synced()
    assert (source.state, source.error.reason) == (FAILED, "SOURCE_BUSY")
    assert source.next_sync_at.ToSeconds() - source.sync.ended_at.ToSeconds() >= 3599
    site.resources["/docs/"] = Resource(b"", status=401)
    source = await user.synced()
    assert (source.state, source.error.reason) == (FAILED, "SOURCE_AWAY")
    assert len(await user.documents()) == 2


async def test_sitemap_says_what_is_read(site: WebSite, user: SourceUser) -> None:
    site.page("/a", "First.", "/not-listed")
    site.page("/not-listed", "Not meant.")
    pages = "".join(f"<url><loc>{site.url}/{each}</loc></url>" for each in ("a", "b", "c"))
    site.page("/b", "Second.")
    site.page("/c", "Third.")
    head = '<?xml version="1.0"?>'
    xmlns = "http://www.sitemaps.org/schemas/sitemap/0.9"
    index = f'{head}<sitemapindex xmlns="{xmlns}"><sitemap><loc>{site.url}/one.xml</loc></sitemap></sitemapindex>'
    site.write("/docs/", index, "application/xml")
    site.write("/one.xml", f'{head}<urlset xmlns="{xmlns}">{pages}</urlset>', "application/xml")
    await made(user, site, pages="2")
    assert await names(user) == {"a.html", "b.html"}


async def test_feed_keeps_entries_that_it_no_longer_lists(site: WebSite, user: SourceUser) -> None:
    site.write(
        "/feed", RSS.format(ITEM.format("green", "It is green.") + ITEM.format("blue", "It is blue.")), "text/xml"
    )
    await user.make(kind="feed", name="news", settings={"url": f"{site.url}/feed"})
    await user.until(lambda it: it.file_count == 2 and not it.pending_count)
    before = await user.documents()
    site.read_whole()
    await user.synced()
    assert site.read_whole() == []
    site.write("/feed", RSS.format(ITEM.format("blue", "It is red.") + ITEM.format("new", "It is new.")), "text/xml")
    source = await user.synced()
    assert (source.sync.added_count, source.sync.changed_count, source.sync.removed_count) == (1, 1, 0)
    after = await user.documents()
    assert {key.rpartition("/")[2] for key in after} == {"green", "blue", "new"}
    blue = "http://x.test/blue"
    assert after[blue].document_id == before[blue].document_id
    site.page("/feed", "No feed any more.")
    source = await user.synced()
    assert source.error.reason == "SOURCE_AWAY"
    assert len(await user.documents()) == 3


async def test_feed_that_is_a_path_reads_no_file(site: WebSite, user: SourceUser, tmp_path: Path) -> None:
    inside = tmp_path / "inside.xml"
    inside.write_text(RSS.format(ITEM.format("secret", "It is secret.")))
    site.write("/feed", str(inside), "text/xml")
    await user.make(kind="feed", name="news", settings={"url": f"{site.url}/feed"})
    source = await user.until(lambda it: it.sync.HasField("ended_at"))
    assert (source.error.reason, source.file_count) == ("SOURCE_AWAY", 0)


async def test_what_is_no_site_is_refused_when_it_is_made(site: WebSite, user: SourceUser) -> None:
    refused: tuple[tuple[str, type[GroundworkError], str], ...] = (
        (f"{site.url}/nothing", FailedPrecondition, "answers with 404"),
        (f"{site.url}/closed", FailedPrecondition, "asks programs not to read"),
        ("http://169.254.169.254/latest/", FailedPrecondition, "not on the public internet"),
        ("http://[x/", InvalidArgument, "cannot be read"),
        ("ftp://files.example.com/", InvalidArgument, "must begin with http"),
        (f"http://user:pass@{OTHER_LOOPBACK}/", InvalidArgument, "must not carry a user"),
    )
    site.page("/closed", "Not for programs.")
    site.write("/robots.txt", "User-agent: *\nDisallow: /closed\n", "text/plain")
    for url, error, said in refused:
        with pytest.raises(error, match=said):
            await user.make(kind="web", settings={"url": url})
    with pytest.raises(InvalidArgument, match="pages is a number from 1 to 5000"):
        await user.make(kind="web", settings={"url": site.url, "pages": "many"})
    with pytest.raises(FailedPrecondition, match="not on the public internet"):
        await user.make(kind="feed", settings={"url": "http://169.254.169.254/feed"})
