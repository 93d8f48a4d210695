"""Traces. A provider is always installed, so that trace ids exist for errors and logs; spans leave the process only when a
collector is configured.

No span holds text of users or documents: names and attributes are bounded, and of an error only its reason or its type is kept.
Attributes have the names of OpenTelemetry's semantic conventions where there are such, else they begin with `groundwork.`.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from kit.errors import GroundworkError
from kit.network.tls import BadCertificates, read_authorities

TRACEPARENT = "traceparent"
"""Header and metadata key of W3C Trace Context. Neither tracestate nor baggage is taken from outside or passed on."""
Attributes = Mapping[str, str | bool | int | float | Sequence[str]]
_PROPAGATOR = TraceContextTextMapPropagator()


def configure_telemetry(service: str, otlp_endpoint: str | None, otlp_ca_file: Path | None = None) -> TracerProvider:
    """Installs the tracer provider of this process. Call `shutdown()` on it at the end: it flushes. Raises BadCertificates."""
    # Without a collector spans are made for their ids only: one that is not recorded costs a third of one that is.
    sampler = None if otlp_endpoint else ALWAYS_OFF
    provider = TracerProvider(resource=Resource.create({"service.name": f"groundwork-{service}"}), sampler=sampler)
    if otlp_endpoint:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - 160 ms
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        exporter = OTLPSpanExporter(
            endpoint=otlp_endpoint,
            insecure=otlp_endpoint.startswith("http://"),
            credentials=_collector_credentials(otlp_endpoint, otlp_ca_file),
        )
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider


def _collector_credentials(endpoint: str, ca_file: Path | None) -> grpc.ChannelCredentials | None:
    if ca_file and endpoint.startswith("http://"):
        raise BadCertificates(
            "GROUNDWORK_OTLP_CA_FILE is set, but GROUNDWORK_OTLP_ENDPOINT asks for no TLS: write https:// instead of http://"
        )
    return grpc.ssl_channel_credentials(read_authorities(ca_file, "GROUNDWORK_OTLP_CA_FILE")) if ca_file else None


def current_trace_id() -> str:
    """32 hex characters that find this request in logs and traces; a random one when no span is open."""
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else secrets.token_hex(16)


def current_traceparent() -> str:
    """The span in hand as a W3C traceparent, to be kept with work that goes on elsewhere or later; empty when there is none."""
    return traceparent_of(trace.get_current_span())


def traceparent_of(span: Span) -> str:
    """As `current_traceparent`, of this one."""
    context = span.get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


@contextmanager
def span(name: str, attributes: Attributes | None = None, kind: SpanKind = SpanKind.INTERNAL) -> Iterator[Span]:
    """A span around the block, as a part of the one in hand. While that is not recorded, or there is none, it is not made, and
    the block is given one that keeps nothing. Not for a generator, whose steps may run in several contexts: see `begun_span`."""
    if not trace.get_current_span().is_recording():
        yield trace.INVALID_SPAN
        return
    with _current(begun_span(name, attributes, kind)) as begun:
        yield begun


def begun_span(name: str, attributes: Attributes | None = None, kind: SpanKind = SpanKind.INTERNAL) -> Span:
    """As `span`, for code that ends it by hand; it does not become the current one."""
    if not trace.get_current_span().is_recording():
        return trace.INVALID_SPAN
    return trace.get_tracer("groundwork").start_span(name, kind=kind, attributes=attributes)


@contextmanager
def continued_span(
    name: str,
    traceparent: str,
    attributes: Attributes | None = None,
    kind: SpanKind = SpanKind.INTERNAL,
    links: Sequence[str] = (),
    *,
    notes_errors: bool = True,
) -> Iterator[Span]:
    """A span around the block, as a child of the one that `traceparent` names, in whatever process that was; without one, a trace
    of its own. `links` are traceparents of others whom the work is done for as well. Without `notes_errors` the caller judges
    by itself what is an error."""
    parent = parent_context(traceparent)
    remote = trace.get_current_span(parent)
    if remote.get_span_context().is_valid and not remote.get_span_context().trace_flags.sampled:
        # The process that began the trace does not record it: its id is all that is needed here.
        with _attached(remote):
            yield remote
        return
    tracer = trace.get_tracer("groundwork")
    linked = [Link(context) for each in links if (context := _context_of(each)) is not None]
    with _current(
        tracer.start_span(name, parent, kind=kind, attributes=attributes, links=linked), notes_errors=notes_errors
    ) as begun:
        yield begun


def parent_context(traceparent: str) -> otel_context.Context:
    """The context in which a child of that span is begun; without a valid one, that of a new trace."""
    root = otel_context.Context()
    return _PROPAGATOR.extract({TRACEPARENT: traceparent}, root) if traceparent else root


def note_error(on: Span, error: BaseException) -> None:
    """Marks a span as failed. What the error says may quote a user's words, so only its reason or type is kept."""
    reason = error.reason if isinstance(error, GroundworkError) else type(error).__name__
    on.set_attribute("error.type", reason)
    on.set_status(StatusCode.ERROR, reason)


@contextmanager
def _current(begun: Span, *, notes_errors: bool = True) -> Iterator[Span]:
    """Ends it with the block; until then it is the span in hand."""
    try:
        with _attached(begun):
            yield begun
    except Exception as error:
        if notes_errors:
            note_error(begun, error)
        raise
    finally:
        begun.end()


@contextmanager
def _attached(begun: Span) -> Iterator[None]:
    token = otel_context.attach(trace.set_span_in_context(begun))
    try:
        yield
    finally:
        otel_context.detach(token)


def _context_of(traceparent: str) -> SpanContext | None:
    context = trace.get_current_span(parent_context(traceparent)).get_span_context()
    return context if context.is_valid else None
