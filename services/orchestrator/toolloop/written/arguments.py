"""What a model writes as arguments, read: JSON, or what one repair makes of it, checked against the tool's schema."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import json_repair

from kit.json_schema import SchemaRefused, first_violation
from kit.structs import with_integers

_LONGEST_CHARS = 60_000
"""Of arguments that are JSON: see completion.py."""
_LONGEST_REPAIRED_CHARS = 4_096
_MOST_MARKS = 200
_MOST_OPENED = 20
"""Brackets, quotes, commas and colons in a text that is repaired, and opening brackets among them. The library takes cubic time for
them: half a minute for some thousands. Within these bounds it takes some milliseconds."""
_DEEPEST = 30
"""Lists and objects within each other. Arguments travel in messages that nest up to three deep for each; readers take 100."""
_LARGEST_EXACT = 2**53
"""Those messages know doubles only. A larger integer would be rounded: a person would allow another call than the model wrote."""
_LONGEST_SCHEMA_CHARS = 2_000
_MAX_SHOWN_CHARS = 200
_OPENERS = "{[("
_MARKS = "{}[]()\"',:`"


class UnreadableArguments(Exception):
    """What is wrong with the arguments, in words for the model."""


def read_arguments(text: str, schema: Mapping[str, Any], *, may_repair: bool) -> dict[str, Any]:
    """The arguments, with values brought to the schema's types where that loses nothing.

    `may_repair` also takes what is nearly JSON: code fences, trailing commas, single quotes, bare keys, Python's literals, brackets
    that are not closed. A repair may guess wrong, so it is not for calls that change something.
    Raises UnreadableArguments.
    """
    value = _parsed(text, may_repair=may_repair)
    if isinstance(value, str) and value.lstrip().startswith("{") and may_repair:  # encoded twice
        value = _parsed(value, may_repair=True)
    if not _is_text(value):
        raise UnreadableArguments("The arguments hold characters that are no Unicode text. Write them again.")
    if not isinstance(value, dict):
        raise UnreadableArguments(f"The arguments must be one JSON object. {_asked(schema)}")
    _check_holdable(value)
    value = _coerced(value, schema)
    _check_holdable(value)  # a text may stand for more of them
    arguments: dict[str, Any] = with_integers(value)  # so that the hash is of what a person is shown
    try:
        error = first_violation(schema, arguments)
    except SchemaRefused as refused:
        raise UnreadableArguments(f"The schema of the arguments {refused}.") from refused
    if error is not None:
        place = f"`{error.json_path.removeprefix('$.')}`: " if error.json_path != "$" else ""
        raise UnreadableArguments(
            f"The arguments do not fit: {place}{error.message[:_MAX_SHOWN_CHARS]}. {_asked(schema)}"
        )
    return arguments


def _parsed(text: str, *, may_repair: bool) -> Any:
    if not text.strip():
        return {}
    if len(text) > _LONGEST_CHARS:
        raise UnreadableArguments(f"The arguments are too long: at most {_LONGEST_CHARS} characters.")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        if not may_repair:
            raise UnreadableArguments(
                f"The arguments are not JSON ({type(error).__name__}). Write them again."
            ) from error
    return repaired(text)


def repaired(text: str) -> Any:
    """The value that a text which is nearly JSON stands for. Raises UnreadableArguments."""
    if not _is_short_enough(text):
        raise UnreadableArguments("The arguments are not JSON, and too long to guess what they mean. Write them again.")
    try:
        value = json_repair.loads(text, skip_json_loads=True)
        json.dumps(value, allow_nan=False)
    except Exception as error:  # the library asserts what it takes for granted
        raise UnreadableArguments("The arguments are not JSON. Write them again.") from error
    return value


def _is_short_enough(text: str) -> bool:
    marks, opened = (sum(map(text.count, each)) for each in (_MARKS, _OPENERS))
    return len(text) <= _LONGEST_REPAIRED_CHARS and marks <= _MOST_MARKS and opened <= _MOST_OPENED


def _is_text(value: Any) -> bool:
    """Whether it can be written down: JSON can escape half of a character."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_holdable(arguments: Any) -> None:
    """Raises UnreadableArguments for what a message cannot hold as it was written."""
    level: list[Any] = [arguments]
    for _ in range(_DEEPEST):
        members = [each for value in level for each in (value.values() if isinstance(value, dict) else value)]
        for each in members:
            _check_number(each)
        level = [each for each in members if isinstance(each, dict | list)]
    if level:
        raise UnreadableArguments(
            f"The arguments nest lists and objects more than {_DEEPEST} deep. Write them again, flatter."
        )


