"""What came of a run, as both shapes of OpenAI's API tell it: a text with its marks, or JSON by a schema, or calls of functions."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kit.errors import GroundworkError
from kit.vocabulary.run_fold import WAITING, RunFold
from services.gateway.models import Json, RunEvent
from services.gateway.streams.answers import answered

_WAITS = "This needs a decision before it goes on: see GET /v1/runs/{run_id}."
_MARK = re.compile(r"\[(\d{1,4})\]")
_MARK_IN_VALUE = re.compile(r"\s?\[(\d{1,4})\]")
_PLACE = re.compile("\ue000(\\d{1,4})\ue001")
"""Characters of private use: what stands between two of them is no text of the answer."""
_ENDINGS = {"ANSWER_LENGTH": "length", "ANSWER_FILTERED": "content_filter"}


@dataclass(frozen=True)
class Mark:
    """A citation mark: its place in the content, in characters (code points), and the number of its citation."""

    start: int
    end: int
    number: int


@dataclass(frozen=True)
class AnswerContent:
    """What an answer consists of."""

    text: str = ""
    marks: Sequence[Mark] = ()
    refusal: str | None = None
    """Instead of JSON: why there is none, or what the documents say in words."""
    calls: Sequence[Json] = ()
    """Functions that the caller is to call: `call_id`, `name`, `arguments`."""
    ending: str = "stop"
    """`stop`, `tool_calls`, `length` or `content_filter`."""


def content_of(run: RunFold, *, by_schema: bool, sent: str | None = None) -> AnswerContent:
    """The content of a run that has ended or waits. `sent` is the text that a client has, where that is another."""
    answer = run.answer or {}
    calls = answer.get("function_calls") or ()
    if calls:
        return AnswerContent(run.text, calls=calls, ending="tool_calls")
    ending = next((_ENDINGS[each["reason"]] for each in run.degraded if each["reason"] in _ENDINGS), "stop")
    if by_schema and (run.status != WAITING or answer.get("block") is not None):
        if answer.get("block") is None:
            return AnswerContent(refusal=run.text, ending=ending)
        text, marks = _as_json(answer["block"])
        return AnswerContent(text, marks, ending=ending)
    text = _with_waits(run) if sent is None else sent
    marks = [Mark(found.start(), found.end(), int(found[1])) for found in _MARK.finditer(text)]
    return AnswerContent(text, marks, ending=ending)


def _with_waits(run: RunFold) -> str:
    """What was answered, and that the run waits if it does: an e-mail with the answer is asked about after it."""
    waits = _WAITS.format(run_id=run.run_id) if run.status == WAITING else ""
    return "\n\n".join(filter(None, [run.text, waits]))


def _as_json(block: Json) -> tuple[str, list[Mark]]:
    """The block as JSON text without the marks in its values, and where those stood."""
    text = json.dumps(_with_places(block), ensure_ascii=False)
    marks: list[Mark] = []
    written, at = "", 0
    for found in _PLACE.finditer(text):
        written += text[at : found.start()]
        marks.append(Mark(len(written), len(written), int(found[1])))
        at = found.end()
    return written + text[at:], marks


def _with_places(value: Any) -> Any:
    if isinstance(value, str):
        return _MARK_IN_VALUE.sub("\ue000\\1\ue001", value.replace("\ue000", "").replace("\ue001", ""))
    if isinstance(value, dict):
        return {name: _with_places(each) for name, each in value.items()}
    return [_with_places(each) for each in value] if isinstance(value, list) else value


@dataclass
class Streamed:
    """The text that a client has, while the run goes on. An answer by a schema is sent once it is whole."""

    by_schema: bool = False
    run: RunFold = field(default_factory=RunFold)
    sent: str = ""
    failure: GroundworkError | None = None

    @property
    def content(self) -> AnswerContent:
        """What the client has been sent, and the calls that follow."""
        return content_of(self.run, by_schema=self.by_schema, sent=None if self.by_schema else self.sent)

    def _take(self, event: RunEvent) -> str:
        """What the event adds to the text that was sent."""
        self.run.add(event.kind, event.data)
        if self.by_schema or not self.run.text.startswith(self.sent):
            return ""
        added = self.run.text[len(self.sent) :]
        self.sent += added
        return added

    def _finish(self) -> str:
        """What is still to be said at the end. Notes why the run has no answer."""
        if self.run.status == WAITING and not self.by_schema:
            return _with_waits(self.run)[len(self.run.text) :]
        if self.run.status == WAITING:
            return self.content.text
        try:
            answered(self.run)
        except GroundworkError as error:
            self.failure = error
            return ""
        return self.content.text if self.by_schema else ""

    async def additions(self, first: RunEvent, events: AsyncIterator[RunEvent]) -> AsyncGenerator[str, None]:
        """Pieces of text as they come, until the run ends or waits."""
        if added := self._take(first):
            yield added
        try:
            async for event in events:
                if added := self._take(event):
                    yield added
                if self.run.status == WAITING:
                    break
        except GroundworkError as error:
            self.failure = error
            return
        if last := self._finish():
            self.sent += last
            yield last


@dataclass(frozen=True)
class Piece:
    """One server-sent event, without an id: these streams cannot be resumed."""

    data: Json
    event: str = ""

    def encoded(self) -> bytes:
        """The event on the wire."""
        head = f"event: {self.event}\n" if self.event else ""
        return f"{head}data: {json.dumps(self.data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode(
            "utf-8", "replace"
        )


def known(run: RunFold, sent: str | None = None, *, by_schema: bool = False) -> Json:
    """What OpenAI's shapes have no members for. `text`: the checked answer, where it is another than what was sent."""
    answer = run.answer or {}
    is_other = sent is not None and not by_schema and run.text != sent
    return {
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "status": run.status,
        "support_status": answer.get("support_status"),
        "text": run.text if is_other else None,
        "degraded": run.degraded,
        **({"citations": answer.get("citations", [])} if by_schema else {}),
    }
