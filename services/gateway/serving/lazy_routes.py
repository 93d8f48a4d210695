"""Routes whose modules are imported when they are first asked for, so that a start of the gateway does not pay for them."""

import asyncio
from collections.abc import Callable

from starlette.datastructures import URLPath
from starlette.routing import BaseRoute, Match, NoMatchFound, Router
from starlette.types import Receive, Scope, Send


class LazyRoutes(BaseRoute):
    """All routes below a path."""

    def __init__(self, path: str, load: Callable[[], Router]) -> None:
        """`load` imports the routes; it runs in a thread, so that other requests go on meanwhile."""
        self._prefix = f"{path}/"
        self._load = load
        self._loading = asyncio.Lock()
        self._router: Router | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """All HTTP requests below the path; the routes decide about the rest of it."""
        is_below = scope["type"] == "http" and scope["path"].startswith(self._prefix)
        return (Match.FULL if is_below else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: object) -> URLPath:
        """No address of such a route is made here."""
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Has the routes answer."""
        async with self._loading:
            if self._router is None:
                self._router = await asyncio.to_thread(self._load)
            router = self._router
        await router(scope, receive, send)
