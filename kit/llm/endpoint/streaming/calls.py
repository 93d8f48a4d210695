"""Tool calls put together from their pieces. The API says: id and name come with the first piece, `index` says which call a piece
belongs to. Ollama sends index 0 for all (ollama/ollama#15457), Gemini none and no ids, and a model may write the call as text."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kit.llm.endpoint.streaming.unicode import SurrogateJoiner, well_formed
from kit.llm.messages import TextDelta, ToolCallDelta


@dataclass
class _Call:
    index: int
    wire_id: str
    name: str
    arguments: str = ""


class CallAssembly:
    """The calls of one completion."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._calls: list[_Call] = []
        self._by_wire_index: dict[object, _Call] = {}
        self._surrogates = SurrogateJoiner()
        self._written = ""

    @property
    def count(self) -> int:
        return len(self._calls)

    def feed(self, piece: dict[str, Any]) -> Iterator[ToolCallDelta]:
        """One element of a delta's `tool_calls`."""
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        wire_id, name = _text(piece.get("id")), _text(function.get("name"))
        arguments = function.get("arguments")
        text = json.dumps(arguments) if isinstance(arguments, dict) else _text(arguments)
        wire_index = piece.get("index") if isinstance(piece.get("index"), int) else None
        call = self._by_wire_index.get(wire_index)
        if call is None or _is_another(call, wire_id, name, text):
            call = self._opened(wire_index, wire_id, name)
            yield ToolCallDelta(
                call.index, self._append(call, text), wire_id or self._new_id(), name, _signature(piece)
            )
        elif appended := self._append(call, text):
            yield ToolCallDelta(call.index, appended)

    def finish(self, *, is_whole: bool) -> Iterator[ToolCallDelta | TextDelta]:
        """What was held back. A call written as text that never ended counts as far as it got; of an answer that was cut off, it is
        dropped when it cannot be read."""
        yield from (delta for delta in self.end_written() if is_whole or isinstance(delta, ToolCallDelta))
        for call in self._calls:
            if held := self._surrogates.finish(call.index):
                yield ToolCallDelta(call.index, held)

    def feed_written(self, text: str) -> None:
        """A piece of a call that the model writes as text, `{"name": …, "arguments": …}`."""
        self._written += text

    def end_written(self) -> Iterator[ToolCallDelta | TextDelta]:
        """The call that was written as text. What cannot be read is given back as it was: the tool loop may know how to mend it,
        and does not show it to a reader."""
        written, self._written = self._written.strip(), ""
        if not written:
            return
        value = _value(written)
        if isinstance(value, dict) and _text(value.get("name")) and "arguments" in value:
            arguments = value["arguments"]
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            call = self._opened(object(), "", value["name"])
            yield ToolCallDelta(call.index, self._append(call, text), self._new_id(), call.name, is_written=True)
        else:
            yield TextDelta(f"<tool_call>{written}</tool_call>")

    def _opened(self, wire_index: object, wire_id: str, name: str) -> _Call:
        call = _Call(len(self._calls), wire_id, name)
        self._calls.append(call)
        self._by_wire_index[wire_index] = call
        return call

    def _append(self, call: _Call, text: str) -> str:
        whole = self._surrogates.feed(call.index, text)
        call.arguments += whole
        return whole


def _is_another(call: _Call, wire_id: str, name: str, text: str) -> bool:
    """Whether a piece under the index of `call` begins another one. Servers repeat the name with each piece, and one id for all
    calls; what is behind arguments that are whole is the next call, unless it says nothing new."""
    if wire_id and call.wire_id and wire_id != call.wire_id:
        return True
    if not name or not _is_json(call.arguments):
        return False
    return bool(text) or name != call.name


def _is_json(text: str) -> bool:
    return _value(text) is not None


def _value(text: str) -> Any:
    """The JSON value; None for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _signature(piece: dict[str, Any]) -> str:
    value: Any = piece
    for name in ("extra_content", "google", "thought_signature"):
        value = value.get(name) if isinstance(value, dict) else None
    return _text(value)


def _text(value: Any) -> str:
    return well_formed(value) if isinstance(value, str) else ""
