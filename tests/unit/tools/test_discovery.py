"""Tools that are set up, and tools from an operator's folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kit.errors import GroundworkError
from services.tools import toolbox
from services.tools.calling.calls import Calls
from services.tools.calling.execution import Toolbox
from services.tools.calling.processes import Processes
from services.tools.errors import BrokenTool
from services.tools.models import Call, Caller
from services.tools.settings import ToolsSettings
from services.tools.sources.chain import guarded
from services.tools.sources.discovery import discover
from services.tools.sources.limits import Turns
from services.tools.sources.modules import module_source
from tests.unit.tools.boxes import make_context
from tests.unit.tools.fakes import START, MemoryCallStore

CALL = Call("acme", "greet", {"name": "Ann"})
PARAMETERS = {"type": "object", "properties": {"name": {"type": "string"}}}
GREET = """
import os
from services.tools.errors import ToolError

SCHEMA = {"function": {"name": "greet", "description": "Greets.", "parameters": PARAMETERS}}

class Rude(ToolError):
    reason = "RUDE"

ASYNC def greet(name MORE):
    if name == "nobody":
        raise Rude("say a name")
    return {"text": f"Hello {name}", "process": os.getpid()}
"""


def greet(async_: str = "", more: str = "", last: str = "") -> str:
    """The source of a tool."""
    source = GREET.replace("ASYNC ", async_).replace("MORE", more).replace("PARAMETERS", repr(PARAMETERS))
    return source + last


@pytest.fixture(autouse=True)
def _no_module_stays() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("groundwork_tool_")]:
        del sys.modules[name]


def box_with(folder: Path, settings: ToolsSettings | None = None) -> Toolbox:
    turns = Turns(1, 1)
    modules = module_source(discover(toolbox, settings, [folder]), Processes(1), make_context)
    source = guarded([modules], turns, allowed={"umbrella": ["probe"]})
    return Toolbox(source, Calls(MemoryCallStore(), now=lambda: START), turns)


async def names(box: Toolbox) -> set[str]:
    return {tool.name for tool in await box.offered(Caller("acme"))}


@pytest.mark.parametrize("async_", ["", "async "])
async def test_module_in_a_folder_is_a_tool(tmp_path: Path, async_: str) -> None:
    (tmp_path / "greet.py").write_text(greet(async_))
    (tmp_path / "_shared.py").write_text("this is no tool")
    (tmp_path / "README.md").write_text("nor is this")
    box = box_with(tmp_path)
    assert {"greet", "math_eval"} <= await names(box)
    output = (await box.call(CALL)).output
    assert output["text"] == "Hello Ann"
    assert (output["process"] == os.getpid()) == bool(async_)
    refusal = await box.call(replace(CALL, arguments={"name": "nobody"}))
    assert (refusal.error_reason, refusal.error_message) == ("RUDE", "say a name")


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        ("math_eval", "", "two modules are called math_eval"),
        ("greet", "import nowhere_to_be_found", "greet: the module cannot be imported"),
        ("greet", greet(more=", context"), "only a coroutine function"),
        ("greet", greet("async ", ", context").replace("'name':", "'context':"), "no argument may be called context"),
        (
            "greet",
            greet(
                last="CACHEABLE = True\nfrom services.tools.models import *\nPOLICY = Policy(effect=Effect.IDEMPOTENT)"
            ),
            "cannot be CACHEABLE",
        ),
        (
            "greet",
            greet(last="from services.tools.models import *\nPOLICY = Policy(called_for_by=('(',))"),
            "no regular expression",
        ),
        (
            "greet",
            greet(last="from services.tools.models import *\nPOLICY = Policy(without_model=WithoutModel('fly'))"),
            "must be one of search, math, time",
        ),
        (
            "greet",
            greet(
                last="from services.tools.models import *\nPOLICY = Policy(without_model=WithoutModel('math', 'sum'))"
            ),
            "it has no argument 'sum'",
        ),
    ],
)
def test_module_that_cannot_be_a_tool_keeps_the_service_from_starting(
    tmp_path: Path, name: str, source: str, says: str
) -> None:
    (tmp_path / f"{name}.py").write_text(source)
    with pytest.raises(BrokenTool, match=says) as caught:
        discover(toolbox, folders=[tmp_path])
    assert isinstance(caught.value, GroundworkError), "which a process says in a line before it ends"


def test_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenTool, match="GROUNDWORK_TOOLS_FOLDERS"):
        discover(toolbox, folders=[tmp_path / "nowhere"])


def test_folders_are_written_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_TOOLS_FOLDERS", "/opt/tools, /srv/more")
    assert ToolsSettings().tools_folders == (Path("/opt/tools"), Path("/srv/more"))
    assert ToolsSettings(tools_folders=()).tools_folders == ()


IS_AVAILABLE = "def is_available(settings): return settings.retriever_address == 'here:1'\n"


async def test_other_name_of_a_tool_is_not_offered_and_is_called_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text(greet())
    other = greet(last='\nfrom services.tools.models import Policy\nPOLICY = Policy(other_name_of="greet")\n')
    (tmp_path / "welcome.py").write_text(
        other.replace('"greet", "desc', '"welcome", "desc').replace("def greet", "def welcome")
    )
    box = box_with(tmp_path)
    offered = {tool.name: tool.other_names for tool in await box.offered(Caller("acme"))}
    assert offered["greet"] == ("welcome",)
    assert "welcome" not in offered
    outcome = await box.call(replace(CALL, name="welcome"))
    assert outcome.output["text"] == "Hello Ann"


async def test_tool_that_is_not_set_up_is_not_offered_and_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text(
        greet(last=f"{IS_AVAILABLE}NEEDS = 'set GROUNDWORK_RETRIEVER_ADDRESS to here:1'")
    )
    without, with_it = (
        box_with(tmp_path, ToolsSettings()),
        box_with(tmp_path, ToolsSettings(retriever_address="here:1")),
    )
    assert "greet" not in await names(without)
    assert "greet" in await names(with_it)
    outcome = await without.call(CALL)
    assert outcome.error_reason == "TOOL_UNAVAILABLE"
    assert "set GROUNDWORK_RETRIEVER_ADDRESS to here:1" in outcome.error_message
    assert "greet" not in (await without.call(replace(CALL, name="nothing"))).error_message
    assert (await with_it.call(CALL)).ok
    assert (await without.call(replace(CALL, tenant_id="umbrella"))).error_reason == "TOOL_NOT_ALLOWED"


def test_tool_that_does_not_say_what_it_needs_names_the_operator(tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text(greet(last=IS_AVAILABLE))
    assert "operator" in discover(toolbox, ToolsSettings(), [tmp_path])["greet"].missing
