"""The HTTP application: routes, errors and the layers around them. Knows no addresses and opens nothing."""

import time
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from services.gateway import problems
from services.gateway.access.audit import AuditLog
from services.gateway.access.auth import Door, Entrance, OpenDoor, authenticated
from services.gateway.access.keys import Keys
from services.gateway.access.scopes import show_scopes
from services.gateway.backends import Backends
from services.gateway.edge import Edge
from services.gateway.mcp.door import McpDoor
from services.gateway.openai import embeddings as openai_embeddings
from services.gateway.openai import routes as openai
from services.gateway.openai.stores import files as openai_files
from services.gateway.openai.stores import store_files as openai_store_files
from services.gateway.openai.stores import vector_stores as openai_vector_stores
from services.gateway.routes import console, health
from services.gateway.routes.administration import jobs, limits, models, tool_servers, usage
from services.gateway.routes.conversations import (
    agents,
    approvals,
    chat,
    memory,
    questions,
    runs,
    threads,
    tools,
    voice,
)
from services.gateway.routes.documents import (
    collections,
    documents,
    embedding,
    events,
    samples,
    search,
    sources,
    upload,
)
from services.gateway.routes.identity import audit as audit_routes
from services.gateway.routes.identity import connections, guests, keys, me, oauth, oidc
from services.gateway.schemas.conversations.chat import ToolChatResponse
from services.gateway.schemas.conversations.events import EVENT_MODELS
from services.gateway.schemas.conversations.runs import QaResponse
from services.gateway.schemas.identity.audit import AuditEntry
from services.gateway.schemas.problem import Problem
from services.gateway.serving.connection_table import stream_limit
from services.gateway.serving.guard import Guard
from services.gateway.serving.lazy_routes import LazyRoutes
from services.gateway.streams.shares import StreamShares
from services.gateway.voice.languages import SpokenLanguages

_DESCRIPTION = """Answers with grounds: upload documents, ask, and get an answer that says of each sentence which passage carries
it, who judged that, and how often that judge is wrong.

Where the operator asks for API keys, send yours as `Authorization: Bearer gw_…` with every request below `/v1`.

Errors are `application/problem+json`; switch on `reason`. Streams are server-sent events whose `id:` is the event's `seq`; a
client that reconnects with `Last-Event-ID` gets the rest exactly once.
"""


_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key: `gw_<id>_<secret>`."},
    "header": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The same, in a header of its own.",
    },
}
"""None of them is needed where the gateway asks for no keys (GROUNDWORK_AUTH=none)."""


def create_api(backends: Backends, api_keys: Keys | None = None) -> FastAPI:
    """The application over the given services. With `api_keys` it asks for one; without, everybody is the one local user."""
    settings = backends.settings
    audit = AuditLog(time.monotonic, lambda: datetime.now(UTC), api_keys.audit if api_keys else None)
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
    door: Door = api_keys.door if api_keys else OpenDoor(settings.local_principal())
    app.state.door = door
    app.state.audit = audit
    if api_keys and api_keys.issuers:
        api_keys.issuers.note_reuse = audit.login_reused
    app.state.spoken_languages = SpokenLanguages()
    app.state.api_keys = api_keys
    # First: a route of one path is found at once, and its requests come back as those of the API's own.
    app.state.mcp = McpDoor(app, settings, app.state.stream_shares, backends.closing)
    app.router.routes.append(Route("/mcp", app.state.mcp, include_in_schema=False))
    for module in (
        upload,
        documents,
        events,
        collections,
        embedding,
        sources,
        jobs,
        models,
        search,
        questions,
        chat,
        openai,
        openai_embeddings,
        openai_files,
        openai_vector_stores,
        openai_store_files,
        tools,
        tool_servers,
        connections,
        agents,
        runs,
        approvals,
        threads,
        memory,
        usage,
        limits,
        me,
        keys,
        audit_routes,
        voice,
    ):
        app.include_router(module.router, dependencies=[Depends(authenticated)])
    app.router.routes.append(LazyRoutes("/scim/v2", _scim_routes))
    app.include_router(health.router)
    app.include_router(oauth.router)
    app.include_router(oidc.router)
    app.include_router(guests.router)
    app.include_router(console.console_router(console.load_console(_files("console_dist"))))
    app.include_router(samples.samples_router(samples.load_samples(_files("samples"))))
    problems.install(app)
    app.add_middleware(
        Guard,
        allowed_hosts=settings.allowed_hosts,
        max_json_bytes=settings.max_json_bytes,
        body_timeout_s=settings.request_body_timeout_s,
        any_address=api_keys is not None,
        origins=settings.cors_origins,
    )
    app.add_middleware(
        Entrance, door=door, public_url=settings.public_url, requests=api_keys.requests if api_keys else None
    )
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=[
                "Authorization",
                "Content-Type",
                "Idempotency-Key",
                "If-Match",
                "Last-Event-ID",
                "Mcp-Protocol-Version",
                "Mcp-Session-Id",
                "traceparent",
            ],
            expose_headers=[
                "ETag",
                "Location",
                "Mcp-Session-Id",
                "RateLimit",
                "RateLimit-Policy",
                "Retry-After",
                "X-Run-Id",
                "X-Trace-Id",
            ],
        )
    app.add_middleware(Edge, audit=audit)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign] # FastAPI's documented way to extend it
    return app


def _scim_routes() -> APIRouter:
    """Imported here: its models take a second and more to build, and most installations are sent no users."""
    from services.gateway.routes.identity import scim  # noqa: PLC0415

    router = APIRouter(dependencies=[Depends(authenticated)])
    router.include_router(scim.router)
    return router


def _files(folder: str) -> Path:
    return Path(str(resources.files("services.gateway") / folder))


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's document, with the schemas of events and problems, which no route returns as its model."""
    if app.openapi_schema:
        return app.openapi_schema
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    models: list[type[BaseModel]] = [*EVENT_MODELS.values(), Problem, QaResponse, ToolChatResponse, AuditEntry]
    _, extra = models_json_schema(
        [(model, "serialization") for model in models],
        ref_template="#/components/schemas/{model}",
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in extra["$defs"].items():
        schemas.setdefault(name, schema)
    document["components"]["securitySchemes"] = _SECURITY_SCHEMES
    document["security"] = [{name: []} for name in _SECURITY_SCHEMES] + [{}]
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
