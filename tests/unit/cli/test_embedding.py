"""`groundwork embedding` against the scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

from tests.unit.cli.conftest import FakeServer

Command = Callable[..., Result]
PATH = "/v1/collections/default/embedding"
ENGLISH, MULTILINGUAL = "all-MiniLM-L6-v2-int8", "multilingual-e5-small-q4-centred"


def state(stage: str = "settled", **more: Any) -> dict[str, Any]:
    amount = {"document_count": 2, "chunk_count": 7}
    other = None if stage == "settled" else MULTILINGUAL
    return {
        "collection_id": "default",
        "model": ENGLISH,
        "is_chosen": stage != "settled",
        "stage": stage,
        "other_model": other,
        "whole": amount,
        "in_model": amount,
        "in_other_model": {"document_count": 0, "chunk_count": 3},
        "searched": {ENGLISH: amount},
        "evaluation": None,
        "margin": 0.02,
        "problem": None,
        "began_at": None,
        "available_models": [ENGLISH, MULTILINGUAL],
        **more,
    }


def evaluation(**more: Any) -> dict[str, Any]:
    compared = {side: {"ndcg_at_10": 0.5 + n / 4, "mrr_at_10": 0.5} for n, side in enumerate(("before", "after"))}
    return {
        "before_model": ENGLISH,
        "after_model": MULTILINGUAL,
        "question_count": 3,
        "is_made": True,
        "vectors": compared,
        "both": compared,
        "evaluated_at": None,
        "worse": [],
        **more,
    }


def test_status_shows_the_model_and_those_that_there_are(server: FakeServer, groundwork: Command) -> None:
    server.on("GET", PATH, lambda http: http.json(state()))
    result = groundwork("embedding", "status")
    assert result.exit_code == 0
    assert f"searched with {ENGLISH}" in result.stdout
    assert MULTILINGUAL in result.stdout
    assert json.loads(groundwork("embedding", "status", "--json").stdout) == state()


def test_change_takes_a_part_of_the_name_waits_and_shows_the_figures(
    server: FakeServer, groundwork: Command, tmp_path: Path
) -> None:
    questions = [{"text": "Wann?", "document_ids": ["d1"]}]
    (tmp_path / "questions.json").write_text(json.dumps(questions), "utf-8")
    answers = iter([state(), state("building"), state("ready", evaluation=evaluation())])
    server.on("GET", PATH, lambda http: http.json(next(answers)))
    server.on("POST", PATH, lambda http: http.json(state("building"), 202))
    result = groundwork("embedding", "change", "multilingual", "--questions", str(tmp_path / "questions.json"))
    assert result.exit_code == 0, result.stderr
    body = json.loads(next(body for method, _, body in server.requests if method == "POST"))
    assert body == {"model": MULTILINGUAL, "questions": questions, "margin": 0.02}
    assert result.stdout.count("building:") == 1
    assert "3 of 7 passages" in result.stdout
    assert "0.750" in result.stdout
    assert "no worse than before" in result.stdout


def test_what_keeps_a_change_from_going_on_is_said(server: FakeServer, groundwork: Command) -> None:
    server.on("GET", PATH, lambda http: http.json(state("building", problem="the model server is away")))
    assert "the model server is away" in groundwork("embedding", "status").stdout


def test_commands_reach_the_server(server: FakeServer, groundwork: Command) -> None:
    worse = evaluation(worse=["nDCG@10 by vectors alone 0.5 against 0.9"])
    server.on("POST", f"{PATH}/swap", lambda http: http.json(state("swapped", evaluation=worse)))
    server.on("POST", f"{PATH}/rollback", lambda http: http.json(state("ready")))
    server.on("POST", f"{PATH}/evaluate", lambda http: http.json(state("evaluating"), 202))
    server.on("DELETE", PATH, lambda http: http.json(state("dropping"), 202))
    swapped = groundwork("embedding", "swap", "--force")
    assert "worse: nDCG@10 by vectors alone 0.5 against 0.9" in swapped.stdout
    assert json.loads(server.requests[-1][2]) == {"force": True}
    assert groundwork("embedding", "rollback").exit_code == 0
    assert groundwork("embedding", "evaluate", "--no-wait").exit_code == 0
    assert "dropping:" in groundwork("embedding", "drop").stdout


def test_file_that_holds_no_questions_is_refused(server: FakeServer, groundwork: Command, tmp_path: Path) -> None:
    server.on("GET", PATH, lambda http: http.json(state()))
    for text in ("{}", "no JSON"):
        (tmp_path / "questions.json").write_text(text, "utf-8")
        result = groundwork("embedding", "change", "multi", "--questions", str(tmp_path / "questions.json"))
        assert result.exit_code == 2


def test_refusal_is_said_as_the_server_words_it(server: FakeServer, groundwork: Command) -> None:
    server.on("POST", f"{PATH}/swap", lambda http: http.problem(412, "EMBEDDING_WORSE", "it finds less"))
    result = groundwork("embedding", "swap")
    assert result.exit_code != 0
    assert "it finds less" in result.stderr
