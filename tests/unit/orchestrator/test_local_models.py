"""What was said where only local models were allowed is shown to no model outside later."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import RunMode, RunStatus, Thinking
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord, RunRequest, Turn
from services.orchestrator.modes.threads import Threads
from tests.unit.orchestrator.cutting import AT, KEY, now
from tests.unit.orchestrator.fakes import FakeMemory, FakeScorer, FakeSources, MemoryLog
from tests.unit.orchestrator.serving import document_modes, mode_services
from tests.unit.orchestrator.toolloop.scripting import ScriptedReplies

BOUND, FREE = "b" * 32, "f" * 32
HISTORY = (
    Turn("user", "What does the secret paper say?", BOUND),
    Turn("assistant", "The mine closes in May.", BOUND, RunStatus.COMPLETED),
    Turn("user", "Who built the bridge?", FREE),
    Turn("assistant", "Jack Lang built it.", FREE, RunStatus.COMPLETED),
)


async def asked(*, is_bound: bool) -> tuple[str, Sequence[str]]:
    """The prompt that the model gets, and the reasons of what the run does without."""

    async def record_of(key: RunKey) -> RunRecord:
        request = RunRequest(RunMode.QA, "?", ("default",))
        return RunRecord(key, "ann", request, RunStatus.COMPLETED, AT, local_models_only=key.run_id == BOUND)

    model, log, sources = (
        ScriptedReplies([""], forced=("The tower was built in 1889 [1].",)),
        MemoryLog(),
        FakeSources(),
    )
    services = mode_services(Drafter(FakeScorer(), Generator(model)), sources=sources)
    services = replace(services, threads=Threads(FakeMemory(HISTORY), sources, turns=8, runs=record_of))
    request = RunRequest(RunMode.QA, "When was the tower built?", ("default",), thread_id="0" * 12)
    record = RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT, local_models_only=is_bound)
    await document_modes(services).run(record, await Journal.open(KEY, log, now))
    prompt = "\n".join(message.content for request in model.requests for message in request.messages)
    events = [event.payload for event in log.events[KEY]]
    return prompt, [each.degraded.reason for each in events if isinstance(each, Thinking) and each.degraded]


@pytest.mark.parametrize("is_bound", [False, True])
async def test_turns_of_bound_runs_are_shown_to_bound_runs_alone(is_bound: bool) -> None:
    prompt, reasons = await asked(is_bound=is_bound)
    assert "Jack Lang" in prompt
    assert ("secret paper" in prompt, "mine closes" in prompt) == (is_bound, is_bound)
    assert ("LOCAL_MODELS_ONLY" in reasons) is not is_bound
