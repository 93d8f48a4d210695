import pytest

from kit.grounding import Judge, coverage
from services.orchestrator.log.events import Evidence, SupportStatus
from services.orchestrator.verification import attribute, verify

EVIDENCE = (
    Evidence(1, "c1", "d1", "tower.txt", "The tower was built in 1889 by Gustave Eiffel. It is 330 metres high."),
    Evidence(2, "c2", "d2", "bridge.txt", "The bridge was opened in 1932 after eight years of work.", page=3),
)
JUDGE = Judge(EVIDENCE)


def test_copied_and_paraphrased_sentences_are_supported() -> None:
    checked = verify("Gustave Eiffel built the tower in 1889. [1] The bridge opened in 1932. [2]", JUDGE)
    assert checked.support_status is SupportStatus.SUPPORTED
    assert checked.citation_coverage == checked.citation_precision == 1.0


@pytest.mark.parametrize(
    "claim",
    [
        "The tower was built in 1890. [1]",  # a number that the source does not have
        "The tower was built in 1889 by Jean Nouvel. [1]",  # a name that it does not have
        "The tower was built in 1889. [2]",  # the wrong source
        "The tower was built in 1889.",  # no source
        "Visitors enjoy wonderful sunsets there. [1]",  # nothing of it
    ],
)
def test_claim_that_its_source_does_not_carry_is_unsupported(claim: str) -> None:
    assert verify(claim, JUDGE).support_status is SupportStatus.INSUFFICIENT


def test_mixed_answer_is_partial_and_says_which_sentence() -> None:
    checked = verify("The tower was built in 1889. [1] Visitors enjoy wonderful sunsets there. [1]", JUDGE)
    assert checked.support_status is SupportStatus.PARTIAL
    assert [verdict.verdict for verdict in checked.sentences] == ["supported", "unsupported"]
    assert (checked.citation_coverage, checked.citation_precision) == (0.5, 0.5)


def test_interjections_are_no_claims() -> None:
    checked = verify("It is. The tower was built in 1889. [1]", JUDGE)
    assert [verdict.sentence for verdict in checked.sentences] == ["The tower was built in 1889."]


def test_uncited_sentence_gets_the_source_that_carries_it() -> None:
    answer = "The bridge was opened in 1932. Visitors enjoy wonderful sunsets."
    assert attribute(answer, JUDGE) == "The bridge was opened in 1932. [2] Visitors enjoy wonderful sunsets."


def test_cited_sentence_keeps_its_own_marks() -> None:
    answer = "The bridge was opened in 1932. [1]"
    assert attribute(answer, JUDGE) == answer


def test_coverage_of_an_empty_sentence_is_zero() -> None:
    assert coverage("", ["text"]) == 0.0


LEAVE = (
    Evidence(1, "c1", "d1", "leave.md", "Employees have 28 days of paid leave each year."),
    Evidence(2, "c2", "d1", "leave.md", "Parents may take up to 14 weeks of paid parental leave."),
)
ASKED = Judge(LEAVE, "How many weeks of parental leave can parents take?")


@pytest.mark.parametrize(("answer", "number"), [("14 weeks.", 2), ("The answer is 14.", 2), ("28 days.", None)])
def test_short_answer_is_read_together_with_its_question(answer: str, number: int | None) -> None:
    assert ASKED.best_source(answer) == number


@pytest.mark.parametrize(
    "text", ["How many weeks of leave? [1]", "The source is: leave.md [1]", "Yes. [1]", "See page 2. [1]"]
)
def test_echo_of_the_question_or_mention_of_a_source_is_no_claim(text: str) -> None:
    assert verify(text, ASKED).support_status is SupportStatus.INSUFFICIENT
    assert verify(text, ASKED).sentences == ()


def test_mentions_of_sources_are_left_out_and_interjections_stay() -> None:
    answer = "Yes. Parents may take 14 weeks. [2]\n\nSource: leave.md [2]\nSource: leave.md [1]"
    assert attribute(answer, ASKED) == "Yes. Parents may take 14 weeks. [2]"


@pytest.mark.parametrize(
    "answer",
    [
        "Here are the facts:\n\n- The tower was built in 1889 [1]\n- The bridge was opened in 1932 [2]",
        "## Some facts\n\nThe tower was built in 1889. [1]",
        "| Thing | Year |\n|---|---|\n| tower built | 1889 [1] |\n| bridge opened | 1932 [2] |",
        "1. The tower was built in 1889 [1]\n2. The bridge was opened in 1932 [2]",
    ],
    ids=["lead-in", "heading", "table", "numbered list"],
)
def test_frame_of_a_list_or_table_is_no_claim(answer: str) -> None:
    assert verify(answer, JUDGE).support_status is SupportStatus.SUPPORTED


@pytest.mark.parametrize("frame", ["It was sold in 1999:", "It belongs to Jean Nouvel:", "# Sold in 1999"])
def test_frame_that_states_a_fact_is_a_claim(frame: str) -> None:
    assert verify(f"{frame}\n\nThe tower was built in 1889. [1]", JUDGE).support_status is SupportStatus.PARTIAL


def test_marks_on_a_line_of_their_own_belong_to_the_sentence_above() -> None:
    answer = "The tower was built in 1889.\n[1]\n\nThe bridge was opened in 1932.\n[2]"
    assert attribute(answer, JUDGE) == answer
    assert [verdict.citations for verdict in verify(answer, JUDGE).sentences] == [(1,), (2,)]


def test_mark_that_begins_a_line_belongs_to_the_sentence_behind_it() -> None:
    answer = "[1] The tower was built in 1889.\n[2] The bridge was opened in 1932."
    assert [verdict.citations for verdict in verify(answer, JUDGE).sentences] == [(1,), (2,)]


def test_sources_that_carry_a_sentence_only_together_are_all_precise() -> None:
    checked = verify("The tower was built in 1889 and the bridge was opened in 1932. [1][2]", JUDGE)
    assert (checked.support_status, checked.citation_precision) == (SupportStatus.SUPPORTED, 1.0)
    checked = verify("The tower was built in 1889. [1][2]", JUDGE)
    assert checked.citation_precision == 0.5


DENIED = (
    Evidence(1, "c1", "d1", "leave.md", "Interns do not get paid leave. Employees get 28 days of paid leave a year."),
)


@pytest.mark.parametrize(
    ("claim", "supported"),
    [
        ("Employees get 28 days of paid leave. [1]", True),
        ("Employees do not get 28 days of paid leave. [1]", False),
        ("You can't have 28 days of paid leave a year. [1]", False),
        ("Interns do not get paid leave. [1]", True),
        ("Interns get no paid leave. [1]", True),
        ("Interns get paid leave. [1]", False),
    ],
)
def test_denial_of_what_the_source_says_is_unsupported(claim: str, supported: bool) -> None:
    status = verify(claim, Judge(DENIED, "How many days of paid leave are there?")).support_status
    assert (status is SupportStatus.SUPPORTED) is supported


def test_identifier_must_stand_in_the_source() -> None:
    source = Evidence(1, "c1", "d1", "n.txt", "The locker number of employee E104 is 1728.")
    judge = Judge((source,), "What is the locker number of employee E999?")
    assert verify("The locker number of employee E999 is 1728. [1]", judge).support_status is SupportStatus.INSUFFICIENT
