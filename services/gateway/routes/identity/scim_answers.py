"""What all routes of SCIM have in common: bodies, pages and errors as RFC 7644 has them."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import ValidationError
from scim2_models import (
    Context,
    Error,
    InvalidFilterException,
    InvalidSyntaxException,
    ListResponse,
    NotFoundException,
    Resource,
    SCIMException,
    SearchRequest,
)

from kit.errors import GroundworkError
from services.gateway.access.directory.records import RecordT
from services.gateway.problems import detail, http_status, problem_response
from services.gateway.schemas.identity import scim

_MEDIA_TYPE = "application/scim+json"
_BY_NAME = re.compile(r'(?:userName|displayName) eq "([^"\\]*)"')
"""What providers ask before they send a user or a group: answered without reading them all."""
_LONGEST_FILTER = 2_000
_TAG = re.compile(r'"[^"]*"|\*')
ResourceT = TypeVar("ResourceT", bound=Resource[Any])


class ScimRoute(APIRoute):
    """A route whose errors clients of SCIM understand (RFC 7644, section 3.12)."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with errors translated."""
        handle = super().get_route_handler()

        async def translated(request: Request) -> Response:
            try:
                return await handle(request)
            except SCIMException as error:
                return _said(error.to_error())
            except ValidationError as error:
                return _said(Error.from_validation_errors(error)[0])
            except RecursionError:
                return _said(InvalidSyntaxException(detail="it is nested too deeply; ask more simply").to_error())
            except GroundworkError as error:
                request.state.refusal = error.reason
                refused = _said(Error(status=http_status(error), detail=detail(error)))
                for name in ("retry-after", "www-authenticate"):
                    if value := problem_response(error).headers.get(name):
                        refused.headers[name] = value
                return refused

        return translated


async def read_body(request: Request) -> dict[str, Any]:
    """Raises InvalidSyntaxException."""
    try:
        body = json.loads(await request.body())
        json.dumps(body, ensure_ascii=False).encode()  # a lone surrogate is JSON but no text
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise InvalidSyntaxException(detail="the request body must be a JSON object of text in UTF-8")
    return body


def shown_attributes(request: Request) -> SearchRequest[Any]:
    """The attributes that the client asks for."""
    names = ("attributes", "excludedAttributes")
    asked = {name: request.query_params[name] for name in names if name in request.query_params}
    return SearchRequest.model_validate(asked, scim_policy=scim.POLICY)


def the_one(found: Iterable[ResourceT]) -> ResourceT:
    """The first. Raises NotFoundException."""
    for each in found:
        return each
    raise NotFoundException(detail="there is nothing of this name")


def query_of(request: Request) -> dict[str, str]:
    """What the client asks for. Raises InvalidFilterException."""
    query = dict(request.query_params)
    if len(query.get("filter", "")) > _LONGEST_FILTER:
        raise InvalidFilterException(detail=f"a filter has {_LONGEST_FILTER} characters at most")
    return query


def name_asked_for(request: Request, attribute: str) -> str | None:
    """The name by which the client asks for one user or group; None where it asks otherwise."""
    asked = request.query_params.get("filter", "").strip()
    found = _BY_NAME.fullmatch(asked) if asked.startswith(attribute) else None
    return found[1] if found else None


async def page_of(
    kind: type[ListResponse[ResourceT]],
    asked: SearchRequest[ResourceT],
    records: Sequence[RecordT],
    shown: Callable[[RecordT], ResourceT],
) -> Response:
    """The records that the client asks for, as they are shown."""
    start, most = asked.start_index_0 or 0, scim.MOST_RESULTS
    stop = start + min(most, most if asked.count is None else asked.count)
    if asked.filter is None and asked.sort_by is None:
        total, page = len(records), await asyncio.to_thread(lambda: list(map(shown, records[start:stop])))
    else:
        found = await asyncio.to_thread(_found, asked, records, shown)
        total, page = len(found), found[start:stop]
    listed = kind(total_results=total, start_index=start + 1, items_per_page=len(page), resources=page)
    return await asyncio.to_thread(answer, listed, asked=asked)


def _found(
    asked: SearchRequest[ResourceT], records: Iterable[RecordT], shown: Callable[[RecordT], ResourceT]
) -> list[ResourceT]:
    resources = map(shown, records)
    return asked.sort(resources if asked.filter is None else filter(asked.filter.match, resources))


def whole_list(kind: type[ListResponse[ResourceT]], found: Sequence[ResourceT]) -> Response:
    """A list that needs no pages."""
    return answer(kind(total_results=len(found), start_index=1, items_per_page=len(found), resources=list(found)))


def answer(
    resource: Any,
    context: Context = Context.RESOURCE_QUERY_RESPONSE,
    *,
    status: int = 200,
    asked: SearchRequest[Any] | None = None,
) -> Response:
    """A resource or a list, with the attributes that the client asks for."""
    body = resource.model_dump(scim_ctx=context, response_parameters=asked, scim_policy=scim.POLICY)
    meta = getattr(resource, "meta", None)
    named = {"Location": getattr(meta, "location", None), "ETag": getattr(meta, "version", None)}
    headers = {"Cache-Control": "no-store", **{name: value for name, value in named.items() if value}}
    return Response(json.dumps(body), status, headers, _MEDIA_TYPE)


class Conditions:
    """What a request says of the version that it is about (RFC 7644, section 3.14). What is no version is the one of nothing."""

    def __init__(self, request: Request) -> None:
        self._wanted = _tags(request, "if-match")
        self._known = _tags(request, "if-none-match")

    def check(self, version: str) -> None:
        """Raises VersionChanged where the client has seen another version, or wants none to be there."""
        if self._wanted is not None and not _is_named(version, self._wanted):
            raise VersionChanged(
                detail="it has been changed since it was read; read it again, and send the change anew"
            )
        if self._known is not None and _is_named(version, self._known):
            raise VersionChanged(detail="it is there in the version that If-None-Match excludes")

    def is_known(self, version: str) -> bool:
        """Whether the client has what it asks for. Raises VersionChanged where it wants another version."""
        if self._wanted is not None and not _is_named(version, self._wanted):
            raise VersionChanged(detail="it has been changed since it was read; leave If-Match out to read it")
        return self._known is not None and _is_named(version, self._known)


class VersionChanged(SCIMException):
    """The client names another version than there is."""

    status = 412


def not_modified(version: str) -> Response:
    """The answer to a client that has this version."""
    return Response(status_code=304, headers={"Cache-Control": "no-store", "ETag": version})


def _tags(request: Request, header: str) -> frozenset[str] | None:
    """None where there is no such header."""
    lines = request.headers.getlist(header)
    return frozenset(_TAG.findall(",".join(lines))) if lines else None


def _is_named(version: str, tags: frozenset[str]) -> bool:
    """Compared weakly, as all versions here are weak."""
    return "*" in tags or version.removeprefix("W/") in tags


def _said(error: Error) -> Response:
    body = json.dumps(error.model_dump())
    return Response(body, error.status or 400, {"Cache-Control": "no-store"}, _MEDIA_TYPE)
