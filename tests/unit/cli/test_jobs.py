"""`groundwork jobs` against the scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

from tests.unit.cli.conftest import FakeServer

Command = Callable[..., Result]


def letter(id_: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "document_id": "d1",
        "collection_id": "default",
        "document_name": "handbook.pdf",
        "reason": "WORKER_DIED",
        "message": "reading this file ended the worker 5 times",
        "stage": "embed",
        "failures": 0,
        "deaths": 5,
        "last_failed_at": "2026-01-31T12:02:00.000Z",
        **more,
    }


def test_overview_says_what_waits_and_what_was_given_up(server: FakeServer, groundwork: Command) -> None:
    counts = {
        "queued_count": 12,
        "processing_count": 8,
        "dead_letter_count": 1,
        "oldest_queued_at": "2026-01-31T12:00:00.000Z",
    }
    server.on("GET", "/v1/jobs", lambda http: http.json(counts))
    result = groundwork("jobs")
    assert result.exit_code == 0
    assert "12" in result.stdout
    assert "the oldest since 2026-01-31T12:00:00.000Z" in result.stdout
    assert json.loads(groundwork("jobs", "--json").stdout) == counts


def test_dead_lists_every_page_with_reason_and_document(server: FakeServer, groundwork: Command) -> None:
    pages = {"": ([letter("l1")], "more"), "more": ([letter("l2", reason="INTERNAL", failures=5, deaths=0)], None)}

    def answer(http: Any) -> None:
        token = http.path.rpartition("page_token=")[2]
        letters, following = pages[token]
        http.json({"dead_letters": letters, "next_page_token": following})

    server.on("GET", "/v1/jobs/dead", answer)
    result = groundwork("jobs", "dead", "--reason", "X", "-c", "default")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["id", "l1", "l2"]
    assert "default/handbook.pdf" in result.stdout
    assert "ended the worker 5 times" in result.stdout
    assert "collection_id=default&reason=X" in server.asked("GET")[0]


def test_requeue_of_one_says_what_became_of_it(server: FakeServer, groundwork: Command) -> None:
    server.on(
        "POST", "/v1/jobs/dead/l1/requeue", lambda http: http.json({"outcome": "requeued", "document": None}, 202)
    )
    server.on("POST", "/v1/jobs/dead/l2/requeue", lambda http: http.json({"outcome": "superseded", "document": None}))
    both = groundwork("jobs", "requeue", "l1", "l2")
    assert both.exit_code == 0
    assert both.stdout.splitlines()[0] == "l1 queued again"
    assert "read again since" in both.stdout
    assert groundwork("jobs", "requeue", "l2").exit_code == 1
    unknown = groundwork("jobs", "requeue", "l3")
    assert (unknown.exit_code, "ROUTE_NOT_FOUND" in unknown.stderr) == (1, True)


def test_requeue_of_all_asks_until_nothing_remains(server: FakeServer, groundwork: Command) -> None:
    remaining = [500, 0]

    def answer(http: Any) -> None:
        http.json({"requeued_count": 500, "dropped_count": 1, "remaining_count": remaining.pop(0)}, 202)

    server.on("POST", "/v1/jobs/dead/requeue", answer)
    result = groundwork("jobs", "requeue", "--all", "--reason", "WORKER_DIED")
    assert (result.exit_code, result.stdout.strip()) == (0, "1000 queued again, 2 no longer needed")
    assert json.loads(server.requests[0][2]) == {"collection_id": "", "reason": "WORKER_DIED"}


def test_requeue_of_nothing_or_of_both_is_refused(server: FakeServer, groundwork: Command) -> None:
    for arguments in ([], ["l1", "--all"], ["l1", "--reason", "X"]):
        result = groundwork("jobs", "requeue", *arguments)
        assert (result.exit_code, "either ids or --all" in result.stderr) == (2, True)
