"""One quote a mark, numbered in order of appearance."""

import re
from dataclasses import replace

from services.orchestrator.answering.quotes import Quote, citation, number_quotes, placed, placed_quotes
from services.orchestrator.log.events import (
    BoundingBox,
    Citation,
    Evidence,
    Origin,
    SentenceVerdict,
    SupportStatus,
    Verification,
)
from services.orchestrator.verification.claims import split_claims
from services.orchestrator.verification.quoting import verify_quotes
from services.orchestrator.verification.verdicts import QUOTES, TABLE

EVIDENCE = (
    Evidence(1, "c1", "d1", "tower.txt", "The tower was built in 1889 by Gustave Eiffel.\nIt is 330\nmetres high."),
    Evidence(2, "c2", "d2", "bridge.txt", "The bridge was opened in 1932 after eight years of work.", page=3),
)


def quote(citation: Citation) -> str:
    return citation.text[citation.quote_start : citation.quote_end]


def test_mark_opens_the_words_it_came_from() -> None:
    quoted = number_quotes("It is 330 metres high. [1] In 1932 the bridge opened. [2]", EVIDENCE)
    first, second = quoted.citations
    assert quote(first) == "It is 330\nmetres high."
    assert quote(second) == EVIDENCE[1].text
    assert second.page == 3


def test_boxes_of_a_citation_are_those_of_its_lines() -> None:
    lines = (BoundingBox(1, 72, 100, 500, 112, 0, 46), BoundingBox(1, 72, 114, 140, 126, 47, 56))
    last = BoundingBox(2, 72, 72, 160, 84, 57, 69)
    source = replace(EVIDENCE[0], bounding_boxes=(*lines, last), origin=Origin(author="Ann"))
    built, high = number_quotes("The tower was built in 1889. [1] It is 330 metres high. [1]", [source]).citations
    assert built.bounding_boxes == lines[:1]
    assert high.bounding_boxes == (lines[1], last)
    assert high.origin == Origin(author="Ann")
    assert citation(source, Quote(1, 0, 0), 1).bounding_boxes == (*lines, last), "the passage as a whole"
    of_before = replace(source, bounding_boxes=tuple(replace(box, char_start=0, char_end=0) for box in lines))
    assert citation(of_before, Quote(1, 0, 4), 1).bounding_boxes == of_before.bounding_boxes


def test_marks_count_in_order_of_appearance() -> None:
    quoted = number_quotes("The bridge was opened in 1932. [2] It is 330 metres high. [1]", EVIDENCE)
    assert quoted.text == "The bridge was opened in 1932. [1] It is 330 metres high. [2]"
    assert [each.document_name for each in quoted.citations] == ["bridge.txt", "tower.txt"]


def test_two_quotes_of_one_passage_are_two_marks() -> None:
    quoted = number_quotes("It was built in 1889. [1] It is 330 metres high. [1]", EVIDENCE)
    assert re.findall(r"\[\d\]", quoted.text) == ["[1]", "[2]"]
    assert [quote(each) for each in quoted.citations] == [
        "The tower was built in 1889 by Gustave Eiffel.",
        "It is 330\nmetres high.",
    ]


def test_same_quote_twice_is_one_mark() -> None:
    quoted = number_quotes("It is 330 metres high. [1] Again: it is 330 metres high. [1]", EVIDENCE)
    assert quoted.text.count("[1]") == 2
    assert len(quoted.citations) == 1


def test_mark_within_a_sentence_opens_what_stands_before_it() -> None:
    text = "The tower is 330 metres high [1] and the bridge was opened in 1932 [2]."
    first, second = number_quotes(text, EVIDENCE).citations
    assert quote(first) == "It is 330\nmetres high."
    assert quote(second).startswith("The bridge was opened")


def test_mark_never_stands_alone_on_a_line() -> None:
    quoted = number_quotes("The bridge was opened in 1932.\n[2]\n\nIt is 330 metres high.\n[1]", EVIDENCE)
    assert quoted.text == "The bridge was opened in 1932. [1]\n\nIt is 330 metres high. [2]"


def test_number_outside_the_evidence_set_is_no_citation() -> None:
    quoted = number_quotes("A claim. [9]", EVIDENCE)
    assert quoted.citations == ()
    assert quoted.text == "A claim."


def test_verdicts_have_the_numbers_and_places_of_the_text() -> None:
    answer = "The bridge was opened in 1932. [2] It is 330 metres high. [1]"
    said = [SentenceVerdict(each.text, "supported", each.numbers, 1.0) for each in split_claims(answer)]
    text = number_quotes(answer, EVIDENCE).text
    verdicts = placed(Verification(said, 1.0, 1.0, SupportStatus.SUPPORTED), text).sentences
    assert [verdict.citations for verdict in verdicts] == [(1,), (2,)]
    assert [text[verdict.start : verdict.end] for verdict in verdicts] == [verdict.sentence for verdict in verdicts]


def test_mark_opens_the_words_that_a_judge_has_named() -> None:
    claim = "Der Turm ist 330 Meter hoch."
    start = EVIDENCE[0].text.index("It is 330")
    spans = {(1, claim): (start, len(EVIDENCE[0].text))}
    (only,) = number_quotes(f"{claim} [1]", EVIDENCE, spans).citations
    assert quote(only) == "It is 330\nmetres high."


def cited(text: str, start: int, end: int) -> Citation:
    return Citation(1, "d", "prices.csv", "c", 0, text, start, end, (), ("Sheet 1",))


def test_quote_is_judged_by_its_words() -> None:
    text = "Name: Widget; Price: 5"
    (same,) = verify_quotes(["Name: Widget; Price: 5"], [cited(text, 0, len(text))]).sentences
    (other,) = verify_quotes(["Name: Widget; Price: 6"], [cited(text, 0, len(text))]).sentences
    assert (same.verdict, same.checked_by) == ("supported", QUOTES)
    assert other.verdict == "not_found"


def test_row_that_is_put_together_from_cells_is_no_quote() -> None:
    text = "Name: Widget; Price: 5"
    checked = verify_quotes(["Sheet 1: Name: Widget; Price: 5"], [cited(text, 0, len(text))])
    assert (checked.sentences[0].verdict, checked.sentences[0].checked_by) == ("supported", TABLE)
    assert checked.checked_by == TABLE


def test_quotes_have_their_places_in_the_text() -> None:
    text = "It is high. It is high."
    checked = placed_quotes(verify_quotes(["It is high."] * 2, [cited("It is high.", 0, 11)] * 2), text)
    assert [(each.start, each.end) for each in checked.sentences] == [(0, 11), (12, 23)]
