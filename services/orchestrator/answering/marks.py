"""The citation marks that models write, in any of their forms, as the one form that an answer has: [1][2]. A number can only come
from the evidence; what a model invents is taken out while it streams, before anyone has seen it.

Marks in square brackets: [1], [1, 3], [1-3], [[1]], [^1], [^1^], \\[1\\], [Source 1], [citation:1], [doc 1; doc 2], 【1†source】,
【1:0†source】, ［1］, <sup>[1]</sup>. A number in them that the evidence does not have is taken out. A range is no mark
where it has neither end, such as [1990-1995].

(1), （1）, [#1], ①, ¹ and <sup>1</sup> are marks only where the evidence has all their numbers and they stand where marks do:
behind words, never at the beginning of a line. Those in brackets must stand at the end of a clause. Circled numbers must stand
there too, or touch the word before them and not the one behind. Raised digits must stand behind a word, a stop or a quotation mark;
m², 10², x² and sin² stay. In code, between backticks, nothing is a mark.
"""

import re
from collections.abc import Collection, Iterator

_LONGEST_NUMBER = 9
_LONGEST_RANGE = 20
_OPENING, _CLOSING = r"\\*+[\[［【〔]", r"\\*+[\]］】〕]"
_BETWEEN = r"[,;、，；\-‐‑–—]"
_LABELS = ("sources", "quellen", "documents", "docs", "passages", "citations", "cites", "references", "refs")
_LABEL = r"(?:(?:source|quelle|doc(?:ument)?|passage|citation|cite|ref(?:erence)?)[sn]?\s*+(?::\s*+)?)?"
_SAID = r"†[^\[\]［］【】〔〕\n]{0,60}+"
"""What assistants write behind the number: the name or the lines of a file."""
MARK = re.compile(
    rf"{_OPENING}\s*+\^?+{_LABEL}(\d++(?:\s*+{_BETWEEN}\s*+\^?+{_LABEL}\d++)*+)\^?+(?:(?::\d{{1,3}}+)?\s*+{_SAID})?\s*+{_CLOSING}",
    re.IGNORECASE,
)
_AROUND_MARKS = re.compile(r"\[((?:\[\d{1,9}\])+)\]")
_LABEL_BEGUN = (
    rf"(?:(?:{'|'.join(label[:end] for label in _LABELS for end in range(len(label), 0, -1))})\s*+(?::\s*+)?)"
)
_UNFINISHED = re.compile(
    rf"(?:(?:{_OPENING}\s*+\^?+{_LABEL_BEGUN}?+(?:\d(?:[\d\s^:,;、，；\-‐‑–—]++{_LABEL_BEGUN}?+)*+(?:{_SAID})?+\\*+)?+(?:\[\d{{1,9}}\])*+)++\\*+|\\++)$",
    re.IGNORECASE,
)
"""Text at the end that may yet become a mark, by what follows or by a mark inside it being taken out."""
_PLAIN_MARK = re.compile(r"\[(\d{1,9})\]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*(?:`|(?=\n)|\Z)", re.DOTALL)
_FENCE = "```"

_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"
_DIGITS = str.maketrans(_RAISED, "0123456789")
_IN_TAG = r"[\[\]\d \t,;、，；\-‐‑–—]{1,40}"
_WEAK = re.compile(
    rf"(?:[(（][ \t]*\d{{1,3}}(?:[ \t]*{_BETWEEN}[ \t]*\d{{1,3}})*[ \t]*[)）][ \t]*)+"
    rf"|[{_RAISED}]{{1,3}}(?:[ ,˒]?[{_RAISED}]{{1,3}})*"
    rf"|<sup>{_IN_TAG}</sup>(?:[ ,]{{0,2}}<sup>{_IN_TAG}</sup>)*"
    rf"|\[#\d{{1,3}}\](?:\[#\d{{1,3}}\])*|[{_CIRCLED}]+",
    re.IGNORECASE,
)
_WEAK_UNFINISHED = re.compile(
    rf"(?:[(（][ \t]*(?:\d[\d \t,;、，；\-‐‑–—]*)?[)）]?[ \t]*)+$|[{_RAISED}](?:[ ,˒]?[{_RAISED}])*[ ,˒]?$"
    rf"|(?:<sup>{_IN_TAG}</sup>[ ,]{{0,2}})*(?:<(?:s(?:u(?:p(?:>(?:{_IN_TAG}(?:<(?:/(?:s(?:u(?:p)?)?)?)?)?)?)?)?)?)?)?$"
    rf"|(?:\[#\d{{1,3}}\])*(?:\[(?:#\d{{0,3}})?)?$|[{_CIRCLED}]+$",
    re.IGNORECASE,
)
_STOPS = ".!?…。！？"
_QUOTES = "\"'”’»)]）」』"
_BEFORE_CLAUSE_MARK = re.compile(rf"[\w{re.escape(_QUOTES)}%°€$]$")
_AFTER_CLAUSE_MARK = re.compile(r"[.,;:!?…。，；：！？、\n\[]")
_CONTEXT = 32
"""Characters before a weak mark that are looked at."""
_WORD = re.compile(r"[^\W\d_]{2,}$")
_RAISED_THEMSELVES = frozenset(
    (
        "mm",
        "cm",
        "dm",
        "km",
        "nm",
        "µm",
        "ft",
        "in",
        "yd",
        "mi",
        "ms",
        "sin",
        "cos",
        "tan",
        "cot",
        "log",
        "ln",
        "exp",
        "co",
    )
)
"""Units and functions: a raised number behind one is a power, and CO² is one too."""


