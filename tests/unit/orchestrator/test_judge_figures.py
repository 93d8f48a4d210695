"""How often models are wrong as judges, as the operator has measured it."""

from pathlib import Path

import pytest

from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.verification.verdicts import measured_judges


@pytest.mark.parametrize(
    ("passed", "failed", "is_measured"), [(0.15, 0.15, True), (0.16, 0.0, False), (0.0, 0.2, False)]
)
def test_judge_has_earned_its_word_when_its_error_is_small(
    tmp_path: Path, passed: float, failed: float, is_measured: bool
) -> None:
    file = tmp_path / "figures.json"
    file.write_text(f'{{"model/m": {{"false_passed": {passed}, "true_failed": {failed}, "claims": 210}}}}')
    judge = OrchestratorSettings(verify_figures_file=file).measured_judges()["model/m"]
    assert (judge.measured, judge.false_passed, judge.claims) == (is_measured, passed, 210)


@pytest.mark.parametrize("text", ["", "[]", '{"model/m": {}}', '{"model/m": {"false_passed": 0.1}}', "figures"])
def test_file_that_holds_no_figures_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        measured_judges(text)


def test_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        OrchestratorSettings(verify_figures_file=tmp_path / "none.json")
