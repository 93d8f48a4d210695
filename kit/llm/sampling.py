"""How a model chooses its words: what the operator sets for each operation, and what the caller of a run asks for its answer. The
wish of a run travels in a context variable, like a model that a user brings: no layer in between has to hand it on."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace

from kit.llm.messages import Operation, Request


@dataclass(frozen=True)
class Sampling:
    """What is None or empty is as the operator has set it, and else as Groundwork asks."""

    temperature: float | None = None
    """0 to 2."""
    top_p: float | None = None
    """Share of the probability that words are chosen from, above 0 to 1."""
    seed: int | None = None
    """With the same seed a provider that can gives the same answer."""
    stop: Sequence[str] = ()
    """Texts before which the answer ends."""

    def applied_to(self, request: Request) -> Request:
        """The request with what is set here."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(request, **{name: value for name, value in given.items() if value is not None and value != ()})


_wished: ContextVar[Sampling | None] = ContextVar("wished_sampling", default=None)


@contextmanager
def use_sampling(sampling: Sampling | None) -> Iterator[None]:
    """Within the block the answer is sampled so; None: as the operator has set it."""
    token = _wished.set(sampling)
    try:
        yield
    finally:
        _wished.reset(token)


def sampled(request: Request, usual: Mapping[Operation, Sampling]) -> Request:
    """The request as its operation is sampled; an answer, as its run asks."""
    if (of_operation := usual.get(request.operation)) is not None:
        request = of_operation.applied_to(request)
    wished = _wished.get() if request.operation is Operation.ANSWER else None
    return request if wished is None else wished.applied_to(request)
