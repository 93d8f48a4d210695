"""Which scope a route needs. The service behind it asks for the same one; the gateway asks first, since a route may tell something
by itself, ask several services, or read a large body. One declaration a route, which its entry in the OpenAPI document shows."""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, params
from fastapi.routing import APIRoute, iter_route_contexts

from kit.access.principal import ADMIN, INGEST, OPERATOR, QUERY, Principal
from services.gateway.access.auth import authenticated


class _Needs:
    """Refuses callers without the scope before anything else of the route is looked at."""

    def __init__(self, scope: str) -> None:
        self.scope = scope

    async def __call__(self, principal: Annotated[Principal, Depends(authenticated)]) -> None:
        """Raises PermissionDenied."""
        if self.scope:
            principal.require(self.scope)


NEEDS_QUERY: Any = Depends(_Needs(QUERY))
"""For a route that searches, asks or reads, or is about the caller's own runs, threads and approvals. The first dependency of its
route, like the others."""

NEEDS_INGEST: Any = Depends(_Needs(INGEST))
"""For a route that changes documents or collections, or is about jobs that were given up."""

NEEDS_OPERATOR: Any = Depends(_Needs(OPERATOR))
"""For a route that changes something for all tenants."""


NEEDS_ADMIN: Any = Depends(_Needs(ADMIN))
"""For a route that is about other subjects of the tenant."""

NEEDS_NO_SCOPE: Any = Depends(_Needs(""))
"""For a route that is every caller's, and looks by itself at what they may."""


def declared_scopes(app: FastAPI) -> dict[tuple[str, str], str | None]:
    """The scope that each documented route declares, by path and method in lower case; empty where it is every caller's."""
    return {
        (route.path_format or "", method.lower()): _declared(route.dependencies)
        for route in iter_route_contexts(app.routes)
        if isinstance(route.original_route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    }


def _declared(dependencies: Iterable[params.Depends]) -> str | None:
    return next((each.dependency.scope for each in dependencies if isinstance(each.dependency, _Needs)), None)


def show_scopes(document: dict[str, Any], app: FastAPI) -> None:
    """Adds to each operation of the OpenAPI document the scope that it needs, as `x-required-scope`."""
    for (path, method), scope in declared_scopes(app).items():
        if scope:
            document["paths"][path][method]["x-required-scope"] = scope
