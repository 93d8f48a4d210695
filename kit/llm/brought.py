"""A model that a user brings with a request: an endpoint of their own and its key. Like the principal it travels in a context
variable, so that no layer in between has to hand the key on, log it by mistake or keep it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from pydantic import SecretStr

from kit.errors import GroundworkError

BROUGHT = "yours"
"""Name of the provider that a user brings, in events and metrics."""


@dataclass(frozen=True)
class BroughtModel:
    """A user's model. Its address passes the guard of kit.network.egress before and whenever it is connected to."""

    base_url: str
    api_key: SecretStr
    model: str
    preset: str = ""
    context_tokens: int = 8192
    """Tokens of prompt and answer together."""


_brought: ContextVar["BroughtModel | GroundworkError | None"] = ContextVar("brought_model", default=None)


def brought_model() -> BroughtModel | None:
    """The model of the run in hand, if its user brought one. Raises what kept it from being read."""
    model = _brought.get()
    if isinstance(model, GroundworkError):
        raise model
    return model


def is_model_brought() -> bool:
    """Whether the user of the run in hand brought a model, readable or not."""
    return _brought.get() is not None


@contextmanager
def use_brought_model(model: "BroughtModel | GroundworkError | None") -> Iterator[None]:
    """Asks this model, and no other, within the block; an error stands for one that cannot be read any more."""
    token = _brought.set(model)
    try:
        yield
    finally:
        _brought.reset(token)
