"""Errors as application/problem+json (RFC 9457), wherever they are raised: in a service, the gateway, FastAPI or Starlette."""

import http
import math
from collections.abc import Mapping
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from kit.errors import BY_CODE, Code, GroundworkError, Internal, InvalidArgument
from kit.limits.rules import Per
from kit.observability.telemetry import current_trace_id
from kit.validation import expectation
from services.gateway.errors import (
    HTTP_STATUS_BY_REASON,
    BodyTooLarge,
    MalformedJson,
    MethodNotAllowed,
    RouteNotFound,
    UnsupportedContentType,
    ValidationFailed,
)
from services.gateway.models import Json

_log = structlog.get_logger()

PROBLEM_MEDIA_TYPE = "application/problem+json"
_DEFAULT_RETRY_AFTER_S = 2.0
_MOST_FIELDS_TOLD = 20
"""A list may hold a thousand wrong ids; the first few say what is wrong with all."""

_WHAT_GRPC_MEANS = {
    "RPC_UNAVAILABLE": "a service behind this API cannot be reached; wait a moment and try again, /readyz says which it is",
    "RPC_DEADLINE_EXCEEDED": "a service behind this API did not answer in time; wait a moment and try again, /readyz says "
    "which it is",
    "RPC_CANCELLED": "a service behind this API was stopped while it worked on this; try again",
}
"""Statuses that gRPC makes itself talk of addresses and sockets: nothing for a client to know, or to act on."""


def http_status(error: GroundworkError) -> int:
    """HTTP status of an error: the table of kit.errors, more exact where HTTP has a word of its own."""
    return HTTP_STATUS_BY_REASON.get(error.reason, error.code.http_status)


def problem(error: GroundworkError, extra: Json | None = None) -> Json:
    """The body. Metadata of the error and `extra` stand beside the standard members and never replace them."""
    status = http_status(error)
    standard: Json = {
        "type": f"urn:groundwork:problem:{error.reason.lower().replace('_', '-')}",
        "title": _phrase(status),
        "status": status,
        "code": error.code.name,
        "reason": error.reason,
        "detail": detail(error),
        "trace_id": error.metadata.get("trace_id") or current_trace_id(),
        "retryable": error.retryable,
    }
    return {**error.metadata, **(extra or {}), **standard}


def detail(error: GroundworkError) -> str:
    """The message for a client: the error's own words, or ours where gRPC spoke."""
    return _WHAT_GRPC_MEANS.get(error.reason, error.message)


def problem_response(error: GroundworkError, extra: Json | None = None) -> JSONResponse:
    """The whole answer, with Retry-After where waiting may help."""
    body = problem(error, extra)
    headers = {"Cache-Control": "no-store"}
    if body["status"] in {429, 503} or error.retry_after_s:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s or _DEFAULT_RETRY_AFTER_S)))
    if error.reason == "LIMIT_REACHED":
        headers |= _limit_headers(error)
    if body["status"] == 401:
        headers["WWW-Authenticate"] = "Bearer"  # RFC 9110, section 15.5.2
    return JSONResponse(body, body["status"], headers, media_type=PROBLEM_MEDIA_TYPE)


_SECONDS = {each.value: each.seconds for each in Per}


def _limit_headers(error: GroundworkError) -> dict[str, str]:
    """The limit that refuses, as the IETF's draft of RateLimit fields has it."""
    metadata = error.metadata
    scope = metadata.get("whose", "").partition(":")[0]  # a group's name may have letters that a header may not
    name = f"{scope}-{metadata.get('limit')}-{metadata.get('per')}".replace("_", "-")
    policy = f'"{name}";q={math.floor(float(metadata.get("amount", 0)))};w={_SECONDS.get(metadata.get("per", ""), 0)}'
    return {"RateLimit-Policy": policy, "RateLimit": f'"{name}";r=0;t={metadata.get("free_in_s", "0")}'}


def unknown_error(trace_id: str) -> Internal:
    """What a client learns about an error that nobody expected."""
    message = f"something went wrong on our side; give this trace id to the operator: {trace_id}"
    return Internal(message, trace_id=trace_id)


def logged(event: str, error: Exception) -> Internal:
    """What a client learns about an error that nobody expected, once it is in the log as `event`."""
    trace_id = current_trace_id()
    _log.error(event, trace_id=trace_id, exc_info=error)
    return unknown_error(trace_id)


def error_of(code: str, message: str, reason: str) -> GroundworkError:
    """The error that a run's `error` event tells of."""
    kind = BY_CODE.get(Code[code], Internal) if code in Code.__members__ else Internal
    return kind(message, reason=reason or None)


def install(app: FastAPI) -> None:
    """Registers the handlers. Unknown exceptions are left to the outermost middleware, which knows if bytes were sent."""
    app.add_exception_handler(GroundworkError, _on_groundwork_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)


async def _on_groundwork_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, GroundworkError)
    request.state.refusal = error.reason
    return problem_response(error)


async def _on_validation_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    refusal = validation_error(error)
    return problem_response(
        refusal, {"errors": _wrong_fields(error)} if isinstance(refusal, ValidationFailed) else None
    )


def validation_error(error: RequestValidationError) -> GroundworkError:
    """What is wrong with a request, in words."""
    if broken := [item for item in error.errors() if item["type"] == "json_invalid"]:
        cause = broken[0].get("ctx", {}).get("error", "it cannot be read")
        return MalformedJson(f"the request body is not valid JSON: {cause}; send a JSON object")
    wrong = _wrong_fields(error)
    listed = "; ".join(f"{item['field']}: {item['message']}" for item in wrong)
    left_out = len(error.errors()) - len(wrong)
    more = f"; and {left_out} more" if left_out else ""
    return ValidationFailed(f"the request is not valid: {listed}{more}. Correct it as described in /openapi.json")


def _wrong_fields(error: RequestValidationError) -> list[Json]:
    return [
        {"field": field_of(item), "message": expectation(item), "type": item["type"]}
        for item in error.errors()[:_MOST_FIELDS_TOLD]
    ]


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    response = problem_response(_translated(request, error))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    if error.status_code == 405 and (methods := _methods(request)):
        response.headers["Allow"] = methods
    return response


def _methods(request: Request) -> str:
    """All that a documented path takes. Starlette's own header names the methods of the first route that fits, no more."""
    template = getattr(request.scope.get("route"), "path", "")
    return ", ".join(sorted(method.upper() for method in request.app.openapi()["paths"].get(template, ())))


def _translated(request: Request, error: HTTPException) -> GroundworkError:
    path = request.url.path
    match error.status_code:
        case 400:
            # FastAPI's answer to a body that its JSON parser gives up on without naming a place.
            return MalformedJson(
                "the request body cannot be read as JSON: it is not UTF-8, or nested too deeply; send a JSON object"
            )
        case 404:
            return RouteNotFound(f"there is nothing at {path}; the routes are listed in /openapi.json")
        case 405:
            return MethodNotAllowed(f"{path} does not take {request.method}; see /openapi.json", retryable=False)
        case 413 | 415 as status:
            kind = BodyTooLarge if status == 413 else UnsupportedContentType
            return kind(str(error.detail))
        case status if status < 500:
            return InvalidArgument(str(error.detail))
        case _:
            return unknown_error(current_trace_id())


def field_of(item: Mapping[str, Any]) -> str:
    """Where an item of a validation error is: ("body", "filters", "metadata") → "filters.metadata". A path or query parameter keeps
    its name only."""
    location = item["loc"]
    parts = [str(part) for part in location[1:]] or [str(part) for part in location]
    return ".".join(parts)


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Client Closed Request" if status == 499 else "Error"
