"""`python -m evals` as a user calls it: what it prints, writes and returns."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytrec_eval

from cli.client.gateway import Gateway
from evals.__main__ import main
from evals.datasets.loading import OWN_COLLECTION, load_collection
from evals.errors import EvaluationError
from evals.retrieval.gate import Threshold, misses, parse_threshold
from evals.retrieval.modes import parse_mode
from tests.unit.evals.fake_api import URL, FakeApi


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    """The system under test, at the address that GROUNDWORK_URL names."""
    api = FakeApi()

    @asynccontextmanager
    async def open_fake(url: str) -> AsyncIterator[Gateway]:
        assert url == URL
        async with api.gateway() as gateway:
            yield gateway

    monkeypatch.setenv("GROUNDWORK_URL", URL)
    monkeypatch.setattr(Gateway, "open", open_fake)
    return api


def test_prints_one_table_of_all_modes_and_the_facets(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--queries", "8", "--no-recall"]) == 0
    page = capsys.readouterr().out
    for words in ("convex + rerank", "By category", "By language", "Differences in ndcg@10 from default", "p, Holm"):
        assert words in page
    assert not api.collections  # removed afterwards


def test_report_folder_holds_page_plots_figures_and_rankings(api: FakeApi, tmp_path: Path) -> None:
    assert (
        main(["--queries", "8", "--modes", "default", 'wide={"strategy": "hybrid"}', "--report", str(tmp_path / "r")])
        == 0
    )
    files = {each.name for each in (tmp_path / "r").iterdir()}
    assert {"report.md", "results.json", "runs", "modes.svg", "quality-and-latency.svg", "by-category.svg"} <= files
    page = (tmp_path / "r" / "report.md").read_text()
    assert "![modes](modes.svg)" in page
    figures = json.loads((tmp_path / "r" / "results.json").read_text())
    assert set(figures["modes"]) == {"default", "wide"}
    # Other tools read the rankings, and come to the same figure.
    run = pytrec_eval.parse_run((tmp_path / "r" / "runs" / "default.trec").read_text().splitlines())
    qrels = load_collection(OWN_COLLECTION).qrels
    scored = pytrec_eval.RelevanceEvaluator({each: dict(qrels[each]) for each in run}, {"recall.100"}).evaluate(run)
    mean = sum(each["recall_100"] for each in scored.values()) / len(figures["modes"]["default"]["queries"])
    assert mean == pytest.approx(figures["modes"]["default"]["means"]["recall@100"])


def test_missed_threshold_is_exit_code_one(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--queries", "8", "--modes", "default", "--no-recall"]
    assert main([*arguments, "--fail-under", "ndcg@10=0.0"]) == 0
    assert main([*arguments, "--fail-under", "default:ndcg@10=1.0"]) == 1
    assert "FAILED: ndcg@10 of mode 'default' is 0." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--collection", "/nowhere"], "there is no test collection"),
        (["--modes", "densest"], "there is no mode 'densest'"),
        (["--fail-under", "ndgc@10=0.5"], "is not [MODE:]METRIC=VALUE"),
        (["--modes", "rrf", "--reference", "default"], "--reference 'default' is not one of"),
    ],
)
def test_what_cannot_be_measured_is_exit_code_two(
    api: FakeApi, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_failed_documents_are_exit_code_two(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.failing = frozenset({"en-bats.md"})
    assert main(["--queries", "2", "--modes", "default"]) == 2
    assert "en-bats.md: EMPTY" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["x={", "x=3", "={}", "no such mode"])
def test_wrong_mode_is_refused(text: str) -> None:
    with pytest.raises(EvaluationError):
        parse_mode(text)


def test_mode_takes_any_option_of_the_api() -> None:
    assert parse_mode('mine={"fusion": "convex", "top_k": 50}').options == {"fusion": "convex", "top_k": 50}
    assert parse_mode("lexical + rerank").reranks


def test_threshold_forms() -> None:
    assert parse_threshold("ndcg@10=0.73") == Threshold("default", "ndcg@10", 0.73)
    assert parse_threshold("rrf + rerank:recall@100=1") == Threshold("rrf + rerank", "recall@100", 1.0)
    for text in ("ndcg@10", "ndcg@10=2", "precision@5=0.1"):
        with pytest.raises(EvaluationError):
            parse_threshold(text)


def test_what_was_not_measured_does_not_pass_the_gate() -> None:
    assert misses([parse_threshold("dense:ndcg@10=0.1")], {}) == [
        "ndcg@10 of mode 'dense' was not measured, so it is not known to reach 0.1"
    ]
