"""Structured answers: a model fills in a JSON Schema from the evidence. What it wrote is checked, and once it is sent back with
what is wrong with it."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import Any

import json_repair

from kit.json_schema import SchemaRefused, first_violation
from kit.llm import (
    ChatMessage,
    Finish,
    LanguageModel,
    ModelUnavailable,
    Operation,
    ReasoningDelta,
    Request,
    Restart,
    Retraction,
    TextDelta,
)
from kit.llm.schema_calls import as_text
from services.orchestrator.answering.generation import LONGEST_ANSWER_CHARS, Generator, Listener
from services.orchestrator.answering.marks import rewrite_marks
from services.orchestrator.log.events import Citation, Evidence
from services.orchestrator.models import Turn
from services.orchestrator.prompts import rules
from services.orchestrator.prompts.messages import compose

_MARK = re.compile(r"\s?\[(\d{1,9})\]")
_FENCE = re.compile(r"```[A-Za-z]*\s*\n?(.*?)```", re.DOTALL)
_MOST_BEGINNINGS = 50
"""Braces at which an object is looked for."""
_TRIES = 2
_LOOP = re.compile(r"(.{10,400}?)\1{3,}\Z", re.DOTALL)
_LOOKED_AT_CHARS, _LOOKED_EVERY_CHARS = 2400, 200
"""Of the end of a text, in which a loop is looked for."""


class NoBlock(ModelUnavailable):
    """The model wrote nothing that follows the schema."""

    reason = "LLM_NO_BLOCK"


async def fill_in(
    generator: Generator,
    schema: Mapping[str, Any],
    question: str,
    history: Sequence[Turn],
    evidence: Sequence[Evidence],
    *,
    system: str,
    max_tokens: int,
    listener: Listener,
    called: Sequence[ChatMessage] = (),
) -> Mapping[str, Any]:
    """An object that follows the schema, but for the marks in its texts. `called` is what was called for the question.

    Raises NoBlock, QuestionTooLong, ModelUnavailable, ModelRejected.
    """
    wrong = ""
    with generator.held():  # the model that is asked is the one that the prompt was made for
        prompt = await compose(question, history, evidence, generator.model, answer_tokens=max_tokens, system=system)
        messages = [*prompt.messages, *as_text(called)]
        for _ in range(_TRIES):
            request = Request(list(messages), prompt.max_tokens, schema=schema)
            text = await _written(generator.model, request, listener, stops_loops=True)
            block = read_object(text)
            wrong = "It is no JSON object." if block is None else violation(without_marks_in(block), schema)
            if block is not None and not wrong:
                rewrite = partial(rewrite_marks, valid={each.number for each in evidence})
                return {name: _with_strings(value, rewrite) for name, value in block.items()}
            messages += [ChatMessage("assistant", text or "{}"), ChatMessage("user", rules.repair(wrong))]
    raise NoBlock(f"the model did not follow the schema of the answer: {wrong}")


async def write_text(
    generator: Generator,
    question: str,
    evidence: Sequence[Evidence],
    *,
    system: str,
    max_tokens: int,
    listener: Listener,
) -> str:
    """A text about the passages, with their numbers as marks. Raises QuestionTooLong, ModelUnavailable, ModelRejected."""
    with generator.held():
        prompt = await compose(question, (), evidence, generator.model, answer_tokens=max_tokens, system=system)
        request = Request(prompt.messages, prompt.max_tokens, Operation.SUMMARISE)
        text = await _written(generator.model, request, listener)
    return rewrite_marks(text, valid={each.number for each in evidence}).strip()


async def _written(model: LanguageModel, request: Request, listener: Listener, *, stops_loops: bool = False) -> str:
    """What the model writes. Small models get caught in objects that repeat an item to their last token: one that `stops_loops`
    reads no further then."""
    text, looked_at = "", 0
    async with aclosing(model.complete(request)) as deltas:
        async for delta in deltas:
            match delta:
                case TextDelta(piece):
                    text = (text + piece)[:LONGEST_ANSWER_CHARS]
                case Retraction():
                    text, looked_at = "", 0
                case Restart():
                    text, looked_at = "", 0
                    await listener.restarted(delta)
                case ReasoningDelta(piece):
                    await listener.thought(piece)
                case Finish():
                    break
                case _:
                    pass
            if stops_loops and len(text) - looked_at >= _LOOKED_EVERY_CHARS:
                looked_at = len(text)
                if (end := _loop_end(text)) is not None:
                    return text[:end]
    return text


def _loop_end(text: str) -> int | None:
    """Where the text is cut off that repeats its end: behind the first time, and behind a whole item if it is items that are
    repeated. None where it repeats nothing."""
    loop = _LOOP.search(text, max(0, len(text) - _LOOKED_AT_CHARS))
    if loop is None:
        return None
    start, size = loop.start(), len(loop[1])
    while text.startswith(loop[1], start - size) and start >= size:
        start -= size
    return text.rfind("}", 0, start + size) + 1 if "}" in loop[1] else start + size


def read_object(text: str) -> Mapping[str, Any] | None:
    """The JSON object in a text: the text itself, what stands in a fence, what braces enclose; else the first of these that can be
    repaired (a missing comma, a cut end). Of an object that was cut off, what its inner braces enclose is not it."""
    whole = [text.strip(), *_FENCE.findall(text)]
    is_cut = whole[0].startswith("{")
    candidates = whole if is_cut else [*whole, *_enclosed(text)]
    for candidate in candidates:
        if (found := _object(candidate)) is not None:
            return found
    for candidate in candidates:
        begins = candidate.find("{")
        if begins >= 0 and (found := _repaired(candidate[begins:])) is not None:
            return found
    return None


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _enclosed(text: str) -> Iterator[str]:
    """What begins with a brace and is a JSON object as far as it goes."""
    decoder = json.JSONDecoder()
    for match in islice(re.finditer(r"\{", text), _MOST_BEGINNINGS):
        try:
            _, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield text[match.start() : end]


def _repaired(text: str) -> Mapping[str, Any] | None:
    try:
        found = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found else None


def violation(block: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What is wrong with the block, as a sentence; empty when nothing is."""
    try:
        error = first_violation(schema, block)
    except SchemaRefused as refused:
        return f"The schema {refused}."
    if error is None:
        return ""
    return f"At {error.json_path}: {error.message[:300]}."


