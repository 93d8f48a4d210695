"""Orchestrator killed with SIGKILL while questions are researched: every run goes on where it was, and each step is recorded once.

The moments are random with a fixed seed; what is in hand at each moment is not, so every run of this test tries others.
"""

import json
import random
import time
from collections import Counter

import pytest

from kit.testing.openai import Reply
from tests.integration.api import Api, Json, assert_complete, only
from tests.integration.conftest import Model
from tests.integration.scripting import data_of
from tests.integration.system import Groundwork
from tests.system.shared.test_kill import kill
from tests.system.shared.test_kill_chat import begun, to_its_end

pytestmark = [pytest.mark.integration, pytest.mark.kill]

KILLS = 3
RUNS_A_KILL = 3
QUESTION = "How long is the notice period during probation, and how many days of leave are there? (run {})"
PLAN = json.dumps({
    "queries": ["notice period probation", "days of leave"],
    "calls": [{"tool": "search", "arguments": {"queries": ["leave"]}}],
})  # fmt: skip
ANSWER = ("During probation ", "the notice period ", "is two weeks [1].")


def plans_and_answers(request: Json) -> Reply:
    """Plans where an object is asked for that has queries, and answers everything else."""
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return Reply([PLAN]) if "queries" in schema.get("properties", {}) else Reply(ANSWER, pause_s=0.05)


def test_killed_while_it_is_researched_every_question_is_answered_and_each_step_recorded_once(
    model_system: Groundwork, model_api: Api, handbook: str, scripted: Model
) -> None:
    rng = random.Random(20261127)
    scripted.will_by_request(plans_and_answers)
    runs: dict[str, str] = {}
    for round_ in range(KILLS):
        for number in range(round_ * RUNS_A_KILL, (round_ + 1) * RUNS_A_KILL):
            effort = ("low", "medium", "high")[number % 3]
            body = {"effort": effort, "tools": ["search"], "collection_ids": [handbook]}
            key = f"{handbook}-research-{number}"
            runs[key] = begun(model_api, "/v1/agent", {"question": QUESTION.format(number), **body}, key)
        time.sleep(rng.uniform(0.0, 0.8))
        model_system.wait_until_up("orchestrator", not_pid=kill(model_system, "orchestrator"))
    ended = [to_its_end(model_api, run_id) for run_id in runs.values()]

    for events in ended:
        assert_complete(events)
        assert events[-1].data["status"] == "completed", events[-3:]
        answer = only(events, "answer").data
        assert "two weeks" in answer["text"]
        assert {each["document_name"] for each in answer["citations"]} == {"handbook.md"}
        steps = Counter((each.kind, each.data["step"]) for each in events if each.data["step"])
        once = {kind: {count for (each, _), count in steps.items() if each == kind} for kind, _ in steps}
        assert all(once[kind] == {1} for kind in ("plan", "retrieval", "coverage")), steps
        calls = [each["call_id"].removesuffix("/again") for each in data_of(events, "tool")]
        assert len(set(calls)) == 1, calls
