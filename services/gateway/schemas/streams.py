"""What OpenAPI says of event streams."""

from typing import Any

from services.gateway.schemas.conversations.events import EVENT_MODELS


def stream_response(description: str, kinds: dict[str, str]) -> dict[int | str, dict[str, Any]]:
    """OpenAPI `responses` of an event stream whose events of kind k carry the schema kinds[k]."""
    # OpenAPI 3.1 has no word for the events in a stream, whose body is a string to it.
    by_kind = {kind: {"$ref": f"#/components/schemas/{name}"} for kind, name in kinds.items()}
    content = {"schema": {"type": "string"}, "x-event-schemas": by_kind}
    example = 'id: 1\nevent: run\ndata: {"run_id":"4f2a","seq":1,"at":"2026-01-31T12:00:00.000Z","mode":"qa"}\n\n'
    listed = "; ".join(f"`{kind}`: {name}" for kind, name in kinds.items())
    return {
        200: {
            "description": f"{description} Events and the schema of their data: {listed}.",
            "content": {"text/event-stream": {**content, "example": example}},
            "headers": {"X-Run-Id": {"description": "The run, on streams of a run.", "schema": {"type": "string"}}},
        }
    }


def run_stream_response(description: str) -> dict[int | str, dict[str, Any]]:
    """`stream_response` of a run's events."""
    return stream_response(description, {kind: model.__name__ for kind, model in EVENT_MODELS.items()})
