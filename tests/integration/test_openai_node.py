"""OpenAI's API of a running system with a scripted model, by the official client for Node. The programs are in `openai_node`."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.testing.openai import Reply
from tests.from_npm import installed
from tests.integration.api import Json
from tests.integration.conftest import Model
from tests.integration.system import Groundwork
from tests.integration.test_openai_functions import ANSWER, CALL, model

__all__ = ["model"]
pytestmark = pytest.mark.integration

Node = Callable[[str], Json]


@pytest.fixture(scope="module")
def node(model_system: Groundwork, model: str) -> Node:
    """Runs a program, and returns what it printed."""
    folder = installed(Path(__file__).with_name("openai_node"))

    def run(scenario: str) -> Json:
        done = subprocess.run(
            ["node", "scenarios.js", scenario, f"{model_system.base_url}/v1", model],
            cwd=folder,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed: Json = json.loads(done.stdout)
        return printed

    return run


def test_completion_is_cited(node: Node, scripted: Model) -> None:
    scripted.will(Reply(ANSWER))
    said = node("chat")
    assert (said["content"], said["finish_reason"], said["cited"]) == ("".join(ANSWER), "stop", ["[1]"])
    assert {"groundwork", "groundwork/research"} <= set(said["models"])


def test_stream_adds_up(node: Node, scripted: Model) -> None:
    scripted.will(Reply(ANSWER))
    said = node("stream")
    assert len(said["pieces"]) > 1
    assert "".join(said["pieces"]) == said["content"] == "".join(ANSWER)
    assert said["usage"]["total_tokens"] > 0


def test_client_calls_its_functions_until_there_is_an_answer(node: Node, scripted: Model) -> None:
    scripted.will(CALL, Reply(ANSWER))
    assert node("tools") == {"content": "".join(ANSWER), "cities": ["Emden"]}


def test_answer_follows_the_schema_of_the_client(node: Node, scripted: Model) -> None:
    scripted.will(Reply(['{"days": 28, "who": "Every employee has leave [1]."}']))
    leave = {"days": 28, "who": "Every employee has leave."}
    assert node("structured") == {"completion": leave, "response": leave}


def test_files_are_searched_in_a_vector_store(node: Node) -> None:
    done = node("files")
    assert done["status"] == ["completed", "completed"]
    assert done["names"] == done["uploaded"]
    assert done["found"][0] == done["uploaded"][0]
    assert done["content"] == "The lighthouse of Falkensand was switched off in 1987."
    assert (done["deleted"], done["missing"]) == ([True, True], True)


def test_responses_go_on_and_are_deleted(node: Node, scripted: Model) -> None:
    scripted.will(CALL, Reply(ANSWER), Reply(["Nothing else [1]."]))
    done = node("responses")
    assert (done["call"][0], json.loads(done["call"][1])) == ("weather", {"city": "Emden"})
    assert done["second"] == done["kept"] == "".join(ANSWER)
    assert done["streamed"] == done["third"]
    assert done["third"].startswith("Nothing else")
    assert done["missing"] is True


def test_refusal_is_an_error_that_the_client_knows(node: Node) -> None:
    error = node("refused")
    assert (error["status"], error["code"], error["type"]) == (404, "model_not_found", "not_found_error")
    assert "GET /v1/models" in error["message"]
