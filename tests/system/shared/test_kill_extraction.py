"""Orchestrator killed with SIGKILL while fields are read out of two hundred documents: no document is read twice, and none is left
out."""

import concurrent.futures
import contextlib
import json
from collections import Counter

import pytest

from kit.testing.openai import Reply
from tests.integration.api import Api, Json, assert_complete
from tests.integration.conftest import Model
from tests.integration.system import Groundwork
from tests.system.shared.test_kill import kill
from tests.system.shared.test_kill_chat import begun, to_its_end

pytestmark = [pytest.mark.integration, pytest.mark.kill]

INVOICES = 200
KILLED_AT = (40, 110)
FIELDS = {"type": "object", "properties": {"invoice number": {"type": "string"}, "total": {"type": "number"}}}


def invoice(number: int) -> bytes:
    return f"Invoice number: R-{number:04}\nCustomer: Umbrella Ltd\nTotal: {number * 10}.50 EUR\n".encode()


def leaves_all_to_rules(request: Json) -> Reply:
    """Says of each field that no source has it."""
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return Reply(
        [json.dumps({name: {"value": None, "source": None} for name in schema.get("properties", {})})], pause_s=0.02
    )


def await_text(api: Api, run_id: str, text: str) -> None:
    """Reads the run's events until one has the text."""
    seen = 0
    while True:
        with contextlib.closing(api.events("GET", f"/v1/runs/{run_id}/events?after={seen}")) as events:
            for each in events:
                if text in str(each.data.get("text", "")):
                    return
                assert each.kind != "done", "it ended too soon"
                seen = each.seq or seen


def test_killed_while_it_extracts_it_reads_each_of_two_hundred_documents_once(
    model_system: Groundwork, model_api: Api, scripted: Model
) -> None:
    collection = model_api.new_collection()

    def ingest(number: int) -> None:
        with Api.open(model_system.base_url) as api:
            api.ingest(collection, f"invoice-{number:04}.txt", invoice(number))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ingest, range(1, INVOICES + 1)))
    scripted.will_by_request(leaves_all_to_rules)
    run_id = begun(model_api, f"/v1/collections/{collection}/extract", {"schema": FIELDS}, f"{collection}-extract")
    for number in KILLED_AT:
        await_text(model_api, run_id, f"({number} of {INVOICES})")
        model_system.wait_until_up("orchestrator", not_pid=kill(model_system, "orchestrator"))
    events = to_its_end(model_api, run_id)

    assert_complete(events)
    read = [each.data["text"] for each in events if each.kind == "thinking" and f"of {INVOICES})" in each.data["text"]]
    assert (len(read), set(Counter(read).values())) == (INVOICES, {1})
    (answer,) = [each.data for each in events if each.kind == "answer"]
    rows = [row for each in answer["artefacts"] for row in each["body"]["rows"]]
    assert sorted(rows) == [
        [f"invoice-{number:04}.txt", f"R-{number:04}", number * 10 + 0.5] for number in range(1, INVOICES + 1)
    ]
    cited = sum(len(each["items"]) for each in answer["artefacts"])
    assert cited == 2 * INVOICES
