"""Which scopes a route needs. The service behind it asks for the same; the gateway asks first, since a route may tell something
by itself, ask several services, or read a large body. One declaration a route, which its entry in the OpenAPI document shows."""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, params
from fastapi.routing import APIRoute, iter_route_contexts

from kit.access.principal import ADMIN, INGEST, OPERATOR, QUERY, Principal
from services.gateway.access.auth import authenticated


class _Needs:
    """Refuses callers without the scopes before anything else of the route is looked at."""

    def __init__(self, *scopes: str) -> None:
        self.scopes = scopes

    async def __call__(self, principal: Annotated[Principal, Depends(authenticated)]) -> None:
        """Raises PermissionDenied."""
        for scope in self.scopes:
            principal.require(scope)


NEEDS_QUERY: Any = Depends(_Needs(QUERY))
"""For a route that searches, asks or reads, or is about the caller's own runs, threads and approvals. The first dependency of its
route, like the others."""

NEEDS_INGEST: Any = Depends(_Needs(INGEST))
"""For a route that changes documents or collections, or is about jobs that were given up."""

NEEDS_QUERY_AND_INGEST: Any = Depends(_Needs(QUERY, INGEST))
"""For a route that changes documents or collections and shows what others have made of them."""

NEEDS_OPERATOR: Any = Depends(_Needs(OPERATOR))
"""For a route that changes something for all tenants."""


NEEDS_ADMIN: Any = Depends(_Needs(ADMIN))
"""For a route that is about other subjects of the tenant."""

NEEDS_NO_SCOPE: Any = Depends(_Needs())
"""For a route that is every caller's, and looks by itself at what they may."""


def declared_scopes(app: FastAPI) -> dict[tuple[str, str], str | None]:
    """The scopes that each documented route declares, by path and method in lower case, with a space between two; empty where it is
    every caller's."""
    return {
        (route.path_format or "", method.lower()): _declared(route.dependencies)
        for route in iter_route_contexts(app.routes)
        if isinstance(route.original_route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    }


def _declared(dependencies: Iterable[params.Depends]) -> str | None:
    return next(
        (" ".join(each.dependency.scopes) for each in dependencies if isinstance(each.dependency, _Needs)), None
    )


def show_scopes(document: dict[str, Any], app: FastAPI) -> None:
    """Adds to each operation of the OpenAPI document the scopes that it needs, as `x-required-scope`."""
    for (path, method), scope in declared_scopes(app).items():
        if scope:
            document["paths"][path][method]["x-required-scope"] = scope
