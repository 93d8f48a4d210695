"""Errors in OpenAI's shape, for the routes that speak it."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from kit.errors import GroundworkError
from services.gateway.models import Json
from services.gateway.problems import detail, field_of, http_status, problem_response, validation_error

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_CODES = {"MODEL_NOT_OFFERED": "model_not_found", "API_KEY_WRONG": "invalid_api_key"}


class OpenAiRoute(APIRoute):
    """A route whose errors clients of OpenAI's API understand."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with errors translated."""
        handle = super().get_route_handler()

        async def translated(request: Request) -> Response:
            try:
                return await handle(request)
            except GroundworkError as error:
                request.state.refusal = error.reason
                return error_response(error)
            except RequestValidationError as error:
                return error_response(validation_error(error), field_of(error.errors()[0]))

        return translated


def error_body(error: GroundworkError, param: str = "") -> Json:
    """The error as a body, or as a piece of a stream. `param`: which parameter is wrong, where the error does not say."""
    status = http_status(error)
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    code = _CODES.get(error.reason, error.reason.lower())
    return {
        "error": {
            "message": detail(error),
            "type": kind,
            "param": error.metadata.get("field") or param or None,
            "code": code,
        }
    }


def error_response(error: GroundworkError, param: str = "") -> JSONResponse:
    """The whole answer, with the headers of any other error."""
    ours = problem_response(error)
    response = JSONResponse(error_body(error, param), ours.status_code)
    for name in ("cache-control", "retry-after", "www-authenticate"):
        if name in ours.headers:
            response.headers[name] = ours.headers[name]
    return response
