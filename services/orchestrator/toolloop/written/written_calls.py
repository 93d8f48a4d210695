"""The body of a call that a model wrote as text, as calls."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.orchestrator.toolloop.written.arguments import UnreadableArguments, repaired

_FENCE = re.compile(r"```[\w-]*+\s*+")
_FUNCTION = re.compile(
    r"<function=\s*\"?(?P<name>[\w.:/-]+)\"?\s*>(?P<body>.*?)(?:</function>|(?=<function=)|$)",
    re.DOTALL | re.IGNORECASE,
)
_PARAMETER = re.compile(
    r"<parameter=\s*\"?(?P<key>[\w.-]+)\"?\s*>(?P<value>.*?)(?:</parameter>|(?=<parameter=)|$)",
    re.DOTALL | re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?P<name>[A-Za-z_][\w.-]{0,63})\s*+(?:\[ARGS\]|\[CALL_ID\][\w-]++\[ARGS\])?\s*+(?P<body>\{.*)$", re.DOTALL
)
_GLM = re.compile(r"(?P<name>[A-Za-z_][\w.-]{0,63})\s*+(?P<body><arg_key>.*)$", re.DOTALL)
_GLM_ARGUMENT = re.compile(
    r"<arg_key>(?P<key>[^<]*+)</arg_key>\s*<arg_value>(?P<value>.*?)(?:</arg_value>|$)", re.DOTALL
)
_NAME_FIRST = re.compile(r"[A-Za-z_][\w.-]{0,63}(?:\s*[{\[<]|\s*$)")
_MAX_CALLS = 32
_NAMES = ("name", "tool_name", "tool", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input")


@dataclass(frozen=True)
class WrittenCall:
    """A call as it was written. Without a name it could not be read."""

    name: str
    arguments: str


def calls_in(body: str) -> Sequence[WrittenCall]:
    """The calls of a body; none when it cannot be read as calls."""
    text = _without_fence(body)
    if "<function=" in text.lower():
        return [_function_call(each) for each in _FUNCTION.finditer(text)][:_MAX_CALLS]
    if text[:1] in ("{", "["):
        return _calls_of(_value(text))
    if (named := _NAMED.match(text)) is not None:  # Mistral's newer form
        return [WrittenCall(named["name"], named["body"].strip())]
    if (named := _GLM.match(text)) is not None:
        return [_with_parameters(named["name"], _GLM_ARGUMENT.finditer(named["body"]))]
    return ()


def _without_fence(body: str) -> str:
    text = body.strip().removesuffix("```")
    fence = _FENCE.match(text)
    return text[fence.end() if fence else 0 :].strip()


def is_call_like(body: str) -> bool:
    """Whether a body that cannot be read was an attempt at a call, rather than prose about the tag."""
    text = _without_fence(body)
    return text[:1] in ("{", "[") or text.lower().startswith("<function=")


def may_become_call(body: str) -> bool:
    """Whether what has come of a body may yet be the beginning of a call."""
    text = body.lstrip()
    if not text or text[0] in "{[" or "<function=".startswith(text[:10].lower()) or "```".startswith(text[:3]):
        return True
    return _NAME_FIRST.match(text) is not None


def _function_call(match: re.Match[str]) -> WrittenCall:
    body = match["body"].strip()
    if "<parameter=" not in body:
        return WrittenCall(match["name"], body)
    return _with_parameters(match["name"], _PARAMETER.finditer(body))


def _with_parameters(name: str, parameters: Iterator[re.Match[str]]) -> WrittenCall:
    given = {each["key"].strip(): _parameter(each["value"]) for each in parameters}
    return WrittenCall(name, json.dumps(given, ensure_ascii=False))


def _parameter(text: str) -> Any:
    """Qwen writes strings as they are and all else as JSON; what only looks like a number is brought to its type by the schema."""
    value = text.strip("\n").strip()
    if value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return repaired(text)
    except UnreadableArguments:
        return None


def _calls_of(value: Any) -> Sequence[WrittenCall]:
    """All of them, or none when one cannot be read."""
    values = value if isinstance(value, list) else [value]
    calls = [_call_of(each) for each in values[:_MAX_CALLS]]
    return [call for call in calls if call] if calls and all(calls) else ()


def _call_of(value: Any) -> WrittenCall | None:
    if not isinstance(value, Mapping):
        return None
    for inner in ("function", "function_call"):
        if isinstance(value.get(inner), Mapping):
            return _call_of(value[inner])
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
    arguments: Any = next((value[key] for key in _ARGUMENTS if key in value), {})
    if not name.strip() or not isinstance(arguments, str | Mapping | None):
        return None
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return WrittenCall(name.strip(), text)
