"""A double of GitHub, made from its published API (tests/data/github/api.json): it refuses requests that the API does not describe.
Its answers are the published examples, with changes that must fit the published schemas."""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from jsonschema import Draft202012Validator

from tests.service.tools.http_server import Asked, HttpServer, said

API: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data" / "github" / "api.json").read_text())
TOKEN = "github_pat_11AAA0secret"
_PATHS = [
    (
        re.compile(
            re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)).replace("(?P<path>[^/]+)", "(?P<path>.+)")
        ),
        path,
    )
    for path in sorted(API["paths"], key=len, reverse=True)
] + [(re.compile(r"/repos/[^/]+/[^/]+/contents"), "/repos/{owner}/{repo}/contents/{path}")]


def example(path: str, method: str = "get") -> Any:
    """The answer that GitHub publishes as an example."""
    return copy.deepcopy(API["paths"][path][method]["example"])


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is one of a schema of the API."""
    return bool(Draft202012Validator({**schema, "components": API["components"]}).is_valid(value))


@dataclass
class Github:
    """Answers by path and method: what a test has put there, else the example."""

    answers: dict[tuple[str, str], Callable[[Asked], Any]] = field(default_factory=dict)
    """By the API's path and the method. JSON, or the bytes of a whole answer; None: no answer at all."""
    made: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of what was made."""

    def server(self) -> HttpServer:
        return HttpServer(self._answer)

    def _answer(self, asked: Asked) -> bytes | None:
        path = unquote(urlsplit(asked.target).path)
        place = next((known for pattern, known in _PATHS if pattern.fullmatch(path)), None)
        method = asked.method.lower()
        if place is None or method not in API["paths"][place]:
            return _said({"message": "Not Found", "status": "404"}, "404 Not Found")
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return _said({"message": "Bad credentials", "status": "401"}, "401 Unauthorized")
        operation = API["paths"][place][method]
        _check(asked, operation)
        if "body" in operation:
            self.made.append(json.loads(asked.body))
        found = self.answers.get((place, method), lambda _: example(place, method))(asked)
        if found is None or isinstance(found, bytes):
            return found
        assert fits(found, operation["answer"]), "the test's answer is none that GitHub gives"
        return _said(found, f"{operation['status']} OK")


def _check(asked: Asked, operation: dict[str, Any]) -> None:
    """Raises AssertionError, which the client sees as a connection that ends."""
    assert "application/vnd.github" in asked.headers["accept"]
    assert asked.headers["x-github-api-version"] == "2022-11-28"
    assert asked.headers["user-agent"]
    for name, text in parse_qsl(urlsplit(asked.target).query):
        schema = operation["parameters"][name]
        assert fits(int(text) if schema.get("type") == "integer" else text, schema), name
    assert ("body" in operation) == bool(asked.body)
    assert "body" not in operation or fits(json.loads(asked.body), operation["body"])


def _said(value: Any, status: str, **headers: str) -> bytes:
    return said(json.dumps(value), status, "application/json; charset=utf-8", **headers)


def refused(status: str, message: str, **headers: str) -> Callable[[Asked], bytes]:
    """An answer that refuses, for `answers`."""
    return lambda _: _said({"message": message, "documentation_url": "https://docs.github.com/rest"}, status, **headers)
