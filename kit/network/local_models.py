"""Whether the work in hand may ask local models only, and which endpoints are local.

A collection may demand it. The service that works on the collection binds the work; like the principal the binding travels in a
context variable, and with each call between services. Two places enforce it: the chains of language models (kit.llm.models) and the
remote APIs of the model server. Bound work stays bound: nothing loosens it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from urllib.parse import urlsplit

from kit.errors import FailedPrecondition

METADATA_KEY = "groundwork-local-models-only"
_LOCAL_NAMES = ("localhost",)
_LOCAL_DOMAINS = (".localhost", ".svc", ".cluster.local")

_is_bound: ContextVar[bool] = ContextVar("local_models_only", default=False)


class LocalModelsOnly(FailedPrecondition):
    """A collection allows local models only, and the model that would be asked is not local. Configure a local model, say of this
    one that it is local, or let the collection ask other models."""

    reason = "LOCAL_MODELS_ONLY"


def is_bound_to_local_models() -> bool:
    """Whether the work in hand may ask local models only."""
    return _is_bound.get()


@contextmanager
def use_local_models(only: bool) -> Iterator[None]:
    """Binds the work of the block where `only` is true. Work that is bound already stays so."""
    token = _is_bound.set(only or _is_bound.get())
    try:
        yield
    finally:
        _is_bound.reset(token)


def sent_binding() -> tuple[tuple[str, str], ...]:
    """The metadata by which a call binds the called service."""
    return ((METADATA_KEY, "1"),) if _is_bound.get() else ()


def take_up_binding(metadata: Mapping[str, object]) -> None:
    """Binds the current task if its caller is bound."""
    _is_bound.set(METADATA_KEY in metadata)


def is_local_url(url: str) -> bool:
    """Whether an endpoint is local by its address: this machine (`localhost`, a loopback address), or a service of the same cluster
    or Compose project (a name without a dot, or one that ends in `.svc` or `.cluster.local`). Any other is outside."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in _LOCAL_NAMES or host.endswith(_LOCAL_DOMAINS) or (bool(host) and "." not in host)
