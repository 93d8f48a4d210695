"""The shape of every error."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class FieldProblem(BaseModel):
    """One field that is missing or wrong."""

    field: str = Field(description="Path of the field, for example `filters.metadata`.")
    message: str = Field(description="What is wrong with it.")
    type: str = Field(description="Kind of the mistake, a constant word.")


class Problem(BaseModel):
    """An error (RFC 9457). Further members name what it is about, for example `document_id`."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "example": {
                "type": "urn:groundwork:problem:document-not-found",
                "title": "Not Found",
                "status": 404,
                "code": "NOT_FOUND",
                "reason": "DOCUMENT_NOT_FOUND",
                "detail": "there is no document 0f3a…; list the documents of its collection",
                "trace_id": "5b8aa5a2d2c872e8321cf37308d69df2",
                "retryable": False,
            }
        },
    )

    type: str = Field(description="URN of the problem's kind.")
    title: str = Field(description="The HTTP status in words.")
    status: int = Field(description="The HTTP status.")
    code: str = Field(description="The gRPC status name, for example NOT_FOUND.")
    reason: str = Field(description="A constant UPPER_SNAKE word to switch on.")
    detail: str = Field(description="What happened, to what, and what to do, for a person.")
    trace_id: str = Field(description="Finds this request in logs and traces.")
    retryable: bool = Field(description="Whether asking again may help.")
    errors: list[FieldProblem] | None = Field(
        default=None, description="With VALIDATION_FAILED: the fields that are wrong, the first 20 of them."
    )


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI `responses` of a route that may fail in these ways."""
    words = {
        400: "The request is not valid.",
        401: "An API key is needed, and was not sent or is not good.",
        403: "Not for this caller (want of a scope, or not theirs), or asked for under a foreign host name or by a foreign page.",
        404: "There is no such thing.",
        408: "The request was too slow to arrive.",
        409: "There is one already, or another change came first.",
        412: "Its present state does not allow this.",
        413: "The body is too large.",
        415: "The body is of another type.",
        422: "The content is refused.",
        429: "Too much at once; wait as Retry-After says.",
        500: "Something went wrong on our side; the trace id finds it.",
        503: "A service is unavailable; wait as Retry-After says.",
        504: "It took too long.",
        507: "There is no room.",
    }
    slow = {408} if 413 in statuses else set()
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": words[status], "content": {"application/problem+json": {"schema": schema}}}
        for status in sorted({*statuses, *slow, 400, 401, 403, 429, 500, 503})
    }
