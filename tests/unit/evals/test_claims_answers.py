"""Claims as answers: the scripted model that says and judges them."""

import json

import pytest

from evals.claims.__main__ import render_citations
from evals.claims.answers import Endpoint
from evals.claims.figures import CitationShares, Judged
from evals.claims.sets import LabelledClaim
from kit.testing.claims import SAY, ClaimsModel


def said(model: ClaimsModel, content: str) -> str:
    return "".join(str(piece) for piece in model.reply_to({"messages": [{"content": content}]}).pieces)


def test_model_says_what_it_is_asked_to_say() -> None:
    model = ClaimsModel({"It is high.": True})
    assert said(model, f"Sources:\n\n[1] …\n\nQuestion: {SAY}It is high.") == "It is high. [1]"


@pytest.mark.parametrize(
    ("statement", "verdict"),
    [
        ("It is high.", "supported"),
        ("It is low.", "contradicted"),
        ("it is low (part of: It is high.)", "supported"),
        ("Nobody has labelled this.", "contradicted"),
    ],
)
def test_model_judges_as_it_is_told(statement: str, verdict: str) -> None:
    model = ClaimsModel({"It is high.": True, "It is low.": False})
    asked = f"Passages:\n\n[2] (a.md)\nIt is high.\n\nQuestion: q\n\nStatements:\n1. {statement}"
    (judged,) = json.loads(said(model, asked))["verdicts"]
    assert (judged["statement"], judged["passage"], judged["verdict"]) == (1, 2, verdict)


def test_endpoint_is_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVAL_OPENAI_BASE_URL", raising=False)
    assert Endpoint.from_environment() is None
    monkeypatch.setenv("EVAL_OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("EVAL_OPENAI_MODEL", "m")
    assert Endpoint.from_environment() == Endpoint("http://127.0.0.1:1/v1", "m")


def test_report_has_the_mean_citation_shares_of_answers_with_true_and_with_false_claims() -> None:
    def judged(shares: CitationShares | None, *, is_true: bool) -> Judged:
        claim = LabelledClaim("It is high.", "It is high.", "tower", is_true, "plain")
        return Judged(claim, 1.0, True, shares)

    answers = [judged(CitationShares(1.0, 0.5, 1.0), is_true=True), judged(CitationShares(0.0, 0.5, 1.0), is_true=True)]
    report = render_citations({"written": [*answers, judged(None, is_true=False)]})
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in report.splitlines() if "written" in line]
    assert rows == [["written", "true", "2", "0.500", "0.500", "1.000"], ["written", "false", "0", "–", "–", "–"]]
