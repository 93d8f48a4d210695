"""The MCP server that the protocol's authors test clients with (npm), in chats of a whole system: it asks model and user."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.testing.openai import Reply
from tests.from_npm import installed
from tests.integration.api import Api, Event, Json, assert_complete, only
from tests.integration.conftest import UNHURRIED, Model, scripted
from tests.integration.scripting import calling, data_of, observations_in, rounds_in
from tests.integration.system import Groundwork, running, wait_until
from tests.integration.test_cli import groundwork

__all__ = ["scripted"]
pytestmark = [pytest.mark.integration]

SAMPLING, ELICITATION = "trigger-sampling-request", "trigger-elicitation-request"
TESTS = "You are a helpful test server."
"""What the server tells the model to be."""
SERVER = Path(__file__).with_name("everything_server")


@pytest.fixture(scope="module")
def everything() -> Path:
    folder = installed(SERVER)
    return folder / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, scripted: Model, everything: Path) -> Iterator[Api]:
    """Of a system whose operator lets the server ask, and whose administrator has approved its tools."""
    server = {
        "command": ["node", str(everything)],
        "read_only": [SAMPLING, ELICITATION, "get-sum"],
        "sampling_tokens": 100,
        "elicitation": True,
    }
    settings = {
        **UNHURRIED,
        "GROUNDWORK_LLM_BASE_URL": scripted.scripted.base_url,
        "GROUNDWORK_LLM_MODEL": "scripted",
        "GROUNDWORK_LLM_TOOL_CALLS": "native",
        "GROUNDWORK_VERIFY_JUDGE": "learned",
        "GROUNDWORK_MEMORY": "off",
        "GROUNDWORK_TOOLS_MCP_SERVERS": json.dumps({"everything": server}),
        "GROUNDWORK_TOOLS_MCP_LIST_EVERY_S": "30",
    }
    folder = tmp_path_factory.mktemp("everything")
    with running(Groundwork(folder / "data", models_dir.absolute(), settings)) as system:
        # The server has these tools only some time after it has said hello.
        wait_until(lambda: SAMPLING in groundwork(system.port, "tool-servers", "list").stdout, "all tools are listed")
        for tool in (SAMPLING, ELICITATION, "get-sum"):
            groundwork(system.port, "tool-servers", "approve", "everything", tool, "--yes")
        with Api.open(system.base_url) as api:
            yield api


def calls(tool: str, arguments: Json) -> Any:
    """A model that calls a tool, answers with what it is told, and writes a haiku for who asks for one."""

    def reply(request: Json) -> Reply:
        if TESTS in request["messages"][0]["content"]:
            return Reply(["The ferry is late."])
        return calling((f"everything__{tool}", arguments)) if rounds_in(request) == 0 else Reply(["Done."])

    return reply


def ended(api: Api, scripted: Model, run_id: str) -> tuple[list[Event], str]:
    """The events of a run, and what the model was told of the call."""
    events = api.replay(run_id)
    assert_complete(events)
    assert only(events, "answer").data["text"] == "Done."
    return events, observations_in(scripted.scripted.requests[-1])[-1]


def test_server_has_the_model_write_once_a_person_has_allowed_it(api: Api, scripted: Model) -> None:
    scripted.will_by_request(calls(SAMPLING, {"prompt": "Write a haiku.", "maxTokens": 50}))
    waiting = api.converse_json("Have the server ask for a haiku.", status=202)
    (approval,) = waiting["approvals"]
    asked = approval["arguments"]["asks_the_model"]
    assert (asked["system"], asked["max_tokens"]) == (TESTS, 50)
    assert "haiku" in asked["messages"][0]["text"]
    api.decide(approval, "allow")
    events, told = ended(api, scripted, waiting["run_id"])
    assert "The ferry is late." in told
    assert len(data_of(events, "approval")) == 2, "nobody is asked about the call itself, which changes nothing"


def test_what_a_person_denies_the_server_does_not_get(api: Api, scripted: Model) -> None:
    scripted.will_by_request(calls(SAMPLING, {"prompt": "Write a haiku."}))
    waiting = api.converse_json("Have the server ask for another haiku.", status=202)
    api.decide(waiting["approvals"][0], "deny")
    _, told = ended(api, scripted, waiting["run_id"])
    assert "was not given" in told
    assert not any(TESTS in json.dumps(each) for each in scripted.scripted.requests)


@pytest.mark.parametrize(("answer", "told"), [('{"name": "Ada", "integer": 7}', "Ada"), ("-", "declined")])
def test_server_asks_the_user_and_is_answered(api: Api, scripted: Model, answer: str, told: str) -> None:
    scripted.will_by_request(calls(ELICITATION, {}))
    waiting = api.converse_json("Have the server ask me for my name.", status=202)
    question = waiting["input"]["question"]
    assert "The server everything, which is not ours, asks" in question
    assert "name (string)" in question
    api.post(f"/v1/runs/{waiting['run_id']}/input", {"text": answer})
    events, heard = ended(api, scripted, waiting["run_id"])
    assert told in heard
    assert not data_of(events, "approval")


def test_tool_that_asks_nothing_is_called(api: Api, scripted: Model) -> None:
    scripted.will_by_request(calls("get-sum", {"a": 3, "b": 4}))
    list(api.converse("What is 3 plus 4?"))
    (told,) = observations_in(scripted.scripted.requests[-1])
    assert "7" in told
