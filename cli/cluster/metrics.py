"""Prometheus text as values to ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """One value with its labels."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True)
class Metrics:
    """What a /metrics page said."""

    samples: Sequence[Sample] = ()

    @classmethod
    def parse(cls, text: str) -> Metrics:
        """Empty for a page that is not in the format."""
        from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - clients should start fast

        try:
            families = list(text_string_to_metric_families(text))
        except ValueError:
            return cls()
        return cls(
            tuple(Sample(each.name, dict(each.labels), each.value) for family in families for each in family.samples)
        )

    def of(self, name: str, **labels: str) -> Iterator[Sample]:
        """Samples of that name whose labels are so."""
        for sample in self.samples:
            if sample.name == name and all(sample.labels.get(key) == value for key, value in labels.items()):
                yield sample

    def value(self, name: str, **labels: str) -> float | None:
        """The sum of the samples; None when there is none."""
        found = [sample.value for sample in self.of(name, **labels)]
        return sum(found) if found else None
