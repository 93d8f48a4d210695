"""Checks of values against JSON Schemas that strangers wrote: callers, servers of tools, people who bring agents.

A schema is a program. Values are checked with a copy of it that has only keywords that are known to end: no regular expression, no
address that the library would fetch, no other dialect inside. Each check has a bound of steps: a few references can take hours.
"""

from collections.abc import Iterator, Mapping, Set
from contextvars import ContextVar
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

_MOST_SCHEMAS, _DEEPEST = 1_000, 64
"""Of a schema: schemas in it, and how deep they lie."""
_MOST_STEPS = 20_000
"""Of a check: keywords applied to values, 0.2 s."""
_ONE = {
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
}
_LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
_MAPS = {"$defs", "definitions", "dependentSchemas", "properties"}
_PLAIN = {
    "const",
    "dependentRequired",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "required",
    "type",
    "uniqueItems",
}
_LEFT_OUT = {"$dynamicRef", "pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties"}
_STRICTER_WHEN_LAXER = {"else", "if", "maxContains", "not", "oneOf", "then"}
"""What can refuse more values where something in it is left out."""
_steps: ContextVar[int] = ContextVar("_steps", default=0)


class SchemaRefused(ValueError):
    """Why a schema cannot be used, as the end of a sentence that begins with what it is: "refers to …", "is no …"."""


class _TooManySteps(Exception):
    pass


def check_schema(schema: Mapping[str, Any]) -> int:
    """Returns how many schemas it holds, itself among them. The check takes 0.2 ms for each.

    Raises SchemaRefused for one that values cannot be checked against.
    """
    copy = _Copy(schema)
    try:
        Draft202012Validator.check_schema(copy.schema)
    except SchemaError as error:
        raise SchemaRefused(f"is no JSON Schema: {error.message[:300]}") from None
    return copy.count


def first_violation(schema: Mapping[str, Any], value: Any, *, trusted: bool = False) -> ValidationError | None:
    """What is wrong with the value, the most telling of all; None when nothing is. `trusted` schemas are ours: their patterns hold.

    Raises SchemaRefused.
    """
    if trusted:
        return _first(Draft202012Validator(schema, registry=Registry()), value)
    steps = _steps.set(_MOST_STEPS)
    try:
        return _first(_Counting(_Copy(schema).schema, registry=Registry()), value)
    except _TooManySteps:
        raise SchemaRefused(f"takes more than {_MOST_STEPS} steps to check; make it simpler") from None
    except RecursionError:
        raise SchemaRefused("refers to itself without end") from None
    except Unresolvable as error:
        raise SchemaRefused(f"refers to {str(error.ref)[:80]!r}, which is not in it") from None
    finally:
        _steps.reset(steps)


def _first(validator: Any, value: Any) -> ValidationError | None:
    error: ValidationError | None = best_match(validator.iter_errors(value))
    return error


class _Copy:
    """A schema with the keywords that can be checked safely. It lets more through than the schema, never less.

    Raises SchemaRefused.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.count = 0
        self._places: set[str] = set()
        self._references: set[str] = set()
        self._is_laxer = False
        self.schema: dict[str, Any] = self._of(schema, "#", 0)
        for reference in self._references:
            if not reference.startswith("#"):
                raise SchemaRefused(f"refers to {reference[:80]!r}; write it into the schema")
            if unquote(reference).rstrip("/") not in self._places:
                raise SchemaRefused(f"refers to {reference[:80]!r}, where it has no schema")
        if self._is_laxer:
            self.schema = _without(self.schema, _STRICTER_WHEN_LAXER)

    def _of(self, schema: Any, place: str, depth: int) -> Any:
        self.count += 1
        if self.count > _MOST_SCHEMAS or depth > _DEEPEST:
            raise SchemaRefused(f"is too large: at most {_MOST_SCHEMAS} schemas, {_DEEPEST} deep")
        self._places.add(place)
        if not isinstance(schema, Mapping):
            return schema  # true, false, or what the check of the schema refuses
        if isinstance(reference := schema.get("$ref"), str):
            self._references.add(reference)
        self._is_laxer |= bool(_LEFT_OUT & schema.keys())
        copy = {}
        for keyword, value in schema.items():
            if keyword == "additionalProperties" and "patternProperties" in schema:
                continue  # names that a pattern allows would be additional
            if keyword in _PLAIN or keyword == "$ref":
                copy[keyword] = value
            elif keyword in _ONE:
                copy[keyword] = self._of(value, f"{place}/{keyword}", depth + 1)
            elif keyword in _LISTS or keyword in _MAPS:
                copy[keyword] = self._several(value, keyword, f"{place}/{keyword}", depth + 1)
        return copy

    def _several(self, schemas: Any, keyword: str, place: str, depth: int) -> Any:
        if keyword in _LISTS and isinstance(schemas, list):
            return [self._of(each, f"{place}/{number}", depth) for number, each in enumerate(schemas)]
        if keyword in _MAPS and isinstance(schemas, Mapping):
            return {name: self._of(each, f"{place}/{_escaped(name)}", depth) for name, each in schemas.items()}
        raise SchemaRefused(f"is no JSON Schema: {keyword} is no {'array' if keyword in _LISTS else 'object'}")


def _without(schema: Any, keywords: Set[str]) -> Any:
    """The copy without these keywords, wherever they stand."""
    if not isinstance(schema, dict):
        return schema
    left: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in keywords:
            continue
        if keyword in _LISTS:
            left[keyword] = [_without(each, keywords) for each in value]
        elif keyword in _MAPS:
            left[keyword] = {name: _without(each, keywords) for name, each in value.items()}
        else:
            left[keyword] = _without(value, keywords) if keyword in _ONE else value
    return left


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _counted(apply: Any) -> Any:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        left = _steps.get() - 1
        if left < 0:
            raise _TooManySteps
        _steps.set(left)
        yield from apply(validator, value, instance, schema) or ()

    return counted


_Counting: Any = validators.extend(  # type: ignore[no-untyped-call] # the library has no types
    Draft202012Validator,
    {keyword: _counted(apply) for keyword, apply in Draft202012Validator.VALIDATORS.items()},
)
