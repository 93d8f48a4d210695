"""A report says no more of itself than its sections have earned."""

import pytest

from services.orchestrator.answering.draft import EXTRACTIVE, MODEL, Draft
from services.orchestrator.log.events import CheckedBy, SentenceVerdict, SupportStatus, Verification
from services.orchestrator.research.report import Report, Section
from services.orchestrator.verification.verdicts import QUOTES, TABLE

LEARNED = CheckedBy("alignment/0", false_passed=0.4, true_failed=0.3, claims=100)
MEASURED = CheckedBy("model/m", measured=True, false_passed=0.1, true_failed=0.1, claims=100)


def section(method: str, status: SupportStatus, judge: CheckedBy, recall: float = 1.0) -> Draft:
    verdict = SentenceVerdict("It is high.", status.value, (), 1.0, checked_by=judge)
    verification = Verification((verdict,), 1.0, 1.0, status, checked_by=judge, citation_recall=recall)
    return Draft("It is high.", method, verification, status)


@pytest.mark.parametrize(
    ("judge", "status"),
    [(LEARNED, SupportStatus.SIMILAR_WORDING), (MEASURED, SupportStatus.SUPPORTED)],
)
def test_report_is_as_well_carried_as_its_worst_section_and_names_the_judge_of_that(
    judge: CheckedBy, status: SupportStatus
) -> None:
    report = Report("Tower", section(EXTRACTIVE, SupportStatus.SUPPORTED, QUOTES))
    report.add(Section("Height", "How high?"), section(MODEL, status, judge, recall=0.5))
    draft = report.draft()
    assert draft.verification is not None
    assert (draft.method, draft.support_status) == (MODEL, status)
    assert (draft.verification.checked_by, draft.verification.citation_recall) == (judge, 0.75)


def test_report_with_a_row_of_a_table_is_not_quoted_word_for_word() -> None:
    report = Report("Tower", section(EXTRACTIVE, SupportStatus.SUPPORTED, QUOTES))
    report.add(Section("Height", "How high?"), section(EXTRACTIVE, SupportStatus.SUPPORTED, TABLE))
    draft = report.draft()
    assert draft.verification is not None
    assert (draft.method, draft.verification.checked_by) == (EXTRACTIVE, TABLE)
