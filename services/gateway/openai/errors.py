"""Errors in OpenAI's shape, for the routes that speak it."""

from collections.abc import Callable, Coroutine, Mapping
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
_CHAT_NAMES = {
    "answer_schema": "response_format",
    "called": "messages",
    "function_choice": "tool_choice",
    "functions": "tools",
    "history": "messages",
    "instructions": "messages",
    "previous_run_id": "previous_response_id",
    "question": "messages",
}
"""What chat completions call the fields of a run."""
_RESPONSE_NAMES = {
    **_CHAT_NAMES,
    **dict.fromkeys(("called", "history", "messages", "question"), "input"),
    "answer_schema": "text.format",
    "instructions": "instructions",
    "response_format": "text.format",
}
_CODES = {"MODEL_NOT_OFFERED": "model_not_found", "API_KEY_WRONG": "invalid_api_key"}


class OpenAiRoute(APIRoute):
    """A route whose errors clients of OpenAI's API understand."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with errors translated."""
        handle = super().get_route_handler()
        names = _RESPONSE_NAMES if self.path.startswith("/v1/responses") else _CHAT_NAMES

        async def translated(request: Request) -> Response:
            try:
                return await handle(request)
            except GroundworkError as error:
                request.state.refusal = error.reason
                return error_response(error, names=names)
            except RequestValidationError as error:
                return error_response(validation_error(error), field_of(error.errors()[0]))

        return translated


def error_body(error: GroundworkError, param: str = "", names: Mapping[str, str] = _CHAT_NAMES) -> Json:
    """The error as a body, or as a piece of a stream. `param`: which parameter is wrong, where the error does not say. `names`: how
    clients know the fields of a run."""
    status = http_status(error)
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    code = _CODES.get(error.reason, error.reason.lower())
    field = error.metadata.get("field", "")
    return {
        "error": {
            "message": detail(error),
            "type": kind,
            "param": names.get(field, field) or param or None,
            "code": code,
        }
    }


def error_response(error: GroundworkError, param: str = "", names: Mapping[str, str] = _CHAT_NAMES) -> JSONResponse:
    """The whole answer, with the headers of any other error."""
    ours = problem_response(error)
    response = JSONResponse(error_body(error, param, names), ours.status_code)
    for name in ("cache-control", "retry-after", "www-authenticate"):
        if name in ours.headers:
            response.headers[name] = ours.headers[name]
    return response