class MarkFilter:
    """Passes streamed text on, writing each mark as [n] and dropping numbers that are not in the evidence. Wherever the stream is
    cut, the whole of what comes out is the same."""

    def __init__(self, valid: Collection[int]) -> None:
        valid = frozenset(valid)
        self._weak = _WeakMarks(valid)
        self._strong = _BracketedMarks(valid)
        self._held = ""
        self._code = ""
        """The backticks that the text stands between now."""

    @property
    def invented(self) -> int:
        """Numbers that were taken out."""
        return self._strong.invented

    def feed(self, text: str) -> str:
        """What can be shown now: text is held back for as long as it may become a mark."""
        return self._passed(text, is_end=False)

    def finish(self) -> str:
        """What was still held back."""
        return self._passed("", is_end=True)

    def _passed(self, text: str, *, is_end: bool) -> str:
        text = self._held + text
        ticks = len(text) - len(text.rstrip("`")) if not is_end else 0
        ready, self._held = text[: len(text) - ticks], text[len(text) - ticks :]
        shown = "".join(self._rewritten(ready))
        return shown + (self._prose("", is_end=True) if is_end and not self._code else "")

    def _rewritten(self, text: str) -> Iterator[str]:
        """`text` ends with no backtick that others may follow."""
        for piece in re.split(r"(`+|\n)", text):
            if not piece:
                continue
            if piece.startswith("`"):
                yield self._ticked(piece)
            elif self._code:
                if piece == "\n" and self._code != _FENCE:
                    self._code = ""
                self._weak.note(piece)
                yield piece
            else:
                yield self._prose(piece)

    def _ticked(self, ticks: str) -> str:
        """Backticks begin code, or end the code that began with them."""
        held = "" if self._code else self._prose("", is_end=True)
        if not self._code:
            self._code = _FENCE if len(ticks) >= len(_FENCE) else ticks if ticks == "`" else ""
        elif self._code == "`" or len(ticks) >= len(_FENCE):
            self._code = ""
        self._weak.note(ticks)
        return held + ticks

    def _prose(self, text: str, *, is_end: bool = False) -> str:
        return self._strong.passed(self._weak.passed(text, is_end=is_end), is_end=is_end)


class _BracketedMarks:
    def __init__(self, valid: frozenset[int]) -> None:
        self._valid = valid
        self._held = ""
        self.invented = 0

    def passed(self, text: str, *, is_end: bool) -> str:
        held = self._rewritten(self._held + text)
        unfinished = None if is_end else _UNFINISHED.search(held)
        cut = unfinished.start() if unfinished else len(held)
        self._held = held[cut:]
        return held[:cut]

    def _rewritten(self, text: str) -> str:
        # Taking a mark out, or brackets around one, can make another of what stood around it: [[7]9].
        while (rewritten := _AROUND_MARKS.sub(r"\1", MARK.sub(self._rewrite, text))) != text:
            text = rewritten
        return text

    def _rewrite(self, match: re.Match[str]) -> str:
        numbers = _numbers(match[1])
        if "-" in _plain_dashes(match[1]) and not self._valid.intersection(numbers):
            return match[0]
        self.invented += sum(number not in self._valid for number in numbers)
        return "".join(f"[{number}]" for number in numbers if number in self._valid)


