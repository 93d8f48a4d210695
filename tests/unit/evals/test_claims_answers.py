"""Claims as answers: the scripted model that says and judges them."""

import json

import pytest

from evals.claims.answers import Endpoint
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
