"""Every service restarted in turn while people ask and upload: no request fails, nothing acknowledged is lost. The long version is
the part `rolling` of the benchmark."""

import asyncio
import re
from pathlib import Path

import pytest

from bench.operation.rolling import run_command, used
from bench.operation.traffic import Tally
from tests.integration.conftest import SEVERAL
from tests.integration.system import Groundwork, running

pytestmark = [pytest.mark.integration]

PATIENT = {
    "GROUNDWORK_CONNECTION_PATIENCE_S": "200",
    "GROUNDWORK_RUN_SEARCH_TIMEOUT_S": "200",
    "GROUNDWORK_RPC_TIMEOUT_S": "200",
    "GROUNDWORK_REATTACH_FOR_S": "200",
}
"""However long a restart takes on a busy machine: what is tested is that callers wait for it, not how fast it is."""
RESTARTED = re.compile(r"^  (\S+) +restarted in ", re.MULTILINE)


@pytest.mark.parametrize("replicas", [SEVERAL, ""], ids=["several of each", "one of each"])
def test_no_request_fails_while_every_service_is_restarted_in_turn(
    tmp_path: Path, models_dir: Path, replicas: str
) -> None:
    with running(Groundwork(tmp_path / "data", models_dir.absolute(), PATIENT, replicas)) as system:
        said: list[str] = []

        async def meanwhile(tally: Tally) -> None:
            said.append(await run_command(system.base_url, system.data_dir, "restart"))

        before = system.state()["services"]
        tally, lost = asyncio.run(used(system.base_url, "rolling", meanwhile))
        after = system.state()["services"]
        assert not tally.failures, tally.failures
        assert not lost, lost
        assert RESTARTED.findall(said[0]) == [name for name in before if name != "nats"]
        assert {name for name in after if after[name]["pid"] == before[name]["pid"]} == {"nats"}
        assert " died  " not in system.printed()
