import pytest

from services.orchestrator.events import Evidence, SupportStatus
from services.orchestrator.verification import attribute, cite, coverage, verify

EVIDENCE = (
    Evidence(1, "c1", "d1", "tower.txt", "The tower was built in 1889 by Gustave Eiffel. It is 330 metres high."),
    Evidence(2, "c2", "d2", "bridge.txt", "The bridge was opened in 1932 after eight years of work.", page=3),
)


def test_copied_and_paraphrased_sentences_are_supported() -> None:
    checked = verify("Gustave Eiffel built the tower in 1889. [1] The bridge opened in 1932. [2]", EVIDENCE)
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
    assert verify(claim, EVIDENCE).support_status is SupportStatus.INSUFFICIENT


def test_mixed_answer_is_partial_and_says_which_sentence() -> None:
    checked = verify("The tower was built in 1889. [1] Visitors enjoy wonderful sunsets there. [1]", EVIDENCE)
    assert checked.support_status is SupportStatus.PARTIAL
    assert [verdict.verdict for verdict in checked.sentences] == ["supported", "unsupported"]
    assert (checked.citation_coverage, checked.citation_precision) == (0.5, 0.5)


def test_interjections_are_no_claims() -> None:
    checked = verify("It is. The tower was built in 1889. [1]", EVIDENCE)
    assert [verdict.sentence for verdict in checked.sentences] == ["The tower was built in 1889."]


def test_uncited_sentence_gets_the_source_that_carries_it() -> None:
    answer = "The bridge was opened in 1932. Visitors enjoy wonderful sunsets."
    assert attribute(answer, EVIDENCE) == "The bridge was opened in 1932. [2] Visitors enjoy wonderful sunsets."


def test_cited_sentence_keeps_its_own_marks() -> None:
    answer = "The bridge was opened in 1932. [1]"
    assert attribute(answer, EVIDENCE) == answer


def test_citation_quotes_the_words_that_carry_the_claim() -> None:
    first, second = cite("It is 330 metres high. [1] In 1932 the bridge opened. [2]", EVIDENCE)
    assert first.text[first.quote_start : first.quote_end] == "It is 330 metres high."
    assert second.text[second.quote_start : second.quote_end] == EVIDENCE[1].text
    assert second.page == 3


def test_number_outside_the_evidence_set_is_no_citation() -> None:
    assert cite("A claim. [9]", EVIDENCE) == ()


def test_coverage_of_an_empty_sentence_is_zero() -> None:
    assert coverage("", ["text"]) == 0.0
