"""`groundwork models` against a small scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

from tests.unit.cli.conftest import FakeServer

Command = Callable[..., Result]
QWEN, MINI = {"provider": "gpu", "model": "Qwen/Qwen3"}, {"provider": "openai", "model": "mini"}


def operation(*chain: dict[str, str], set_by: str = "") -> dict[str, Any]:
    at = "2026-01-01T00:00:00.000Z" if set_by else None
    return {"operation": "answer", "chain": list(chain), "set": bool(set_by), "set_by": set_by, "set_at": at}


def test_the_overview_shows_operations_and_providers(server: FakeServer, groundwork: Command) -> None:
    providers = [
        {"name": "gpu", "preset": "vllm", "models": ["Qwen/Qwen3"], "any_model": True, "state": "half_open"},
        {"name": "openai", "preset": "openai", "models": ["mini"], "any_model": False, "state": "closed"},
        {"name": "away", "preset": "", "models": [], "any_model": True, "state": "closed", "problem": "nobody listens"},
    ]
    found = {"operations": [operation(MINI, QWEN, set_by="olga")], "providers": providers}
    server.on("GET", "/v1/models", lambda http: http.json(found))
    result = groundwork("models").stdout
    shown = [line.split() for line in result.splitlines()]
    assert shown[:4] == [
        ["operation", "model", "then", "set", "by"],
        ["answer", "openai/mini", "gpu/Qwen/Qwen3", "olga", "at", "2026-01-01T00:00:00.000Z"],
        [],
        ["provider", "state", "models"],
    ]
    states = {line[0]: " ".join(line[1:]) for line in shown[4:]}
    assert states["gpu"].startswith("did not answer; the next request tries again")
    assert states["openai"] == "answers mini"
    assert states["away"] == "does not answer: nobody listens any other by name"
    assert json.loads(groundwork("models", "--json").stdout) == found


def test_without_a_model_it_says_what_that_means(server: FakeServer, groundwork: Command) -> None:
    server.on("GET", "/v1/models", lambda http: http.json({"operations": [], "providers": []}))
    assert "answers quote the documents" in groundwork("models").stdout


def test_a_model_is_set_and_reset(server: FakeServer, groundwork: Command) -> None:
    server.on("PUT", "/v1/models/answer", lambda http: http.json(operation(QWEN, MINI, set_by="olga")))
    server.on("DELETE", "/v1/models/answer", lambda http: http.json(operation(MINI)))
    done = groundwork("models", "set", "answer", "gpu/Qwen/Qwen3", "--force")
    assert (done.exit_code, done.stdout) == (0, "answer asks gpu/Qwen/Qwen3, then openai/mini\n")
    assert json.loads(server.requests[0][2]) == {"provider": "gpu", "model": "Qwen/Qwen3", "force": True}
    assert groundwork("models", "reset", "answer").stdout == "answer asks openai/mini\n"


def test_a_refusal_is_told_and_a_name_without_a_provider_is_not_asked(server: FakeServer, groundwork: Command) -> None:
    told = "there is no provider 'z'; there are gpu"
    server.on("PUT", "/v1/models/answer", lambda http: http.problem(400, "UNKNOWN_MODEL", told))
    refused = groundwork("models", "set", "answer", "z/m")
    assert (refused.exit_code, refused.stderr) == (2, f"{told} (UNKNOWN_MODEL)\n")
    assert groundwork("models", "set", "answer", "mini").exit_code == 2
    assert len(server.requests) == 1
