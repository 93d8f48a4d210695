from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.orchestrator.answering.citations import CitedSentence, MarkFilter, cited_numbers, cited_sentences


@dataclass(frozen=True)
class Case:
    name: str
    pieces: tuple[str, ...]
    shown: str
    invented: int = 0


CASES = [
    Case("plain mark", ("A fact [1].",), "A fact [1]."),
    Case("mark in pieces", ("A fact [", "1", "]."), "A fact [1]."),
    Case("list of numbers", ("A fact [1, 2].",), "A fact [1][2]."),
    Case("named source", ("A fact [Source 2].",), "A fact [2]."),
    Case("wide brackets", ("A fact 【2】.",), "A fact [2]."),
    Case("invented number is removed", ("A fact [7].",), "A fact .", 1),
    Case("invented beside a real one", ("A fact [1; 7].",), "A fact [1].", 1),
    Case("brackets that are no mark stay", ("see [the manual] for more",), "see [the manual] for more"),
    Case("an open bracket at the end stays", ("a [", "b"), "a [b"),
    Case("index expression stays", ("x[i] = y[1]",), "x[i] = y[1]"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_marks_come_only_from_the_evidence_set(case: Case) -> None:
    marks = MarkFilter({1, 2})
    shown = "".join([*(marks.feed(piece) for piece in case.pieces), marks.finish()])
    assert (shown, marks.invented) == (case.shown, case.invented)


def test_half_a_mark_is_never_shown() -> None:
    marks = MarkFilter({1})
    assert marks.feed("A fact [1") == "A fact "


def test_long_open_bracket_is_let_go() -> None:
    marks = MarkFilter({1})
    text = "[this is a long remark that is never closed"
    assert marks.feed(text) == text


def sentences(answer: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(sentence.text, sentence.numbers) for sentence in cited_sentences(answer)]


def test_each_sentence_has_the_marks_that_follow_it() -> None:
    assert sentences("One is so [1]. Two is else. [2][3] Three has none.") == [
        ("One is so.", (1,)),
        ("Two is else.", (2, 3)),
        ("Three has none.", ()),
    ]


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("Dr. Smith came at 3.5 km. He left. [1]", ["Dr. Smith came at 3.5 km.", "He left."]),
        ("- first item [1]\n- second item [2]", ["- first item", "- second item"]),
        ("首都是东京。人口很多。", ["首都是东京。", "人口很多。"]),
        ("", []),
        ("[1]", []),
    ],
)
def test_sentences_are_told_apart(answer: str, texts: list[str]) -> None:
    assert [text for text, _ in sentences(answer)] == texts


def test_end_stands_before_the_marks() -> None:
    answer = "A fact. [1] Another."
    first, second = cited_sentences(answer)
    assert isinstance(first, CitedSentence)
    assert answer[: first.end] == "A fact."
    assert answer[: second.end] == answer


def test_numbers_in_order_of_first_appearance() -> None:
    assert cited_numbers("b [2] a [1] b [2]") == (2, 1)


_HOSTILE = st.lists(st.sampled_from([*"[]【】 1279,;٣²\nab.", "source"]), max_size=60).map("".join)


@given(text=_HOSTILE, cuts=st.lists(st.integers(0, 60), max_size=8))
def test_no_mark_outside_the_evidence_set_is_shown_however_it_is_cut(text: str, cuts: list[int]) -> None:
    marks = MarkFilter({1, 2})
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    shown = "".join([*(marks.feed(piece) for piece in pieces), marks.finish()])
    assert set(cited_numbers(shown)) <= {1, 2}
    whole = MarkFilter({1, 2})
    assert shown == whole.feed(text) + whole.finish()
    assert marks.invented == whole.invented


@pytest.mark.parametrize(
    ("text", "shown", "invented"),
    [
        ("A fact [" + "9" * 5000 + "].", "A fact .", 1),  # more digits than int() reads
        ("A fact [" + " " * 40 + "7 ].", "A fact .", 1),
        ("A fact [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 7].", "A fact " + "[1][2]" * 6 + ".", 1),
        ("A fact [[7]9].", "A fact .", 2),  # a mark made by taking another out
        ("A fact [٧].", "A fact .", 1),
    ],
)
def test_hostile_marks_are_taken_out_whole_and_in_pieces(text: str, shown: str, invented: int) -> None:
    for pieces in ([text], list(text)):
        marks = MarkFilter({1, 2})
        assert "".join([*(marks.feed(piece) for piece in pieces), marks.finish()]) == shown
        assert marks.invented == invented
