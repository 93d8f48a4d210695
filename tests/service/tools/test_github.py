"""GitHub as tools, against a double made from its published API."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr, ValidationError
from structlog.testing import capture_logs

from kit.network.egress import EgressGuard, parse_networks
from services.tools.adapters.http import github as client_module
from services.tools.adapters.http.github import GithubClient
from services.tools.connections.records import Connection
from services.tools.errors import ToolError
from services.tools.settings import ToolsSettings
from tests.service.tools.boxes import NOW, Box
from tests.service.tools.connected import services_with
from tests.service.tools.github_server import TOKEN, Github, example, refused
from tests.service.tools.http_server import Asked, HttpServer, http_server

CODE, ISSUES, FILE = "/search/code", "/search/issues", "/repos/{owner}/{repo}/contents/{path}"
ISSUE, NEW = "/repos/{owner}/{repo}/issues/{issue_number}", "/repos/{owner}/{repo}/issues"
COMMENTS = f"{ISSUE}/comments"


@dataclass
class Desk:
    box: Box
    server: HttpServer
    client: GithubClient

    def sent(self, number: int = -1) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.server.asked[number].target)
        return parts.path, parse_qs(parts.query)


@asynccontextmanager
async def connected(github: Github, *, token: str = TOKEN, networks: str = "127.0.0.0/8") -> AsyncIterator[Desk]:
    async with http_server(github.server()) as server:
        address = server.url("/").rstrip("/")
        client = GithubClient(EgressGuard(parse_networks(networks)), address)
        services = services_with(Connection("github", address, "octocat", NOW, "ann", SecretStr(token)))
        services.github = client
        yield Desk(Box(ToolsSettings(), services=services), server, client)
        await client.close()


def file_of(text: str | bytes, path: str = "src/fees.py") -> dict[str, Any]:
    content = base64.encodebytes(text.encode() if isinstance(text, str) else text).decode()
    found: dict[str, Any] = example(FILE)
    return {**found, "content": content, "encoding": "base64", "path": path}


async def test_found_code_is_cited_with_its_lines_and_address() -> None:
    answer = example(CODE)
    answer["items"][0]["text_matches"] = [{"fragment": "function addClass(value) {"}]
    github = Github({(CODE, "get"): lambda _: answer})
    async with connected(github) as desk:
        arguments = {"what": "code", "query": "addClass", "repository": "jquery/jquery", "top_k": 3}
        outcome = await desk.box.call("github_search", arguments)
        assert desk.sent() == (CODE, {"q": ["addClass repo:jquery/jquery"], "per_page": ["3"]})
        assert "text-match" in desk.server.asked[0].headers["accept"]
    (found,) = outcome.passages
    assert (found.text, found.document_name) == (
        "function addClass(value) {",
        "jquery/jquery: src/attributes/classes.js (github.com)",
    )
    assert found.hit.chunk.metadata["url"] == outcome.output["found"][0]["url"]


@pytest.mark.parametrize(("what", "qualifier"), [("issues", "is:issue"), ("pull_requests", "is:pull-request")])
async def test_issues_and_pull_requests_are_searched_apart(what: str, qualifier: str) -> None:
    async with connected(Github()) as desk:
        outcome = await desk.box.call("github_search", {"what": what, "query": "windows"})
        assert desk.sent()[1]["q"] == [f"windows {qualifier}"]
    assert outcome.passages[0].document_name.startswith("batterseapower/pinyin-toolkit#132 (open): Line Number")


async def test_file_is_cited_by_its_lines_and_read_on() -> None:
    lines = [f"RATE_{number} = {number}  # euros for a night" for number in range(400)]
    github = Github({(FILE, "get"): lambda _: file_of("\n".join(lines))})
    async with connected(github) as desk:
        asked = {"repository": "acme/harbour", "path": "src/fees.py", "ref": "main"}
        outcome = await desk.box.call("github_read_file", asked)
        assert desk.sent() == ("/repos/acme/harbour/contents/src/fees.py", {"ref": ["main"]})
        first, second = outcome.passages[:2]
        later = await desk.box.call("github_read_file", {**asked, "from_passage": len(outcome.passages)})
    assert first.text.startswith("RATE_0 = 0")
    assert first.heading_path[0].startswith("lines 1–")
    last = int(first.heading_path[0].rpartition("–")[2])
    assert second.text.startswith(f"RATE_{last} = ")
    assert second.heading_path[0].startswith(f"lines {last + 1}–")
    assert later.passages[0].ordinal == len(outcome.passages)


async def test_folder_is_listed_and_a_path_is_quoted() -> None:
    entries = [{**example(FILE), "type": "dir", "name": "src", "content": ""}]
    del entries[0]["content"]
    github = Github({(FILE, "get"): lambda _: entries})
    async with connected(github) as desk:
        outcome = await desk.box.call("github_read_file", {"repository": "acme/harbour", "path": "docs/a b?x=1"})
        assert desk.server.asked[-1].target == "/repos/acme/harbour/contents/docs/a%20b%3Fx%3D1"
        refused_path = await desk.box.call("github_read_file", {"repository": "acme/harbour", "path": "../../user"})
        assert len(desk.server.asked) == 1
    assert outcome.output["entries"] == [{"name": "src", "type": "dir"}]
    assert refused_path.error_reason == "INVALID_ARGUMENTS"


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\xff", b"  \n"])
async def test_file_without_text_is_refused(content: bytes) -> None:
    github = Github({(FILE, "get"): lambda _: file_of(content)})
    async with connected(github) as desk:
        outcome = await desk.box.call("github_read_file", {"repository": "acme/harbour", "path": "a.png"})
    assert outcome.error_reason == "GITHUB_NOT_TEXT"


async def test_issue_is_read_with_its_comments_each_by_its_author() -> None:
    issue = {**example(ISSUE), "comments": 1, "body": "The fee is wrong."}
    async with connected(Github({(ISSUE, "get"): lambda _: issue})) as desk:
        outcome = await desk.box.call("github_read_issue", {"repository": "octocat/Hello-World", "number": 1347})
        assert desk.sent() == ("/repos/octocat/Hello-World/issues/1347/comments", {"per_page": ["50"], "page": ["1"]})
    assert [(each.text, each.heading_path) for each in outcome.passages] == [
        ("The fee is wrong.", (f"octocat, {issue['created_at'][:10]}",)),
        ("Me too", ("octocat, 2011-04-14",)),
    ]
    assert outcome.output["state"] == "open"


async def test_issue_and_comment_are_made_once_each() -> None:
    github = Github()
    async with connected(github) as desk:
        arguments = {"repository": "acme/harbour", "title": "Fee", "text": "Too high.", "labels": ["bug"]}
        outcome = await desk.box.call("github_create_issue", arguments, "run1/step1")
        again = await desk.box.call("github_create_issue", arguments, "run1/step1")
        comment = {"repository": "acme/harbour", "number": 7, "text": "Agreed."}
        commented = await desk.box.call("github_comment", comment, "run1/step2")
    assert github.made == [{"title": "Fee", "body": "Too high.", "labels": ["bug"]}, {"body": "Agreed."}]
    assert outcome.output == again.output == {"number": 1347, "url": example(NEW, "post")["html_url"]}
    assert commented.output["url"].endswith("#issuecomment-1")


@pytest.mark.parametrize("answer", [lambda _: None, refused("502 Bad Gateway", "Server Error")])
async def test_issue_whose_fate_is_unknown_is_in_doubt_and_not_sent_again(answer: Any) -> None:
    github = Github({(NEW, "post"): answer})
    async with connected(github) as desk:
        arguments = {"repository": "acme/harbour", "title": "Fee", "text": "Too high."}
        first = await desk.box.call("github_create_issue", arguments, "run1/step1")
        second = await desk.box.call("github_create_issue", arguments, "run1/step1")
    assert (first.error_reason, second.error_reason, len(github.made)) == ("CALL_IN_DOUBT", "CALL_IN_DOUBT", 1)


@pytest.mark.parametrize(
    ("answer", "reason", "said"),
    [
        (refused("404 Not Found", "Not Found"), "GITHUB_FAILED", "hides it"),
        (refused("403 Forbidden", "Resource not accessible by personal access token"), "GITHUB_FAILED", "permission"),
        (refused("410 Gone", "Issues are disabled for this repo"), "GITHUB_FAILED", "Issues are disabled"),
        (refused("422 Unprocessable Entity", "Validation Failed"), "GITHUB_FAILED", "Validation Failed"),
        (refused("503 Service Unavailable", "busy"), "SERVICE_UNAVAILABLE", "try again later"),
        (lambda _: None, "SERVICE_UNAVAILABLE", "does not answer"),
    ],
)
async def test_refusal_says_what_to_do(answer: Any, reason: str, said: str) -> None:
    async with connected(Github({(ISSUE, "get"): answer})) as desk:
        outcome = await desk.box.call("github_read_issue", {"repository": "acme/harbour", "number": 1})
    assert outcome.error_reason == reason
    assert said in outcome.error_message


@pytest.mark.parametrize(
    "headers",
    [{"Retry_After": "120"}, {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": "99999999999"}, {}],
)
async def test_rate_limit_of_github_is_obeyed(headers: dict[str, str]) -> None:
    message = "You have exceeded a secondary rate limit"
    async with connected(Github({(ISSUES, "get"): refused("403 Forbidden", message, **headers)})) as desk:
        arguments = {"what": "issues", "query": "fee"}
        first = await desk.box.call("github_search", arguments)
        second = await desk.box.call("github_search", {**arguments, "query": "fees"})
        assert len(desk.server.asked) == 1
    assert (first.error_reason, second.error_reason) == ("WEB_LIMIT", "WEB_LIMIT")


async def test_renamed_repository_is_followed_and_no_other_host_is() -> None:
    def moved(asked: Asked) -> bytes:
        host = asked.headers["host"] if "/old/" in asked.target else "elsewhere.example"
        lines = ["HTTP/1.1 301 Moved Permanently", f"Location: http://{host}{asked.target.replace('/old/', '/new/')}"]
        return "\r\n".join([*lines, "Content-Length: 0", "Connection: close", "", ""]).encode()

    async with connected(Github({(ISSUE, "get"): moved})) as desk:
        outcome = await desk.box.call("github_read_issue", {"repository": "acme/old", "number": 1})
        targets = [asked.target for asked in desk.server.asked]
    assert targets == ["/repos/acme/old/issues/1", "/repos/acme/new/issues/1"]
    assert (outcome.error_reason, "301" in outcome.error_message) == ("GITHUB_FAILED", True)


async def test_own_address_is_not_reached_without_the_operators_leave() -> None:
    async with connected(Github(), networks="") as desk:
        outcome = await desk.box.call("github_search", {"what": "code", "query": "fee"})
        assert (outcome.error_reason, desk.server.asked) == ("ADDRESS_REFUSED", [])


async def test_who_has_connected_nothing_is_told_so() -> None:
    async with connected(Github()) as desk:
        outcome = await desk.box.call("github_search", {"what": "code", "query": "fee"}, tenant_id="other")
        assert (outcome.error_reason, desk.server.asked) == ("NOT_CONNECTED", [])


async def test_token_is_tried_and_named_by_its_account_and_stands_in_no_log() -> None:
    with capture_logs() as logs:
        async with connected(Github(), token="hunter77") as desk:
            assert await desk.client.account(SecretStr(TOKEN)) == "octocat"
            with pytest.raises(ToolError, match="connect GitHub again") as refusal:
                await desk.client.account(SecretStr("hunter77"))
            outcome = await desk.box.call("github_search", {"what": "code", "query": "fee"})
    assert (refusal.value.reason, outcome.error_reason) == ("CONNECTION_REFUSED", "CONNECTION_REFUSED")
    assert not any(secret in json.dumps(logs, default=str) + outcome.error_message for secret in (TOKEN, "hunter77"))


async def test_huge_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_BODY_BYTES_MAX", 1000)
    async with connected(Github()) as desk:
        outcome = await desk.box.call("github_search", {"what": "code", "query": "fee"})
    assert (outcome.error_reason, "too large" in outcome.error_message) == ("GITHUB_FAILED", True)


@pytest.mark.parametrize("url", ["http://github.example.com/api/v3", "ftp://x"])
def test_tokens_are_not_sent_in_the_clear(url: str) -> None:
    with pytest.raises(ValidationError):
        ToolsSettings(tools_github_url=url)
