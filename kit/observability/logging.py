"""JSON lines on stdout: a constant event name and fields, with trace, tenant, run and document from the context."""

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog
from opentelemetry import trace

_PASSED_ON = {"run_id": "groundwork-run-id", "document_id": "groundwork-document-id"}
"""Fields of lines, and the metadata of a call that they travel in."""
_LONGEST_ID = 128


def configure_logging(service: str, level: str) -> None:
    """Sends structlog and standard logging to stdout as JSON lines. Called once, by kit.process.service."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace,
        _Constant("service", service),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("httpx", "httpcore", "nats", "asyncio", "elastic_transport"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # It logs an error whenever a client hangs up on a stream: the span is ended from another context, which is harmless.
    logging.getLogger("opentelemetry.context").setLevel(logging.CRITICAL)
    # It logs with a traceback what an authorization server says, which may hold secrets. We raise it without them.
    logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)


def passed_on() -> tuple[tuple[str, str], ...]:
    """Metadata of a call that lets the lines of the called service say which run or document they belong to."""
    known = structlog.contextvars.get_contextvars()
    return tuple((key, known[name]) for name, key in _PASSED_ON.items() if name in known)


def take_up(metadata: Mapping[str, str | bytes]) -> None:
    """Has the lines of the call in hand say what its caller passed on."""
    for name, key in _PASSED_ON.items():
        value = metadata.get(key)
        if isinstance(value, str) and len(value) <= _LONGEST_ID:
            structlog.contextvars.bind_contextvars(**{name: value})


class _Constant:
    def __init__(self, key: str, value: str) -> None:
        self._key = key
        self._value = value

    def __call__(self, _: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event[self._key] = self._value
        return event


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = f"{context.trace_id:032x}"
    return event
