"""A mode is a module of the folder of modes: dropped in, it is offered, checked and served like the others."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from services.orchestrator.errors import InvalidRequest, ModeNotOffered
from services.orchestrator.log.events import Answer, Budgets, Done, RunMode, RunStarted, RunStatus, Usage
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, RunRequest, ToolSelection
from services.orchestrator.modes.serving import Modes, discover_modes
from services.orchestrator.runs.requests import check
from services.orchestrator.settings import OrchestratorSettings
from tests.unit.orchestrator.cutting import AT, KEY, now
from tests.unit.orchestrator.fakes import MemoryLog
from tests.unit.orchestrator.serving import mode_services

ECHO = """
from services.orchestrator.log.events import Answer, Budgets, RunMode
from services.orchestrator.modes.mode import Mode


class Echo(Mode):
    name = RunMode.AGENT
    description = "Says what was asked."
    budgets = Budgets(steps=30)
    usual = Budgets(tool_calls=7)
    needs_collections = False

    async def answer(self, run, record):
        return Answer(record.request.question.upper(), (), None, "extractive")


def build_mode(services, settings):
    return Echo()
"""


@pytest.fixture
def dropped_in(tmp_path: Path) -> Iterator[Modes]:
    """What a folder with one mode, and with a module that is none, gives."""
    package = ModuleType("folder_of_modes")
    package.__path__ = [str(tmp_path)]
    (tmp_path / "echo.py").write_text(ECHO)
    (tmp_path / "words.py").write_text("HELLO = 'hello'\n")
    sys.modules[package.__name__] = package
    yield discover_modes(mode_services(), OrchestratorSettings(), package)
    for name in [each for each in sys.modules if each.startswith(package.__name__)]:
        del sys.modules[name]


async def test_mode_that_is_dropped_in_is_served_within_the_frame_of_all_modes(dropped_in: Modes) -> None:
    log = MemoryLog()
    request = RunRequest(RunMode.AGENT, "who?", budgets=Budgets(steps=90))
    check(request, dropped_in)
    record = RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT)
    assert await dropped_in.run(record, await Journal.open(KEY, log, now)) is RunStatus.COMPLETED
    started, answer, usage, done = [event.payload for event in log.events[KEY]]
    assert started == RunStarted(RunMode.AGENT, "who?", budgets=Budgets(steps=30, tool_calls=7))
    assert isinstance(answer, Answer)
    assert answer.text == "WHO?"
    assert isinstance(usage, Usage)
    assert done == Done(RunStatus.COMPLETED)
    assert await dropped_in.run(record, await Journal.open(KEY, log, now)) is RunStatus.COMPLETED
    assert len(log.events[KEY]) == 4, "a run that has ended is not worked on again"


def test_what_a_mode_does_not_take_is_refused_with_the_modes_that_do(dropped_in: Modes) -> None:
    with pytest.raises(ModeNotOffered, match="agent"):
        check(RunRequest(RunMode.QA, "who?"), dropped_in)
    with pytest.raises(InvalidRequest, match="no tools"):
        check(RunRequest(RunMode.AGENT, "who?", tools=ToolSelection()), dropped_in)


def test_modes_of_the_house_are_found_in_their_folder() -> None:
    modes = discover_modes(mode_services(), OrchestratorSettings())
    assert [mode.name for mode in modes.all] == [RunMode.AGENT, RunMode.CHAT, RunMode.GROUNDED, RunMode.QA]
    assert all(mode.description.endswith(".") for mode in modes.all)
