"""Calls that models write as text are found, whichever way they are written and cut into pieces, and never shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.orchestrator.toolloop.written.hermes import CallTextFilter

A = '{"name": "search", "arguments": {"query": "tower"}}'
SEARCH = ("search", {"query": "tower"})

WRITTEN = {
    "Hermes": (f"<tool_call>\n{A}\n</tool_call>", [SEARCH]),
    "Hermes, unclosed": (f"<tool_call>{A}", [SEARCH]),
    "Hermes, in capitals": (f"<TOOL_CALL>{A}</TOOL_CALL>", [SEARCH]),
    "Hermes, several": (f"<tool_call>{A}</tool_call>\n<tool_call>{A}</tool_call>", [SEARCH, SEARCH]),
    "Hermes, several, the first unclosed": (f"<tool_call>{A}\n<tool_call>{A}</tool_call>", [SEARCH, SEARCH]),
    "Hermes, a list": (f"<tool_call>[{A}, {A}]</tool_call>", [SEARCH, SEARCH]),
    "Hermes, in a code fence": (f"```json\n<tool_call>\n{A}\n</tool_call>\n```", [SEARCH]),
    "Hermes, with a fence inside": (f"<tool_call>\n```json\n{A}\n```\n</tool_call>", [SEARCH]),
    "Hermes, Python's quotes": (
        "<tool_call>{'name': 'search', 'arguments': {'query': 'tower'}}</tool_call>",
        [SEARCH],
    ),
    "Hermes, arguments as text": (
        '<tool_call>{"name": "search", "arguments": "{\\"query\\": \\"tower\\"}"}</tool_call>',
        [SEARCH],
    ),
    "Hermes, the API's shape": (f'<tool_call>{{"type": "function", "function": {A}}}</tool_call>', [SEARCH]),
    "older Hermes": (f"<function_call>{A}</function_call>", [SEARCH]),
    "Llama": ('<function=search>{"query": "tower"}</function>', [SEARCH]),
    "Llama, unclosed": ('<function=search>{"query": "tower"}', [SEARCH]),
    "Llama 3.1": ('<|python_tag|>{"name": "search", "parameters": {"query": "tower"}}<|eom_id|>', [SEARCH]),
    "Qwen coder": (
        "<tool_call>\n<function=search>\n<parameter=query>\ntower\n</parameter>\n</function>\n</tool_call>",
        [SEARCH],
    ),
    "GLM": (
        "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>tower</arg_value>\n</tool_call>",
        [SEARCH],
    ),
    "GLM, several arguments": (
        "<tool_call>search<arg_key>a</arg_key><arg_value>[1]</arg_value><arg_key>b</arg_key><arg_value>x</arg_value></tool_call>",
        [("search", {"a": [1], "b": "x"})],
    ),
    "GLM, no arguments": ("<tool_call>time_now\n</tool_call>", [("time_now", {})]),
    "Mistral": (f"[TOOL_CALLS][{A}]", [SEARCH]),
    "Mistral, newer": ('[TOOL_CALLS]search[ARGS]{"query": "tower"}', [SEARCH]),
    "a call without arguments": ('<tool_call>{"name": "time_now"}</tool_call>', [("time_now", {})]),
    "bare JSON": (A, [SEARCH]),
    "bare JSON in a fence": (f"```json\n{A}\n```", [SEARCH]),
    "bare JSON, parameters": ('{"name": "search", "parameters": {"query": "tower"}}', [SEARCH]),
    "bare JSON, several": (f"[{A}, {A}]", [SEARCH, SEARCH]),
}
TEXTS = {
    "plain": "The tower was built in 1889 [1].",
    "comparisons": "If a < b and b <c then <b>a</b> < c.",
    "code": "Use this:\n```python\nprint('<tool>')\n```\nand `x`.",
    "JSON that is no call": '{"quiz": [{"question": "When?"}]}',
    "JSON with a name": '{"name": "Eiffel", "height_m": 330}',
    "a list": "[1, 2, 3]",
    "JSON of a tool that is not offered": '{"name": "fly", "arguments": {}}',
    "about the tag": "A model writes `<tool_call>` tags around its calls.",
    "about the tag, at the end": "The tag is <tool_call>",
    "a beginning that becomes nothing": "Look at <tool",
    "a fence that is not closed": "So:\n```json\n",
    "marks": "[TOOL] [1] [T",
    "blank": " \n",
}


def passed(text: str, sizes: list[int]) -> tuple[str, list[tuple[str, object]]]:
    """What of the text is shown and called, when it comes in pieces of these sizes."""
    filter_ = CallTextFilter(["search", "time_now"])
    shown, start = "", 0
    for size in [*sizes, len(text)]:
        shown += filter_.feed(text[start : start + size])
        start += size
    shown += filter_.finish()
    return shown, [(call.name, json.loads(call.arguments or "{}")) for call in filter_.calls]


SIZES = st.lists(st.integers(1, 9), max_size=60)


@pytest.mark.parametrize(("text", "calls"), WRITTEN.values(), ids=WRITTEN)
@given(sizes=SIZES)
def test_written_call_is_found_and_not_shown(text: str, calls: list[tuple[str, object]], sizes: list[int]) -> None:
    shown, found = passed(text, sizes)
    assert found == calls
    assert shown.strip() == ""


TAGGED = [name for name in WRITTEN if not name.startswith("bare")]


@pytest.mark.parametrize("name", TAGGED)
@given(sizes=SIZES)
def test_text_before_a_call_is_passed_on(name: str, sizes: list[int]) -> None:
    text, calls = WRITTEN[name]
    shown, found = passed(f"I look it up.\n{text}", sizes)
    assert found == calls
    assert shown.strip() == "I look it up."


def test_text_behind_a_call_is_passed_on() -> None:
    assert passed(f"<tool_call>{A}</tool_call>\nWait for it.", [3] * 40)[0].strip() == "Wait for it."


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@given(sizes=SIZES)
def test_text_that_is_no_call_is_passed_on_unchanged(text: str, sizes: list[int]) -> None:
    assert passed(text, sizes) == (text, [])


def test_text_is_not_held_back_longer_than_it_may_become_a_call() -> None:
    filter_ = CallTextFilter(["search"])
    assert filter_.feed("The tower") == "The tower"
    assert filter_.feed(" is <b") == " is <b"
    assert filter_.feed(">tall</b> <too") == ">tall</b> "
    assert filter_.feed("ls>") == "<tools>"
    assert CallTextFilter(["search"]).feed('{"quiz": ') == '{"quiz": '
    assert CallTextFilter(["search"]).feed("`<tool_call>` is a tag") == "`<tool_call>` is a tag"


def test_attempt_that_cannot_be_read_is_a_call_without_a_name() -> None:
    filter_ = CallTextFilter(["search"])
    assert filter_.feed('<tool_call>{"query": "tower"}</tool_call>') + filter_.finish() == ""
    assert [(call.name, call.arguments) for call in filter_.calls] == [("", '{"query": "tower"}')]


@given(
    st.lists(st.sampled_from([*"<>[]{}`\"' \n:a1", "tool_call", "<tool_call>", "```", "json", "name", A]), max_size=25),
    SIZES,
)
def test_no_text_is_lost_that_is_no_call_and_pieces_make_no_difference(parts: list[str], sizes: list[int]) -> None:
    text = "".join(parts)
    filter_ = CallTextFilter(["search"])
    shown = filter_.feed(text) + filter_.finish()
    again = CallTextFilter(["search"])
    start, pieces = 0, ""
    for size in [*sizes, len(text)]:
        pieces += again.feed(text[start : start + size])
        start += size
    pieces += again.finish()
    assert (pieces, again.calls) == (shown, filter_.calls)
    if not filter_.calls:
        assert shown == text