class _WeakMarks:
    """Writes (1) and ¹ as [1] where they are marks."""

    def __init__(self, valid: frozenset[int]) -> None:
        self._valid = valid
        self._held = ""
        self._before = ""

    def note(self, text: str) -> None:
        """Text that stands before what comes next without being looked at."""
        self._before = (self._before + text)[-_CONTEXT:]

    def passed(self, text: str, *, is_end: bool) -> str:
        held = self._held + text
        unfinished = None if is_end else _WEAK_UNFINISHED.search(held)
        cut = unfinished.start() if unfinished else len(held)
        self._held = held[cut:]
        shown: list[str] = []
        done = 0
        for match in _WEAK.finditer(held, 0, cut):
            shown += [held[done : match.start()], self._rewritten(held, match)]
            done = match.end()
        shown.append(held[done:cut])
        self.note(held[:cut])
        return "".join(shown)

    def _rewritten(self, text: str, match: re.Match[str]) -> str:
        before = (self._before + text[: match.start()])[-_CONTEXT:]
        after = text[match.end() : match.end() + 1]
        numbers = self._raised(match[0]) if match[0][0] in _RAISED else _numbers(match[0])
        if _is_bracketed_in_tag(match[0]):
            return re.sub(r"</?sup>|(?<=>)[ ,]+(?=<)", "", match[0], flags=re.IGNORECASE)
        if not numbers or not self._valid.issuperset(numbers) or not _stands(match[0], before, after):
            return match[0]
        gap = match[0][len(match[0].rstrip(" \t")) :]
        return "".join(f"[{number}]" for number in numbers) + gap

    def _raised(self, text: str) -> list[int]:
        """¹² is 12 where there are so many passages, else 1 and 2."""
        numbers: list[int] = []
        for digits in re.findall(rf"[{_RAISED}]+", text):
            whole = int(digits.translate(_DIGITS))
            numbers += [whole] if whole in self._valid else [int(digit) for digit in digits.translate(_DIGITS)]
        return numbers


def _is_bracketed_in_tag(mark: str) -> bool:
    """Whether it is <sup>[1]</sup>: a mark wherever it stands."""
    return mark.startswith("<") and bool(re.search(r"\[\s*\d[^\[\]]*\]", mark))


def _stands(mark: str, before: str, after: str) -> bool:
    """Whether what looks like a mark stands where marks do."""
    if mark[0] in _RAISED or mark[0] == "<":
        return _stands_raised(before, after)
    if mark[0] in _CIRCLED and before[-1:].strip() and not after.isalnum() and after != "、":
        return _stands_in_brackets(f"{before} ", ".")
    return _stands_in_brackets(before if mark[0] in "(（" else f"{before} ", after)


def _stands_in_brackets(before: str, after: str) -> bool:
    """At the end of a clause: behind its words or its stop, and nothing of it follows."""
    words = before.rstrip(" \t")
    if not words or words.endswith("\n"):
        return False
    if words[-1] in _STOPS:
        return after in ("", "\n", "[")
    is_apart = words != before or not words[-1].isascii()
    return is_apart and bool(_BEFORE_CLAUSE_MARK.search(words)) and (not after or bool(_AFTER_CLAUSE_MARK.match(after)))


def _stands_raised(before: str, after: str) -> bool:
    word = _WORD.search(before)
    is_behind_word = word is not None and word[0].lower() not in _RAISED_THEMSELVES
    is_behind_stop = bool(before) and before[-1] in _STOPS + _QUOTES and not before[-2:-1].isdigit()
    return (is_behind_word or is_behind_stop) and not after.isalnum()


def _plain_dashes(text: str) -> str:
    return re.sub(r"[‐‑–—]", "-", text)


def _numbers(text: str) -> list[int]:
    """The numbers of a mark, ranges written out; -1 for more digits than any evidence has: int() refuses thousands of them."""
    numbers: list[int] = []
    is_range = False
    text = re.sub(rf"[{_CIRCLED}]", lambda sign: f" {_CIRCLED.index(sign[0]) + 1} ", text)
    for part in re.findall(r"\d+|-", _plain_dashes(text)):
        if part == "-":
            is_range = bool(numbers)
            continue
        number = int(part) if len(part) <= _LONGEST_NUMBER else -1
        if is_range and 0 < number - numbers[-1] <= _LONGEST_RANGE:
            numbers += range(numbers[-1] + 1, number)
        if not (is_range and number == numbers[-1]):  # "[1-1]" is one
            numbers.append(number)
        is_range = False
    return numbers


def rewrite_marks(text: str, valid: Collection[int]) -> str:
    """A whole text with its marks as [n]."""
    marks = MarkFilter(valid)
    return marks.feed(text) + marks.finish()


def find_marks(text: str, start: int = 0, end: int | None = None) -> Iterator[re.Match[str]]:
    """The marks [n] of a text whose marks are rewritten; none of code. `match[1]` is the number."""
    end = len(text) if end is None else end
    code = [found.span() for found in _CODE.finditer(text)] if "`" in text else []
    for match in _PLAIN_MARK.finditer(text, start, end):
        if not any(first < match.end() and match.start() < last for first, last in code):
            yield match
