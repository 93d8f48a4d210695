from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.orchestrator.answering.citations import CitedSentence, cited_numbers, cited_sentences
from services.orchestrator.answering.marks import MarkFilter, find_marks, rewrite_marks


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
    Case("list with commas of other scripts", ("事实［1、2］。",), "事实[1][2]。"),
    Case("range", ("A fact [1-2].",), "A fact [1][2]."),
    Case("range with a dash beyond what there is", ("A fact [1–3].",), "A fact [1][2].", 1),
    Case("range of which there is nothing stays", ("From [1990-1995] on.",), "From [1990-1995] on."),
    Case("footnote", ("A fact [^1].",), "A fact [1]."),
    Case("invented footnote is removed", ("A fact[^9].",), "A fact.", 1),
    Case("mark of an assistant's file search", ("A fact【1†source】.",), "A fact[1]."),
    Case(
        "the same with the number of a message", ("A fact【1:0†source】, and【7:3†lease.pdf】.",), "A fact[1], and.", 1
    ),
    Case("a word and a colon", ("A fact [citation:1] [Source: 2].",), "A fact [1] [2]."),
    Case(
        "times and numbers of issues stay", ("At [12:30] of [#1] and [note: 1].",), "At [12:30] of [#1] and [note: 1]."
    ),
    Case(
        "number of an issue at the end of a clause",
        ("A fact [#1], of [#1] and [#7].",),
        "A fact [1], of [#1] and [#7].",
    ),
    Case("carets on both sides", ("A fact[^1^][^2^].",), "A fact[1][2]."),
    Case("escaped brackets", (r"A fact \[1\], \[1, 2\] and \[7\].",), "A fact [1], [1][2] and .", 1),
    Case("escaped brackets around no number stay", ("As \\[sic\\] \\",), "As \\[sic\\] \\"),
    Case("a word for each number", ("A fact [Source 1; Source 2] [doc 1, passage 7].",), "A fact [1][2] [1].", 1),
    Case("words between numbers stay", ("In [1, see below] and [Source one].",), "In [1, see below] and [Source one]."),
    Case("raised by a tag", ("A fact<sup>1</sup> and another <sup>[2]</sup>.",), "A fact[1] and another [2]."),
    Case(
        "several raised by tags", ("A fact.<sup>1, 2</sup> More.<sup>1</sup><sup>2</sup>",), "A fact.[1][2] More.[1][2]"
    ),
    Case("brackets raised by a tag are marks anywhere", ("10<SUP>[1]</SUP> of [2]<sup>[7]</sup>",), "10[1] of [2]", 1),
    Case(
        "power and ordinal by a tag stay",
        ("10<sup>2</sup>, 1<sup>st</sup>, x<sup>2",),
        "10<sup>2</sup>, 1<sup>st</sup>, x<sup>2",
    ),
    Case("unknown number in a tag stays", ("A fact<sup>9</sup>.",), "A fact<sup>9</sup>."),
    Case("circled numbers", ("A fact①, another ②. Both①②.",), "A fact[1], another [2]. Both[1][2]."),
    Case("circled numbers of a language without spaces", ("这是事实①。",), "这是事实[1]。"),
    Case(
        "circled numbers of a list stay",
        ("① Open it.\nFirst ① open it, then②close it",),
        "① Open it.\nFirst ① open it, then②close it",
    ),
    Case("unknown circled number stays", ("A fact⑨.",), "A fact⑨."),
    Case("the same with lines", ("A fact 【2†L5-L10】.",), "A fact [2]."),
    Case("double brackets", ("A fact [[1]].",), "A fact [1]."),
    Case("double brackets around several", ("A fact [[1][2]].",), "A fact [1][2]."),
    Case("round brackets at the end of a clause", ("A fact (1), another (1, 2).",), "A fact [1], another [1][2]."),
    Case("round brackets behind a stop", ("A fact. (1)\nMore.",), "A fact. [1]\nMore."),
    Case("several round brackets", ("A fact (1) (2).",), "A fact [1][2]."),
    Case("wide round brackets", ("这是事实（1）。",), "这是事实[1]。"),
    Case("round brackets at the end", ("A fact (1)",), "A fact [1]"),
    Case("number of a list stays", ("(1) Open it.\n(2) Close it.",), "(1) Open it.\n(2) Close it."),
    Case("number of a list in a sentence stays", ("First. (1) Open it.",), "First. (1) Open it."),
    Case("round brackets in a clause stay", ("Use two (2) pumps.",), "Use two (2) pumps."),
    Case("argument of a function stays", ("Call f(1).",), "Call f(1)."),
    Case("unknown number in round brackets stays", ("In those years (7).",), "In those years (7)."),
    Case("raised number behind a word", ("A fact¹ and another².",), "A fact[1] and another[2]."),
    Case("raised number behind a stop", ("A fact.¹",), "A fact.[1]"),
    Case("raised numbers in a row", ("A fact.¹²",), "A fact.[1][2]"),
    Case("raised number behind a short word", ("It is up¹. So it is<sup>2</sup>",), "It is up[1]. So it is[2]"),
    Case(
        "raised number behind a unit or a function stays",
        ("5 cm², sin² x, 3 km<sup>2</sup>.",),
        "5 cm², sin² x, 3 km<sup>2</sup>.",
    ),
    Case("raised unit and power stay", ("5 km², 10² and x².",), "5 km², 10² and x²."),
    Case("unknown raised number stays", ("A fact⁹.",), "A fact⁹."),
    Case("code stays", ("Use `rows[7]` and `f (1)`.",), "Use `rows[7]` and `f (1)`."),
    Case("a block of code stays", ("So:\n```\nx = y[7]\n```\nA fact [7].",), "So:\n```\nx = y[7]\n```\nA fact .", 1),
    Case("index expression stays", ("x[i] = y[1]",), "x[i] = y[1]"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_marks_come_only_from_the_evidence_set(case: Case) -> None:
    marks = MarkFilter({1, 2})
    shown = "".join([*(marks.feed(piece) for piece in case.pieces), marks.finish()])
    assert (shown, marks.invented) == (case.shown, case.invented)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_marks_are_the_same_wherever_the_stream_is_cut(case: Case) -> None:
    text = "".join(case.pieces)
    for cut in range(len(text) + 1):
        marks = MarkFilter({1, 2})
        assert marks.feed(text[:cut]) + marks.feed(text[cut:]) + marks.finish() == case.shown
        assert marks.invented == case.invented


def test_marks_in_code_are_no_citations() -> None:
    answer = rewrite_marks("`y[1]` is the second [2].\n```\nz[1]\n```", {1, 2})
    assert [mark[1] for mark in find_marks(answer)] == ["2"]
    assert cited_numbers(answer) == (2,)


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


_WORDS = ("source", "sou", "fact", "[1]", "(1)", "```", "<sup>", "</sup>", "</su", "\\[", "[#1]")
_HOSTILE = st.lists(st.sampled_from([*"[]【】［］()（） 1279,;-–^†٣¹²①\nab.`\\#", *_WORDS]), max_size=40).map("".join)


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
