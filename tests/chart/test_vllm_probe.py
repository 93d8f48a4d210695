"""The readiness probe of vLLM: a real completion, or seen progress, over real HTTP. Against vLLM itself: tests/cluster."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from aiohttp import web

from scripts.helm import CHART
from tests.doubles.http_double import HttpDouble, Recorded

PROBE = CHART / "files" / "vllm_ready.py"


class Vllm(HttpDouble):
    """Completes at once, or leaves completions waiting; `tokens` are counted up at each look, by `working`."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = False
        self.working = 0
        self.tokens = 100
        self.status = 200
        self.choices = [{"text": "1"}]

    async def respond(self, request: Recorded) -> web.Response:
        if request.path == "/metrics":
            self.tokens += self.working
            lines = [
                "# TYPE vllm:generation_tokens_total counter",
                f'vllm:generation_tokens_total{{model="m"}} {self.tokens}.0',
            ]
            return self.answer(200, "\n".join([*lines, 'vllm:num_requests_running{model="m"} 7.0', ""]))
        if self.hangs:
            await asyncio.Event().wait()
        return self.answer(self.status, {"choices": self.choices, "message": "no such model"})


@dataclass(frozen=True)
class Ended:
    code: int
    said: str


@pytest.fixture
async def vllm() -> AsyncIterator[Vllm]:
    double = Vllm()
    async with double.running():
        yield double


async def probe(url: str, timeout_s: float = 30.0) -> Ended:
    """As the kubelet runs it, in a process of its own."""
    environment = {**os.environ, "READY_URL": url, "READY_MODEL": "m", "READY_TIMEOUT_S": str(timeout_s)}
    process = await asyncio.create_subprocess_exec(sys.executable, str(PROBE), stderr=-1, env=environment)
    _, said = await process.communicate()
    return Ended(process.returncode or 0, said.decode())


async def test_a_completion_is_ready(vllm: Vllm) -> None:
    assert await probe(vllm.url) == Ended(0, "")
    (asked,) = vllm.asked("POST", "/v1/completions")
    assert (asked.body["model"], asked.body["max_tokens"]) == ("m", 1)


async def test_a_server_that_hangs_is_not_ready_though_its_processes_live(vllm: Vllm) -> None:
    vllm.hangs = True
    ended = await probe(vllm.url, timeout_s=0.2)
    assert ended.code == 1
    assert "completed nothing within 0.2 s" in ended.said


async def test_a_server_that_works_through_others_prompts_is_ready(vllm: Vllm) -> None:
    vllm.hangs, vllm.working = True, 50
    assert (await probe(vllm.url, timeout_s=0.2)).code == 0


@pytest.mark.parametrize(("status", "choices", "said"), [(404, [], "answered 404"), (200, [], "no completion")])
async def test_an_answer_without_a_completion_is_not_ready(
    vllm: Vllm, status: int, choices: list[dict[str, str]], said: str
) -> None:
    vllm.status, vllm.choices = status, choices
    ended = await probe(vllm.url)
    assert (ended.code, said in ended.said) == (1, True), ended


async def test_a_server_that_is_away_is_not_ready(vllm: Vllm) -> None:
    ended = await probe("http://127.0.0.1:9")
    assert ended.code == 1
    assert "Traceback" not in ended.said