def _check_number(value: Any) -> None:
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        raise UnreadableArguments(
            f"The number {str(value)[:40]} is too large to be passed on exactly: at most {_LARGEST_EXACT}. Write them again, "
            "with it as a string where the schema takes one."
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise UnreadableArguments("The arguments hold a number that is too large. Write them again with a smaller one.")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _asked(schema: Mapping[str, Any]) -> str:
    return f"Call the tool again with arguments that follow this JSON Schema: {_schema_text(schema)}"


def _schema_text(schema: Mapping[str, Any]) -> str:
    """What must be there comes first: a long schema is cut."""
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    ordered = {name: properties[name] for name in sorted(properties, key=lambda name: name not in required)}
    shown = {**({"required": required} if required else {}), **schema, "properties": ordered}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))[:_LONGEST_SCHEMA_CHARS]


def _coerced(value: Any, schema: Any) -> Any:
    """`value` with strings read as the numbers, booleans, lists and objects that the schema wants, whole floats as integers, and
    a lone value where a list is wanted as a list of one, also under the name of one (`query` for `queries`). A null for what may
    be left out is left out: models write it for "no value"."""
    if not isinstance(schema, Mapping):
        return value
    kinds = _kinds(schema)
    if isinstance(value, dict) and (not kinds or "object" in kinds):
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        return {
            name: _coerced(each, properties.get(name))
            for name, each in _named_as_wanted(value, properties)
            if each is not None or name in required or name not in properties or _takes_null(properties[name])
        }
    if isinstance(value, list) and (not kinds or "array" in kinds):
        return [_coerced(each, schema.get("items")) for each in value]
    if not kinds or _is_of(value, kinds):
        return value
    return _converted(value, kinds, schema)


def _named_as_wanted(value: Mapping[str, Any], properties: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, each in value.items():
        plurals = (f"{name}s", f"{name.removesuffix('y')}ies")
        wanted = [plural for plural in plurals if name not in properties and plural in properties.keys() - value.keys()]
        yield wanted[0] if wanted and "array" in _kinds(properties[wanted[0]]) else name, each


def _kinds(schema: Mapping[str, Any]) -> frozenset[str]:
    kind = schema.get("type", ())
    return frozenset([kind] if isinstance(kind, str) else kind)


def _takes_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return True
    return not (kinds := _kinds(schema)) or "null" in kinds


def _is_of(value: Any, kinds: frozenset[str]) -> bool:
    match value:
        case bool():
            return "boolean" in kinds
        case str():
            return "string" in kinds
        case int():
            return bool(kinds & {"integer", "number"})
        case float():
            return "number" in kinds
        case None:
            return "null" in kinds
        case _:
            return True


def _converted(value: Any, kinds: frozenset[str], schema: Mapping[str, Any]) -> Any:
    if isinstance(value, float) and "integer" in kinds and value.is_integer():
        return int(value)
    if isinstance(value, str) and (read := _read(value, kinds)) is not None:
        return _coerced(read, schema) if isinstance(read, dict | list) else read
    if isinstance(value, int | float) and not isinstance(value, bool) and kinds == {"string"}:
        return json.dumps(value)
    if "array" in kinds and isinstance(value, str | int | float) and not isinstance(value, bool):
        return [_coerced(value, schema.get("items"))]
    return value


def _read(text: str, kinds: frozenset[str]) -> Any:
    """What the text says as one of these kinds; None when it is none of them."""
    if "boolean" in kinds and text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, float) and "number" not in kinds:
        value = int(value) if "integer" in kinds and value.is_integer() else None
    if isinstance(value, bool) or value is None:
        return None
    wanted = {dict: "object", list: "array", int: "integer", float: "number"}.get(type(value))
    if wanted == "integer" and kinds & {"integer", "number"}:
        return value
    return value if wanted in kinds else None
