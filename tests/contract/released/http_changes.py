"""What a client of one OpenAPI document could not do any more with another. Additions are fine: operations, fields of answers,
fields of requests that may be left out, kinds of events, values of enums."""

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
_AT_MOST = ("maximum", "maxLength", "maxItems", "maxProperties")
_AT_LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems")


def breaking_changes(old: Json, new: Json) -> list[str]:
    """One line each, with its place."""
    return sorted(set(_Comparison(old, new).all()))


class _Comparison:
    def __init__(self, old: Json, new: Json) -> None:
        self._old = old
        self._new = new
        self._seen: set[tuple[str, str, bool]] = set()

    def all(self) -> Iterator[str]:
        for path, operations in self._old["paths"].items():
            for verb, operation in operations.items():
                place = f"{verb.upper()} {path}"
                now = self._new["paths"].get(path, {}).get(verb)
                if now is None:
                    yield f"{place} is gone"
                else:
                    yield from self._operation(place, operation, now)

    def _operation(self, place: str, old: Json, new: Json) -> Iterator[str]:
        yield from self._parameters(place, old.get("parameters", []), new.get("parameters", []))
        body, new_body = old.get("requestBody", {}), new.get("requestBody", {})
        if new_body.get("required") and not body.get("required"):
            yield f"{place}: the body is required now"
        yield from self._contents(f"{place} request", body, new_body, is_request=True)
        for status, answer in old["responses"].items():
            now = new["responses"].get(status)
            if now is not None:
                yield from self._contents(f"{place} {status}", answer, now, is_request=False)
            elif status.startswith("2"):
                yield f"{place}: it never answers {status} any more"

    def _parameters(self, place: str, old: list[Json], new: list[Json]) -> Iterator[str]:
        before = {(each["in"], each["name"]): each for each in old}
        after = {(each["in"], each["name"]): each for each in new}
        for key in before.keys() - after.keys():
            yield f"{place}: the parameter {key[1]} is gone"
        for key, parameter in after.items():
            if parameter.get("required") and not before.get(key, {}).get("required"):
                yield f"{place}: the parameter {key[1]} is required now"
        for key in before.keys() & after.keys():
            schemas = before[key].get("schema", {}), after[key].get("schema", {})
            yield from self._schema(f"{place} {key[1]}", *schemas, is_request=True)

    def _contents(self, place: str, old: Json, new: Json, *, is_request: bool) -> Iterator[str]:
        for media_type, content in old.get("content", {}).items():
            now = new.get("content", {}).get(media_type)
            if now is None:
                yield f"{place}: {media_type} is gone"
                continue
            yield from self._schema(place, content.get("schema", {}), now.get("schema", {}), is_request=is_request)
            for kind, schema in content.get("x-event-schemas", {}).items():
                if kind not in now.get("x-event-schemas", {}):
                    yield f"{place}: the event {kind} is gone"
                else:
                    yield from self._schema(f"{place} event {kind}", schema, now["x-event-schemas"][kind])

    def _schema(self, place: str, old: Json, new: Json, *, is_request: bool = False) -> Iterator[str]:
        key = (old.get("$ref", ""), new.get("$ref", ""), is_request)
        if all(key[:2]) and key in self._seen:
            return
        self._seen.add(key)
        old, new = _resolved(self._old, old), _resolved(self._new, new)
        if "anyOf" in old or ("anyOf" in new and "type" not in new):
            yield from self._alternatives(place, old, new, is_request=is_request)
        yield from _own_changes(place, old, new, is_request=is_request)
        yield from self._properties(place, old, new, is_request=is_request)
        for part in ("items", "additionalProperties"):
            if isinstance(old.get(part), dict) and isinstance(new.get(part), dict):
                yield from self._schema(f"{place}[]", old[part], new[part], is_request=is_request)

    def _alternatives(self, place: str, old: Json, new: Json, *, is_request: bool) -> Iterator[str]:
        for each in old.get("anyOf", [old]):
            if each.get("type") == "null" and not is_request:
                continue  # an answer that is there more often
            problems = [
                [*_Comparison(self._old, self._new)._schema(place, each, now, is_request=is_request)]
                for now in new.get("anyOf", [new])
            ]
            yield from min(problems, key=len)

    def _properties(self, place: str, old: Json, new: Json, *, is_request: bool) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        for name in before.keys() - after.keys():
            yield f"{place}: the field {name} is gone"
        required, now_required = set(old.get("required", [])), set(new.get("required", []))
        if is_request:
            yield from (f"{place}: the field {name} is required now" for name in now_required - required)
        else:
            may_miss = (required & after.keys()) - now_required
            yield from (f"{place}: the field {name} may be missing now" for name in may_miss)
        for name in before.keys() & after.keys():
            yield from self._schema(f"{place}.{name}", before[name], after[name], is_request=is_request)


def _own_changes(place: str, old: Json, new: Json, *, is_request: bool) -> Iterator[str]:
    for word in ("type", "const"):
        if word in old and word in new and old[word] != new[word]:
            yield f"{place}: {word} {old[word]} is {new[word]} now"
    if not is_request:
        return
    gone = set(old.get("enum", [])) - set(new.get("enum", old.get("enum", [])))
    if gone:
        yield f"{place}: {sorted(gone)} is refused now"
    for word in _AT_MOST:
        if word in new and new[word] < old.get(word, float("inf")):
            yield f"{place}: {word} is {new[word]} now"
    for word in _AT_LEAST:
        if word in new and new[word] > old.get(word, float("-inf")):
            yield f"{place}: {word} is {new[word]} now"


def _resolved(document: Json, schema: Json) -> Json:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema
