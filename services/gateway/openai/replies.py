"""What all routes in the shape of OpenAI's API answer with."""

from collections.abc import Iterable

from fastapi.responses import JSONResponse

from services.gateway.models import Json
from services.gateway.openai.messages import OpenAiBody


def ignored_header(names: Iterable[str]) -> dict[str, str]:
    """The header that names members of a request which change nothing."""
    listed = ", ".join(name for name in names if name.isascii() and name.isprintable())[:1000]
    return {"X-Groundwork-Ignored": listed} if listed else {}


def reply(body: Json, request: OpenAiBody | None = None, *, ignored: Iterable[str] = ()) -> JSONResponse:
    """The body as it is, and what of the request changed nothing."""
    return JSONResponse(body, headers=ignored_header([*(request.ignored() if request else ()), *ignored]))
