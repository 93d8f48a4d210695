"""A Kubernetes API server that keeps objects: created once, changed only by whoever has seen the last version, listed by label.

It knows no kinds and checks no schema; what depends on them is tried in tests/cluster against a real one.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from tests.doubles.http_double import HttpDouble, Recorded

Object = dict[str, Any]
NAMESPACE = "rag"


class KubernetesDouble(HttpDouble):
    """Objects by their path, as `/api/v1/namespaces/rag/secrets/groundwork-nats-gateway`."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[str, Object] = {}
        self.texts: dict[str, str] = {}
        """Logs, by path."""
        self.before: list[Callable[[Recorded], None]] = []
        """Called with each request before it is done: what somebody else does at that moment."""
        self._versions = itertools.count(1)

    def write_kubeconfig(self, path: Path) -> None:
        """A file for KUBECONFIG that leads here."""
        named = {"name": "double"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "double",
            "clusters": [{**named, "cluster": {"server": self.url}}],
            "users": [{**named, "user": {"token": "secret"}}],
            "contexts": [{**named, "context": {"cluster": "double", "user": "double", "namespace": NAMESPACE}}],
        }
        path.write_text(yaml.safe_dump(config))

    def put(self, path: str, content: Mapping[str, Any]) -> Object:
        """An object that is there, whatever was."""
        *_, namespace, _, name = path.split("/")
        made = {**content, "metadata": {"name": name, "namespace": namespace, **content.get("metadata", {})}}
        made["metadata"]["resourceVersion"] = str(next(self._versions))
        for key, value in made.pop("stringData", {}).items():
            made.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()
        self.objects[path] = made
        return made

    def secret(self, name: str) -> dict[str, str] | None:
        """What a Secret holds, as text."""
        found = self.objects.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}")
        return found and {key: base64.b64decode(value).decode() for key, value in found["data"].items()}

    async def respond(self, request: Recorded) -> web.Response:
        for act in list(self.before):
            act(request)
        if request.method == "POST":
            return self._create(request)
        if request.path in self.texts:
            return web.Response(text=self.texts[request.path])
        if request.path in self.objects:
            return self._about(request, self.objects[request.path])
        if request.method == "GET" and self._is_collection(request.path):
            return self.answer(200, {"kind": "List", "metadata": {}, "items": self._listed(request)})
        return self._refused(404, "NotFound", f'"{request.path.rpartition("/")[2]}" not found')

    def _about(self, request: Recorded, there: Object) -> web.Response:
        if request.method == "GET":
            return self.answer(200, there)
        if request.method == "DELETE":
            return self.answer(200, self.objects.pop(request.path))
        seen = request.body.get("metadata", {}).get("resourceVersion")
        if seen not in {None, there["metadata"]["resourceVersion"]}:
            return self._refused(409, "Conflict", "the object has been modified")
        content = request.body if request.method == "PUT" else _merged(there, request.body)
        return self.answer(200, self.put(request.path, content))

    def _create(self, request: Recorded) -> web.Response:
        path = f"{request.path}/{request.body['metadata']['name']}"
        if path in self.objects:
            return self._refused(409, "AlreadyExists", f'"{path.rpartition("/")[2]}" already exists')
        return self.answer(201, self.put(path, request.body))

    @staticmethod
    def _is_collection(path: str) -> bool:
        parts = path.strip("/").split("/")
        below = parts[2:] if parts[0] == "api" else parts[3:]
        return len(below) in {1, 3}

    def _listed(self, request: Recorded) -> list[Object]:
        wanted = _selected(request.query.get("labelSelector", ""))
        return [
            found
            for path, found in sorted(self.objects.items())
            if path.rpartition("/")[0] == request.path
            and all((found["metadata"].get("labels") or {}).get(label) in values for label, values in wanted.items())
        ]

    def _refused(self, status: int, reason: str, message: str) -> web.Response:
        return self.answer(status, refusal(status, reason, message))


def refusal(status: int, reason: str, message: str) -> str:
    """What an API server answers instead."""
    return json.dumps({"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": status})


def _selected(selector: str) -> dict[str, set[str]]:
    """Which values each label may have: `a=b` and `a in (b,c)`, joined by commas."""
    terms = re.findall(r"([^,\s=]+)(?:=([^,]+)| in \(([^)]*)\))", selector)
    return {label: {value} if value else set(values.split(",")) for label, value, values in terms}


def _merged(there: Object, change: Object) -> Object:
    """JSON merge patch (RFC 7396)."""
    merged = dict(there)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = _merged(merged.get(key) or {}, value)
        else:
            merged[key] = value
    return merged
