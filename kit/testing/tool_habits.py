"""The ways in which real servers stream the same calls of tools. Each habit is a reply of the scripted server; a client that is
right makes the same calls of all of them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kit.testing.openai import Reply

Calls = Sequence[tuple[str, Mapping[str, Any]]]
"""Name and arguments of each."""
Delta = Mapping[str, Any]
_PIECE_CHARS = 7


def as_specified(calls: Calls) -> Reply:
    """OpenAI: id and name with the first piece of each call, then its arguments in pieces."""
    return Reply(list(_streamed(calls)), finish_reason="tool_calls")


def with_stop(calls: Calls) -> Reply:
    """vLLM's forced calls and Gemini: the reason is "stop"."""
    return Reply(list(_streamed(calls)), finish_reason="stop")


def whole_in_one_delta(calls: Calls) -> Reply:
    """Groq, Together: all calls in one delta."""
    pieces = [_piece(index, name, _json(arguments)) for index, (name, arguments) in enumerate(calls)]
    return Reply([{"tool_calls": pieces}], finish_reason="tool_calls")


def at_index_0(calls: Calls) -> Reply:
    """Ollama: every call whole, all of them at index 0 (ollama/ollama#15457)."""
    pieces = [{**_piece(0, name, _json(arguments)), "id": f"call_{n}"} for n, (name, arguments) in enumerate(calls)]
    return Reply([{"tool_calls": [piece]} for piece in pieces], finish_reason="stop")


def without_ids(calls: Calls) -> Reply:
    """SGLang's and llama.cpp's early versions: no ids."""
    return Reply([_without(delta, "id") for delta in _streamed(calls)], finish_reason="tool_calls")


def with_one_id(calls: Calls) -> Reply:
    """A proxy that numbers completions, not calls: every call has the same id."""
    deltas = [
        _with(delta, lambda piece: {**piece, "id": "call"} if "id" in piece else piece) for delta in _streamed(calls)
    ]
    return Reply(deltas, finish_reason="tool_calls")


def without_index(calls: Calls) -> Reply:
    """Gemini: no index."""
    return Reply([_without(delta, "index") for delta in _streamed(calls)], finish_reason="stop")


def with_name_in_each_delta(calls: Calls) -> Reply:
    """Moonshot and some proxies: id and name are repeated with every piece, the last one without arguments included."""

    def deltas() -> Iterator[Delta]:
        for index, (name, arguments) in enumerate(calls):
            for text in [*_cut(_json(arguments)), ""]:
                yield {"tool_calls": [_piece(index, name, text)]}

    return Reply(list(deltas()), finish_reason="tool_calls")


def with_name_but_no_id_in_each_delta(calls: Calls) -> Reply:
    """The same without ids."""
    return Reply(
        [_without(delta, "id") for delta in with_name_in_each_delta(calls).pieces if isinstance(delta, Mapping)],
        finish_reason="tool_calls",
    )


def with_object_as_arguments(calls: Calls) -> Reply:
    """Ollama's own shape, passed through: arguments are an object, not text."""
    pieces = [_piece(index, name, arguments) for index, (name, arguments) in enumerate(calls)]
    return Reply([{"tool_calls": [piece]} for piece in pieces], finish_reason="tool_calls")


def with_content(calls: Calls) -> Reply:
    """Content in front of the calls, beside them and behind them."""
    first, *others = _streamed(calls)
    return Reply(["I look ", {**first, "content": "it up."}, *others, "\n"], finish_reason="tool_calls")


def with_empty_content(calls: Calls) -> Reply:
    """An empty text and a role with every delta; null where there is nothing."""
    deltas = [{"role": "assistant", "content": "", **delta} for delta in _streamed(calls)]
    return Reply([{"role": "assistant", "content": None, "tool_calls": None}, *deltas], finish_reason="tool_calls")


def as_hermes_text(calls: Calls) -> Reply:
    """A server without a parser for its model: the calls are text."""
    text = "\n".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': each})}\n</tool_call>" for name, each in calls
    )
    return Reply(_cut(text), finish_reason="stop")


def as_hermes_text_with_pythons_quotes(calls: Calls) -> Reply:
    """The same from a small model, which writes what is nearly JSON and forgets to close the tag."""
    text = "\n".join(f"<tool_call>\n{ {'name': name, 'arguments': dict(each)}!r}" for name, each in calls)
    return Reply(_cut(text), finish_reason="stop")


def as_llama_text(calls: Calls) -> Reply:
    """Llama's own form as text."""
    return Reply(_cut("".join(f"<function={name}>{_json(each)}</function>" for name, each in calls)))


def as_mistral_text(calls: Calls) -> Reply:
    """Mistral's own form as text."""
    values = [{"name": name, "arguments": dict(arguments)} for name, arguments in calls]
    return Reply(_cut(f"[TOOL_CALLS]{json.dumps(values)}"))


def as_bare_json(calls: Calls) -> Reply:
    """Nothing but the JSON of the calls, in a code fence."""
    values = [{"name": name, "parameters": dict(arguments)} for name, arguments in calls]
    return Reply(_cut(f"```json\n{json.dumps(values)}\n```"))


def legacy_function_call(calls: Calls) -> Reply:
    """Before there were tools: one `function_call`, in pieces. Of several calls the first."""
    ((name, arguments), *_) = calls
    first, *others = _cut(_json(arguments))
    pieces = [{"name": name, "arguments": first}, *({"arguments": other} for other in others)]
    return Reply([{"function_call": piece} for piece in pieces], finish_reason="function_call")


HABITS: Mapping[str, Callable[[Calls], Reply]] = {
    habit.__name__: habit
    for habit in (
        as_specified,
        with_stop,
        whole_in_one_delta,
        at_index_0,
        without_ids,
        with_one_id,
        without_index,
        with_name_in_each_delta,
        with_name_but_no_id_in_each_delta,
        with_object_as_arguments,
        with_content,
        with_empty_content,
        as_hermes_text,
        as_hermes_text_with_pythons_quotes,
        as_llama_text,
        as_mistral_text,
        as_bare_json,
    )
}
"""Those that can stream several calls."""


def _streamed(calls: Calls) -> Iterator[Delta]:
    for index, (name, arguments) in enumerate(calls):
        yield {"tool_calls": [_piece(index, name, "")]}
        for text in _cut(_json(arguments)):
            yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def _piece(index: int, name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": f"call_{index}", "type": "function", "function": function}


def _cut(text: str) -> list[str]:
    return [text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS)]


def _json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments))


def _without(delta: Delta, field: str) -> Delta:
    return _with(delta, lambda piece: {key: value for key, value in piece.items() if key != field})


def _with(delta: Delta, change: Callable[[Delta], Delta]) -> Delta:
    return {**delta, "tool_calls": [change(piece) for piece in delta["tool_calls"]]}