def without_marks_in(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """The block as its schema is compared with: a mark behind a value of a list of choices is no other value."""
    return {name: _with_strings(value, partial(_MARK.sub, "")) for name, value in block.items()}


def outline(block: Any, level: int = 0) -> str:
    """A block as text: a line for each field, items as lists."""
    return "\n".join(_lines(block, level))


def _lines(block: Any, level: int) -> Iterable[str]:
    indent = "  " * level
    if isinstance(block, Mapping):
        for name, value in block.items():
            label = str(name).replace("_", " ").capitalize()
            if isinstance(value, Mapping | list):
                yield f"{indent}- {label}:"
                yield from _lines(value, level + 1)
            else:
                yield f"{indent}- {label}: {_word(value)}"
    elif isinstance(block, list):
        for item in block:
            if isinstance(item, Mapping):
                yield from _lines(item, level)
            else:
                yield f"{indent}- {_word(item)}"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else str(value)


def with_marks_of(citations: Sequence[Citation], block: Any, evidence: Sequence[Evidence]) -> Any:
    """The block whose marks, which are numbers of passages, are numbers of citations. Marks of what is not cited are taken out."""
    first: dict[str, int] = {}
    for citation in citations:
        first.setdefault(citation.chunk_id, citation.number)
    numbers = {str(source.number): first[source.chunk_id] for source in evidence if source.chunk_id in first}

    def marked(match: re.Match[str]) -> str:
        number = numbers.get(match[1])
        return "" if number is None else match[0].replace(match[1], str(number))

    return _with_strings(block, partial(_MARK.sub, marked))


def _with_strings(value: Any, change: Callable[[str], str]) -> Any:
    """The value with all its strings changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _with_strings(member, change) for name, member in value.items()}
    return [_with_strings(item, change) for item in value] if isinstance(value, list | tuple) else value
