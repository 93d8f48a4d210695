"""Measuring judges of claims: the sets, the figures, the report."""

import gzip
import json
from pathlib import Path

import pytest

from evals.claims.__main__ import main, misses, render, render_rules
from evals.claims.figures import Judged, calibration_error, figures, without_rules
from evals.claims.judges import judge_by_words
from evals.claims.sets import LabelledClaim, is_fitted_on, load_sets
from evals.claims.written import read_written
from evals.errors import EvaluationError
from scripts.judge.cases import WRITTEN


def claim(text: str, *, is_true: bool, kind: str = "kind", language: str = "en") -> LabelledClaim:
    return LabelledClaim(text, "The lid opens at noon.", "Manual", is_true, kind, language)


def test_false_claims_that_pass_and_true_ones_that_fail_are_shares_of_their_own() -> None:
    said = [(True, 0.9), (True, 0.2), (False, 0.8), (False, 0.1), (False, 0.3), (False, 0.4)]
    found = figures([Judged(claim("It.", is_true=true), share, share >= 0.5) for true, share in said])
    assert (found.false_that_pass, found.true_that_fail) == (0.25, 0.5)
    assert found.balanced_accuracy == pytest.approx(0.625)


def test_shares_of_nothing_are_left_out() -> None:
    found = figures([Judged(claim("It.", is_true=True), 1.0, True)])
    assert (found.false_that_pass, found.true_that_fail, found.balanced_accuracy) == (None, 0.0, None)


def test_calibration_error_is_the_distance_between_said_and_true() -> None:
    judged = [Judged(claim("It.", is_true=true), 0.75, True) for true in (True, True, True, False)]
    assert calibration_error(judged) == pytest.approx(0.0)
    assert calibration_error(judged[:3]) == pytest.approx(0.25)


def test_word_judge_is_asked_as_the_product_asks_it() -> None:
    near, far = judge_by_words(
        [claim("The lid opens at noon.", is_true=True), claim("Bananas are yellow.", is_true=False)]
    )
    assert (near.is_supported, near.probability, far.is_supported) == (True, 1.0, False)


def test_sets_are_read_with_their_labels(tmp_path: Path) -> None:
    row = {
        "passage": "It opens.",
        "document_name": "Manual",
        "heading_path": ["Care"],
        "language": "en",
        "claim": "Es öffnet.",
    }
    label = {"claim_language": "de", "label": "supported", "kind": "cross_language"}
    (tmp_path / "claims_written").mkdir()
    (tmp_path / "claims_written/claims.jsonl").write_text(json.dumps(row | label) + "\n", "utf-8")
    (only,) = load_sets(tmp_path, ["written"])["written"]
    assert only == LabelledClaim("Es öffnet.", "It opens.", "Manual Care", True, "cross_language", "en>de")


def test_fresh_claims_are_here_and_as_many_are_true_as_false(tmp_path: Path) -> None:
    found = load_sets(tmp_path, [])
    assert list(found) == ["fresh"]
    passages = {each.passage: [0, 0] for each in found["fresh"]}
    for each in found["fresh"]:
        passages[each.passage][each.is_true] += 1
    assert all(false == true > 0 for false, true in passages.values())
    assert not {each.text for each in read_written(WRITTEN)} & set(passages)


def test_right_and_wrong_answers_to_disputed_questions_are_claims_about_the_right_passage(tmp_path: Path) -> None:
    asked = {"query": "When?", "positive": ["It was found.", "It was found on 1 May 2020."], "fakeanswer": "2 May 2020"}
    rows = [asked | {"answer": [["May 1, 2020", "1 May 2020"]]}, asked | {"answer": "never"}]
    (tmp_path / "qa_rgb_conflict").mkdir()
    (tmp_path / "qa_rgb_conflict/en_fact.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    right, wrong = load_sets(tmp_path, ["rgb"])["rgb"]
    assert (right.text, right.is_true, right.passage) == ("1 May 2020", True, "It was found on 1 May 2020.")
    assert (wrong.text, wrong.is_true, wrong.question) == ("2 May 2020", False, "When?")


def test_half_of_halueval_that_judges_are_fitted_on_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "halluc_halueval"
    folder.mkdir()
    texts = [f"Fact {number}." for number in range(20)]
    rows = [
        {"knowledge": text, "question": f"What of {text}?", "right_answer": "a", "hallucinated_answer": "b"}
        for text in texts
    ]
    for name in ("qa_one-turn_data", "qa_multi-turn_data"):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    found = load_sets(tmp_path, ["halueval"])["halueval"]
    assert {each.passage for each in found} == {text for text in texts if not is_fitted_on(text)}


def test_missing_sets_and_wrong_names_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(tmp_path), "--sets", "written", "sick"]) == 2
    assert "--data" in capsys.readouterr().err
    with pytest.raises(EvaluationError, match="choose from fresh"):
        load_sets(tmp_path, ["spoken"])


def test_report_breaks_a_set_down_by_kind_and_language() -> None:
    judged = [
        Judged(claim("It.", is_true=True, kind="verbatim"), 0.9, True),
        Judged(claim("No.", is_true=False, kind="negation", language="de"), 0.7, True),
    ]
    text = render({"words": {"written": judged}}, [0.02, 0.03, 0.04])
    assert "negation (false)" in text
    assert "## written, by language" in text
    assert "30 ms" in text


def test_sets_under_their_threshold_are_named_and_so_are_those_that_were_not_measured() -> None:
    judged = [Judged(claim("It.", is_true=true), 0.9, True) for true in (True, False)]
    assert list(misses({"written": judged}, {"written": 0.5})) == []
    said = list(misses({"written": judged}, {"written": 0.8, "sick": 0.7}))
    assert ["written" in said[0], "sick" in said[1], len(said)] == [True, True, 2]


def test_threshold_that_names_no_share_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--fail-under", "written"])
    assert "SET=SHARE" in capsys.readouterr().err


def test_ablation_takes_rules_away_from_the_verdicts() -> None:
    both = Judged(claim("It.", is_true=False), 0.1, False, rules=("number", "denial"), passes_without_rules=True)
    alone = Judged(claim("It.", is_true=True), 0.1, False, rules=("number",), passes_without_rules=True)
    low = Judged(claim("It.", is_true=False), 0.1, False, rules=("number",))
    assert [each.is_supported for each in without_rules([both, alone, low], ["number"])] == [False, True, False]
    assert [each.is_supported for each in without_rules([both, alone, low], ["number", "denial"])] == [
        True,
        True,
        False,
    ]
    report = render_rules({"written": [both, alone, low]})
    assert "without denial" in report
    assert render_rules({"written": [Judged(claim("It.", is_true=True), 0.9, True)]}) == ""
