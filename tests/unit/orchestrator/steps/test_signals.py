"""Being fenced off, and waiting, are no failures: nothing that stands in for a failed step may take them for one."""

import ast
import asyncio
from pathlib import Path

import pytest

import services.orchestrator
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.errors import FencedOff, Parked, RunSignal, signal_in
from services.orchestrator.log.events import Done, RunEvent, RunMode, RunStarted, RunStatus, Thinking, Token
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord, RunRequest
from services.orchestrator.steps.run import Run
from tests.unit.orchestrator.cutting import AT, KEY, now
from tests.unit.orchestrator.fakes import FakeModel, FakeScorer, MemoryLog
from tests.unit.orchestrator.serving import document_modes, mode_services

PARKED = Parked("a", AT)
FENCED = FencedOff("somebody else writes")


@pytest.mark.parametrize("signal", [PARKED, FENCED], ids=["parked", "fenced off"])
def test_signal_is_no_exception(signal: RunSignal) -> None:
    assert not isinstance(signal, Exception)


def test_signal_is_found_in_groups_and_being_fenced_off_outweighs_waiting() -> None:
    nested = BaseExceptionGroup("outer", [ValueError(), PARKED, BaseExceptionGroup("inner", [FENCED])])
    assert signal_in(nested) is FENCED
    assert signal_in(BaseExceptionGroup("outer", [ValueError(), PARKED])) is PARKED
    assert signal_in(ExceptionGroup("outer", [ValueError()])) is None
    assert signal_in(ValueError()) is None


def test_nobody_catches_everything_without_raising_it_again() -> None:
    """A bare `except`, `except BaseException` and `suppress(BaseException)` would swallow a signal."""
    root = Path(services.orchestrator.__file__).parent
    swallowing = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if _catches_everything(node)
    ]
    assert swallowing == []


def _catches_everything(node: ast.AST) -> bool:
    match node:
        case ast.ExceptHandler(type=kind, body=body):
            catches_all = kind is None or "BaseException" in {
                each.id for each in ast.walk(kind) if isinstance(each, ast.Name)
            }
            return catches_all and not isinstance(body[-1], ast.Raise)
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=args):
            return any(isinstance(each, ast.Name) and each.id in ("BaseException", "RunSignal") for each in args)
    return False


class TakenOverLog(MemoryLog):
    """Another orchestrator begins to write at the first token."""

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        if isinstance(event.payload, Token):
            raise FENCED
        return await super().append(key, event, last_position)


@pytest.mark.parametrize(
    "model", [None, FakeModel(["The tower was ", "built in 1889. [1]"])], ids=["extractive", "model"]
)
async def test_loser_says_not_a_word_more(model: FakeModel | None) -> None:
    generator = Generator(model) if model else None
    modes = document_modes(mode_services(Drafter(FakeScorer(), generator)))
    log = TakenOverLog()
    record = RunRecord(
        KEY, "ann", RunRequest(RunMode.QA, "When was the tower built?", ("default",)), RunStatus.RUNNING, AT
    )
    with pytest.raises(FencedOff):
        await modes.run(record, await Journal.open(KEY, log, now))
    payloads = [event.payload for event in log.events[KEY]]
    assert not [each for each in payloads if isinstance(each, Done) or (isinstance(each, Thinking) and each.degraded)]


async def test_step_that_waits_does_not_tear_off_the_steps_beside_it() -> None:
    run = await Run.begin(await Journal.open(KEY, MemoryLog(), now), RunStarted(RunMode.CHAT, "?"))
    parked = asyncio.Event()

    async def waits() -> None:
        parked.set()
        raise PARKED

    async def works() -> Thinking:
        await parked.wait()
        await asyncio.sleep(0)
        return Thinking("answer", "done")

    with pytest.raises(Parked):
        await run.all(waits(), run.once("work", works, Thinking))
    assert "work" in run.journal.progress.results


async def test_failure_beside_a_signal_gives_way_to_it() -> None:
    run = await Run.begin(await Journal.open(KEY, MemoryLog(), now), RunStarted(RunMode.CHAT, "?"))

    async def raises(error: BaseException) -> None:
        raise error

    with pytest.raises(FencedOff):
        await run.all(raises(ValueError("x")), raises(PARKED), raises(FENCED))
    with pytest.raises(ValueError, match="x"):
        await run.all(raises(ValueError("x")))
