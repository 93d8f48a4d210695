"""Listings by servers that do not keep to their protocol, or whose answers can be misunderstood: nothing is lost by them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from services.ingest.adapters.sources._crawl import SiteMemory, SitePage
from services.ingest.adapters.sources.bucket import BucketReader
from services.ingest.adapters.sources.github import RepositoryReader
from services.ingest.adapters.sources.web_site import SiteReader
from services.ingest.errors import SourceAway, SourceTooLarge
from services.ingest.sources.models import SourceFile
from services.ingest.sources.ports import Opening, Surroundings

HEAD, BASE = "b" * 40, "a" * 40
LINK = {"filename": "link.md", "status": "added", "sha": "2" * 40, "additions": 1}


class Server:
    """Answers by what an address ends with."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def text(self, url: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        self.asked.append(url)
        found = next(answer for end, answer in self._answers.items() if end in url)
        return httpx.Response(200, **({"text": found} if isinstance(found, str) else {"json": found}))


class Site:
    """Whose pages redirect."""

    def __init__(self, redirects: Mapping[str, str]) -> None:
        self._redirects = redirects

    @asynccontextmanager
    async def ask(
        self, url: str, headers: Mapping[str, str] | None = None, *, only_host: str
    ) -> AsyncIterator[httpx.Response]:
        assert urlsplit(url).netloc == only_host
        there = self._redirects.get(url)
        yield httpx.Response(
            302 if there else 200, headers={"location": there} if there else {}, request=httpx.Request("GET", url)
        )

    async def text(self, url: str) -> httpx.Response:
        return httpx.Response(404, request=httpx.Request("GET", url))


def opening(**settings: str) -> Opening:
    return Opening("t1", settings, {}, Surroundings(lambda _: {}, max_files=20))


def bucket(listing: str) -> BucketReader:
    server = Server({"list-type=2": f"<ListBucketResult>{listing}</ListBucketResult>"})
    return BucketReader(server, opening(bucket="papers"))  # type: ignore[arg-type] # as much of it as is asked


def repository(**answers: Any) -> tuple[RepositoryReader, Server]:
    commit = {"sha": HEAD, "commit": {"tree": {"sha": "tree"}}}
    server = Server({"/commits/": commit, "/compare/": {}, **{f"/{name}": each for name, each in answers.items()}})
    return RepositoryReader(server, opening(repository="octocat/papers", branch="main")), server  # type: ignore[arg-type] # the same


@pytest.mark.parametrize(
    "listing",
    [
        "<IsTruncated>true</IsTruncated>",
        "<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>",
    ],
)
async def test_bucket_that_is_listed_in_part_is_not_taken_for_all_of_it(listing: str) -> None:
    with pytest.raises(SourceAway):
        await bucket(listing).list_changes("")


async def test_keys_are_unquoted_only_where_the_server_quoted_them() -> None:
    entry = "<Contents><Key>a+%41.md</Key></Contents>"
    assert [file.key for file in (await bucket(entry).list_changes("")).files] == ["a+%41.md"]
    quoted = f"<EncodingType>url</EncodingType>{entry}"
    assert [file.key for file in (await bucket(quoted).list_changes("")).files] == ["a A.md"]


@pytest.mark.parametrize(
    "patch", ["@@ -0,0 +1 @@\n+../x.md\n\\ No newline at end of file", "@@ -0,0 +1 @@\n+Subproject commit 1"]
)
async def test_links_and_submodules_that_a_comparison_names_are_no_files(patch: str) -> None:
    entry = {"path": "a.md", "type": "blob", "mode": "100644", "sha": "1" * 40}
    link = {"path": "link.md", "type": "blob", "mode": "120000", "sha": "2" * 40}
    tree = {"tree": [entry, link]}
    reader, _ = repository(compare={"status": "ahead", "files": [{**LINK, "patch": patch}]}, git=tree)
    listing = await reader.list_changes(BASE)
    assert ([file.key for file in listing.files], listing.is_complete) == (["a.md"], True)


async def test_tree_that_contains_itself_is_given_up() -> None:
    inner = {"path": "d", "type": "tree", "mode": "040000", "sha": "tree"}
    reader, server = repository(git={"tree": [inner], "truncated": True})
    with pytest.raises(SourceTooLarge, match="folders"):
        await reader.list_changes("")
    assert len(server.asked) < 30


def test_remembered_pages_have_a_bound() -> None:
    memory = SiteMemory(bytes_most=10_000)
    for number in range(100):
        for _ in range(2):
            memory.keep(("t1", f"/{number}"), SitePage(SourceFile(str(number)), ("x" * 400,), {}))
    assert memory.get(("t1", "/99"))
    assert sum(memory.get(("t1", f"/{number}")) is not None for number in range(100)) == 6


@pytest.mark.parametrize(
    ("redirects", "refused"),
    [
        ({"https://x.test/": "https://www.x.test/start"}, ""),
        ({"https://x.test/": "https://sso.test/?back=x.test"}, "another site"),
        ({"https://x.test/": "https://x.test.evil.test/"}, "another site"),
        ({"https://x.test/": "https://www.x.test/", "https://www.x.test/": "https://x.test/"}, "back and forth"),
    ],
)
async def test_site_is_read_at_its_own_host_only(tmp_path: Path, redirects: Mapping[str, str], refused: str) -> None:
    reader = SiteReader(Site(redirects), opening(url="https://x.test"), tmp_path)  # type: ignore[arg-type] # as above
    with pytest.raises(SourceAway, match=refused) if refused else nullcontext():
        await reader.look()
    assert refused or reader._start == "https://www.x.test/start"
