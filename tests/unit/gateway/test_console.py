"""How the console is served, and what its sources must never contain. Its own logic is tested by `make check-console`."""

import json
import re
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from cli.display.tool_names import AGENTS, CHOSEN_BY, TOOLS, agent_in_words, in_words
from services.gateway.routes.console import CALLBACK_PATH, PAGES, console_router, load_console
from services.gateway.schemas.identity.audit import AuditEntry

CONSOLE = Path(__file__).parents[3] / "console"
SOURCES = [path for path in (CONSOLE / "src").rglob("*") if path.suffix in {".ts", ".tsx", ".css"}]


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """As the build leaves it."""
    for name, text in {
        "index.html": "<!doctype html>the page",
        "diagram.html": "<!doctype html>the frame",
        "icon.svg": "<svg/>",
        "assets/index-0a1b.js": "export {};",
        "assets/index-0a1b.js.gz": "compressed",
        "pdf/cmaps/a.bcmap": "map",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture
async def client(built: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(built) as client:
        yield client


def serving(folder: Path) -> httpx.AsyncClient:
    app = FastAPI()
    app.include_router(console_router(load_console(folder)))
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://test", headers={"Accept-Encoding": "identity"}
    )


async def test_each_page_and_the_end_of_a_login_are_the_one_page_under_a_strict_policy(
    client: httpx.AsyncClient,
) -> None:
    for path in ("/", CALLBACK_PATH, *(f"/{page}" for page in PAGES), "/conversations/0123456789ab"):
        page = await client.get(path)
        assert page.text.endswith("the page"), path
        assert "unsafe" not in page.headers["content-security-policy"]
        assert page.headers["cache-control"] == "no-cache"
    again = await client.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_files_named_by_their_content_are_kept_for_ever_and_sent_compressed(client: httpx.AsyncClient) -> None:
    plain = await client.get("/console/assets/index-0a1b.js")
    assert (plain.text, plain.headers["cache-control"]) == ("export {};", "public, max-age=31536000, immutable")
    assert plain.headers["content-type"].startswith("text/javascript")
    async with client.stream("GET", "/console/assets/index-0a1b.js", headers={"Accept-Encoding": "gzip"}) as packed:
        assert packed.headers["content-encoding"] == "gzip"
        assert b"".join([each async for each in packed.aiter_raw()]) == b"compressed"
    assert (await client.get("/console/pdf/cmaps/a.bcmap")).headers["cache-control"] == "no-cache"
    assert (await client.get("/favicon.ico")).text == "<svg/>"


async def test_diagrams_are_drawn_in_a_frame_without_origin_and_connection(client: httpx.AsyncClient) -> None:
    policy = (await client.get("/console/diagram.html")).headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "connect-src" not in policy
    assert "unsafe-eval" not in policy


@pytest.mark.parametrize("name", ["nothing.js", "index.html", "assets/index-0a1b.js.gz", "..%2fconsole.py"])
async def test_nothing_else_is_served(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get(f"/console/{name}")).status_code == 404


async def test_a_console_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        for path in ("/", "/documents", CALLBACK_PATH):
            page = await client.get(path)
            assert page.status_code == 200
            assert "<code>make console</code>" in page.text


def test_the_gateway_and_the_console_know_the_same_pages() -> None:
    router = (CONSOLE / "src" / "router.tsx").read_text()
    paths = set(re.findall(r'path: "([^"]+)"', router))
    assert {path.split("/")[1] for path in paths} == {"", CALLBACK_PATH.split("/")[1], *PAGES}
    assert CALLBACK_PATH in paths


@pytest.mark.parametrize(("group", "words"), [("tools", TOOLS), ("agentWords", AGENTS), ("chosenBy", CHOSEN_BY)])
def test_names_have_the_same_words_as_on_the_command_line(group: str, words: dict[str, str]) -> None:
    assert json.loads((CONSOLE / "src" / "i18n" / "en.json").read_text("utf-8"))[group] == words


def test_each_agent_has_its_words() -> None:
    agents = {path.stem for path in Path(str(resources.files("services.orchestrator") / "agents")).glob("[a-z]*.py")}
    assert agents | {"research"} == AGENTS.keys()
    assert agent_in_words("quiz", "model") == "Agent: a quiz (the model chose it)"
    assert agent_in_words("tax_advice", "explicit") == "Agent: tax advice (you chose it)"
    assert agent_in_words("reasoning", "default") == ""


def test_each_tool_has_its_words() -> None:
    toolbox = {path.stem for path in Path(str(resources.files("services.tools") / "toolbox")).rglob("[a-z]*.py")}
    assert set(TOOLS) == toolbox
    assert in_words("look_it-up") == "look it up"


def test_no_data_ever_becomes_markup_and_nothing_comes_from_elsewhere() -> None:
    assert len(SOURCES) > 50
    for path in SOURCES:
        text = path.read_text("utf-8")
        # The frame that draws diagrams has no origin, and its drawings are made by mermaid in its strict mode.
        markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\("
        assert path.name == "frame.ts" or not re.search(markup, text, re.IGNORECASE), path.name
        addresses = set(re.findall(r"https?://[\w.-]+\.\w+[^\s\"'`)]*", text)) - {"http://www.w3.org/2000/svg"}
        assert path.name == "schema.ts" or not addresses, path.name
    for name in ("index.html", "diagram.html"):
        page = (CONSOLE / name).read_text()
        assert not re.search(r" style=|<script(?![^>]*src=)|\son\w+=", page), name


def test_no_other_try_is_offered_for_a_file_that_ingest_rejects_for_good() -> None:
    may_help = {"OCR_MISSING", "TOO_MANY_CHUNKS"}  # until another setting allows it
    ingest = Path(str(resources.files("services.ingest")))
    rejections = (re.findall(r'DocumentRejected\(\s*"([A-Z_]+)"', path.read_text()) for path in ingest.rglob("*.py"))
    states = (CONSOLE / "src" / "pages" / "documents" / "states.ts").read_text()
    final = re.search(r"const FINAL = new Set\(\[(.*?)\]", states, re.DOTALL)
    assert final
    assert set(re.findall(r"[A-Z_]+", final[1])) == {reason for each in rejections for reason in each} - may_help


def test_the_console_has_words_for_each_action_of_the_audit_log() -> None:
    actions = set(re.findall("`([a-z_]+)`", AuditEntry.model_fields["action"].description or ""))
    words = json.loads((CONSOLE / "src/i18n/en.json").read_text("utf-8"))["audit"]
    page = (CONSOLE / "src/pages/operating/Audit.tsx").read_text("utf-8")
    assert actions == {name.removeprefix("action_") for name in words if name.startswith("action_")}
    assert all(f'"{action}"' in page for action in actions)
