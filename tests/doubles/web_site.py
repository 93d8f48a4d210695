"""A web site and its feed, over real HTTP on loopback."""

import hashlib
from dataclasses import dataclass, field

from aiohttp import web

from tests.doubles.http_double import HttpDouble, Recorded


@dataclass(frozen=True)
class Resource:
    """What is at a path."""

    content: bytes
    content_type: str = "text/html"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class WebSite(HttpDouble):
    """Answers by `resources`, and with 304 to who has them already."""

    def __init__(self) -> None:
        super().__init__()
        self.resources: dict[str, Resource] = {}
        self._answered: list[tuple[str, int]] = []

    def write(self, path: str, text: str, content_type: str = "text/html") -> None:
        self.resources[path] = Resource(text.encode(), content_type)

    def page(self, path: str, text: str, *links: str) -> None:
        anchors = "".join(f'<a href="{link}">more</a>' for link in links)
        self.write(
            path, f"<html><head><title>{path}</title></head><body><main><p>{text}</p></main>{anchors}</body></html>"
        )

    def read_whole(self) -> list[str]:
        """Paths that were answered with their content since the last call."""
        paths = [path for path, status in self._answered if status == 200]
        self._answered.clear()
        return paths

    async def respond(self, request: Recorded) -> web.Response:
        found = self.resources.get(request.path)
        if found is None:
            return self._noted(request, web.Response(status=404))
        tag = f'"{hashlib.sha256(found.content).hexdigest()[:16]}"'
        if found.status == 200 and request.headers.get("if-none-match") == tag:
            return self._noted(request, web.Response(status=304))
        headers = {"content-type": found.content_type, "etag": tag, **found.headers}
        return self._noted(request, web.Response(status=found.status, body=found.content, headers=headers))

    def _noted(self, request: Recorded, answer: web.Response) -> web.Response:
        self._answered.append((request.path, answer.status))
        return answer
