"""Forgetting when the orchestrator is killed meanwhile: what quotes a deleted document is still gone within a minute."""

import pytest

from tests.integration.api import Api
from tests.integration.system import Groundwork, wait_until
from tests.integration.test_forgetting import QUESTION, TEXT, is_forgotten, run_of, stored
from tests.system.shared.test_kill import kill

pytestmark = [pytest.mark.integration, pytest.mark.kill]

WITHIN_S = 60.0
"""What is promised (docs/security.md), however slow the machine."""


def test_forgetting_survives_the_death_of_the_orchestrator(model_system: Groundwork, model_api: Api) -> None:
    collection = model_api.new_collection()
    document = model_api.ingest(collection, "lighthouse.txt", TEXT.encode())
    runs = [run_of(list(model_api.ask(collection, QUESTION))) for _ in range(5)]
    assert model_api.http.delete(f"/v1/documents/{document['id']}").status_code == 204
    model_system.wait_until_up("orchestrator", not_pid=kill(model_system, "orchestrator"))
    for run_id in runs:
        wait_until(lambda run_id=run_id: is_forgotten(model_api, run_id), "the run is forgotten", timeout_s=WITHIN_S)
    assert stored(model_system) == []
