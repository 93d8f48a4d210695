"""The HTTP application: routes, errors and the layers around them. Knows no addresses and opens nothing."""

from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from services.gateway import problems
from services.gateway.auth import authenticated
from services.gateway.backends import Backends
from services.gateway.edge import Edge
from services.gateway.guard import Guard
from services.gateway.lobby import stream_limit
from services.gateway.routes import (
    approvals,
    chat,
    collections,
    console,
    documents,
    events,
    health,
    jobs,
    models,
    questions,
    runs,
    search,
    threads,
    tools,
    upload,
    usage,
)
from services.gateway.schemas.chat import ToolChatResponse
from services.gateway.schemas.events import EVENT_MODELS
from services.gateway.schemas.problem import Problem
from services.gateway.schemas.runs import QaResponse
from services.gateway.scopes import show_scopes
from services.gateway.shares import StreamShares

_DESCRIPTION = """Answers with grounds: upload documents, ask, and get an answer whose every sentence carries a citation that
was checked.

Errors are `application/problem+json`; switch on `reason`. Streams are server-sent events whose `id:` is the event's `seq`; a
client that reconnects with `Last-Event-ID` gets the rest exactly once.
"""


def create_api(backends: Backends) -> FastAPI:
    """The application over the given services."""
    settings = backends.settings
    app = FastAPI(
        title="Groundwork",
        version="1",
        description=_DESCRIPTION,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # Edge does it
    )
    app.state.backends = backends
    app.state.stream_shares = StreamShares(stream_limit(settings))
    app.state.local_principal = settings.local_principal()
    for module in (
        upload,
        documents,
        events,
        collections,
        jobs,
        models,
        search,
        questions,
        chat,
        tools,
        runs,
        approvals,
        threads,
        usage,
    ):
        app.include_router(module.router, dependencies=[Depends(authenticated)])
    app.include_router(health.router)
    app.include_router(console.console_router(console.load_assets(_console_directory())))
    problems.install(app)
    app.add_middleware(
        Guard,
        allowed_hosts=settings.allowed_hosts,
        max_json_bytes=settings.max_json_bytes,
        body_timeout_s=settings.request_body_timeout_s,
    )
    app.add_middleware(Edge)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign] # FastAPI's documented way to extend it
    return app


def _console_directory() -> Path:
    return Path(str(resources.files("services.gateway") / "console"))


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's document, with the schemas of events and problems, which no route returns as its model."""
    if app.openapi_schema:
        return app.openapi_schema
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    models: list[type[BaseModel]] = [*EVENT_MODELS.values(), Problem, QaResponse, ToolChatResponse]
    _, extra = models_json_schema(
        [(model, "serialization") for model in models],
        ref_template="#/components/schemas/{model}",
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in extra["$defs"].items():
        schemas.setdefault(name, schema)
    _drop_fastapi_errors(document)
    show_scopes(document, app)
    app.openapi_schema = document
    return document


def _drop_fastapi_errors(document: dict[str, Any]) -> None:
    """Validation errors are problems with status 400 here, not FastAPI's 422."""
    for path in document["paths"].values():
        for operation in path.values():
            operation.get("responses", {}).pop("422", None)
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
