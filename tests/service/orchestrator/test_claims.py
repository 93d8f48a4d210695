"""Claims through a running orchestrator whose models are scripted: the answer says the claim, and the judge is right. What is then
wrong is our own handling."""

import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from kit.llm.models import open_models
from kit.llm.opening import endpoint_opener
from kit.llm.providers import make_catalog, parse_providers
from kit.network.egress import EgressGuard
from kit.testing.claims import SAY, ClaimsModel
from kit.testing.openai import Reply, scripted_model
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import Answer, ClaimChecked, Evidence, Retrieval, RunMode
from services.orchestrator.models import RunRequest
from services.orchestrator.modes.serving import discover_modes
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.usage import Metered
from services.orchestrator.verification.judges import WordJudge
from services.orchestrator.verification.model_judge import ModelJudge
from services.orchestrator.verification.verdicts import Verdict
from tests.service.orchestrator.conftest import ANN, collect
from tests.unit.orchestrator.fakes import FakeScorer, FakeSearcher
from tests.unit.orchestrator.serving import mode_services

OWN = Path(__file__).parents[2] / "data" / "claims.jsonl"
WRITTEN = Path("../shared/data/claims_written/claims.jsonl")
MOST_PASSED, MOST_LOST = 0.02, 0.05

Start = Callable[..., Any]
Row = dict[str, Any]


@pytest.fixture(params=[OWN, WRITTEN], ids=["own", "written"])
def rows(request: pytest.FixtureRequest) -> list[Row]:
    path: Path = request.param
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def test_claims_become_what_a_judge_that_is_right_says(start_orchestrator: Start, rows: list[Row]) -> None:
    wrong: dict[str, list[str]] = {"passed": [], "lost": []}
    async with AsyncExitStack() as stack:
        model = ClaimsModel({row["claim"]: row["label"] == "supported" for row in rows})
        server = await stack.enter_async_context(scripted_model(Reply()))
        server.reply_to = model.reply_to
        providers = {"local": {"base_url": server.base_url, "models": {"m": {"context_tokens": 16_384}}, "retries": 0}}
        opener = endpoint_opener(EgressGuard(), stall_timeout_s=60.0, completion_timeout_s=60.0)
        models = open_models(make_catalog(parse_providers(json.dumps(providers))), opener)
        metered = Metered(await stack.enter_async_context(models))
        searcher = FakeSearcher()
        services = mode_services(
            Drafter(FakeScorer(), Generator(metered)),
            model=metered,
            searcher=searcher,
            judges=[ModelJudge(metered), WordJudge()],
        )
        orchestrator = await start_orchestrator(worker=discover_modes(services, OrchestratorSettings()))
        for row in rows:
            searcher.retrieval = Retrieval((_evidence(row),), strategy="hybrid")
            is_kept = await _is_kept(orchestrator, row["claim"])
            if is_kept != (row["label"] == "supported"):
                wrong["passed" if is_kept else "lost"].append(row["claim"])
    true = sum(row["label"] == "supported" for row in rows)
    assert len(wrong["passed"]) <= MOST_PASSED * (len(rows) - true), wrong["passed"]
    assert len(wrong["lost"]) <= MOST_LOST * true, wrong["lost"]


def _evidence(row: Row) -> Evidence:
    return Evidence(1, "c1", "d1", row["document_name"], row["passage"], heading_path=tuple(row["heading_path"]))


async def _is_kept(orchestrator: Any, claim: str) -> bool:
    """Whether the answer shows the claim as supported, and the stream has said so too."""
    _, stream = await orchestrator.runs.start(ANN, RunRequest(RunMode.QA, f"{SAY}{claim}", ("default",)))
    payloads = [event.payload for event in await collect(stream)]
    (answer,) = [each for each in payloads if isinstance(each, Answer)]
    streamed = {each.index: each.verdict.verdict for each in payloads if isinstance(each, ClaimChecked)}
    if answer.method != "model" or answer.verification is None:
        return False
    said = [each for each in answer.verification.sentences if each.verdict != Verdict.NO_CLAIM]
    assert [each.verdict for each in said] == [streamed[index] for index in sorted(streamed)]
    assert all(answer.text[each.start : each.end] for each in said)
    return bool(said) and all(each.verdict == Verdict.SUPPORTED for each in said)
