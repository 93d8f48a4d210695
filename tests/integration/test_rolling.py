"""Every service restarted in turn while people ask and upload: no request fails, nothing acknowledged is lost. The long version is
the part `rolling` of the benchmark."""

import asyncio
import re
from pathlib import Path

import pytest

from bench.rolling import run_command, used
from bench.traffic import Tally
from tests.integration.system import Groundwork, running

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

REPLICAS = "reranker=2,memory=2,tools=2,ingest=2,ingest-worker=2,orchestrator=2,gateway=2"
RESTARTED = re.compile(r"^  (\S+) +restarted in ", re.MULTILINE)


def restarted_under_traffic(system: Groundwork, *services: str) -> tuple[Tally, list[str]]:
    """What became of the requests, and the processes that were restarted meanwhile."""
    said: list[str] = []

    async def meanwhile(tally: Tally) -> None:
        said.append(await run_command(system.base_url, system.data_dir, "restart", *services))

    tally, lost = asyncio.run(used(system.base_url, f"rolling-{len(services)}", meanwhile))
    assert not tally.failures, tally.failures
    assert not lost, lost
    return tally, RESTARTED.findall(said[0])


def test_no_request_fails_while_every_service_is_restarted_in_turn(tmp_path: Path, models_dir: Path) -> None:
    with running(Groundwork(tmp_path / "data", models_dir.absolute(), replicas=REPLICAS)) as system:
        before = system.state()["services"]
        tally, restarted = restarted_under_traffic(system)
        after = system.state()["services"]
        assert restarted == [name for name in before if name != "nats"]
        assert {name for name in after if after[name]["pid"] == before[name]["pid"]} == {"nats"}
        assert not tally.degraded
        assert " died  " not in system.printed()


def test_callers_wait_for_a_service_that_runs_once(system: Groundwork) -> None:
    """Except for the model server, without which a search answers in a lesser way, and says so."""
    others = [name for name in system.state()["services"] if name not in {"nats", "reranker"}]
    _, restarted = restarted_under_traffic(system, *others)
    assert restarted == others
