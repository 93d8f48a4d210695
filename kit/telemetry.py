"""Traces. A provider is always installed, so that trace ids exist for errors and logs; spans leave the process only when a
collector is configured."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import propagate, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF


def configure_telemetry(service: str, otlp_endpoint: str | None) -> TracerProvider:
    """Installs the tracer provider of this process. Call `shutdown()` on it at the end: it flushes."""
    # Without a collector spans are made for their ids only: one that is not recorded costs a third of one that is.
    sampler = None if otlp_endpoint else ALWAYS_OFF
    provider = TracerProvider(resource=Resource.create({"service.name": f"groundwork-{service}"}), sampler=sampler)
    if otlp_endpoint:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - 160 ms
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        exporter = OTLPSpanExporter(endpoint=otlp_endpoint, insecure=otlp_endpoint.startswith("http://"))
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider


def current_trace_id() -> str:
    """32 hex characters that find this request in logs and traces; a random one when no span is open."""
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else secrets.token_hex(16)


def current_traceparent() -> str:
    """The span in hand as a W3C traceparent, to be kept with work that goes on elsewhere or later; empty when there is none."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent", "")


@contextmanager
def continued_span(name: str, traceparent: str, **attributes: str | bool | int) -> Iterator[trace.Span]:
    """A span around the block, as a child of the one that `traceparent` names, in whatever process that was; without one, a trace
    of its own."""
    parent = propagate.extract({"traceparent": traceparent} if traceparent else {})
    with trace.get_tracer("groundwork").start_as_current_span(name, parent, attributes=attributes) as span:
        yield span
