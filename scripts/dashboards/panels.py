"""What dashboards are made of: rows of panels, each with its expressions. Each is filtered by the namespace that Grafana shows, and
counters are looked at over its own interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

NS = 'namespace=~"$namespace"'
RATE = "$__rate_interval"

Query = tuple[str, str]
"""An expression, and the legend of its series."""


@dataclass(frozen=True)
class Panel:
    """One chart or number."""

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: Literal["timeseries", "stat"] = "timeseries"
    about: str = ""
    stacking: Literal["none", "normal"] = "none"
    alarm_above: float | None = None


@dataclass(frozen=True)
class Row:
    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Dashboard:
    name: str
    title: str
    about: str
    rows: Sequence[Row]


def rate(metric: str, by: str = "", where: str = "") -> str:
    """What a counter gains a second, summed."""
    filters = ",".join(each for each in (where, NS) if each)
    grouping = f" by ({by})" if by else ""
    return f"sum{grouping} (rate({metric}{{{filters}}}[{RATE}]))"


def quantile(q: float, metric: str, by: str = "", where: str = "") -> str:
    """Of a histogram."""
    grouping = f"le, {by}" if by else "le"
    return f"histogram_quantile({q}, {rate(f'{metric}_bucket', grouping, where)})"


def mean(metric: str, by: str = "") -> str:
    """Of a histogram's observations."""
    return f"{rate(f'{metric}_sum', by)} / {rate(f'{metric}_count', by)}"


def largest(metric: str, by: str = "", where: str = "") -> str:
    """Of a gauge that several processes tell."""
    filters = ",".join(each for each in (where, NS) if each)
    grouping = f" by ({by})" if by else ""
    return f"max{grouping} ({metric}{{{filters}}})"


def total(metric: str, by: str = "", where: str = "") -> str:
    """Of a gauge that each process tells of itself."""
    return largest(metric, by, where).replace("max", "sum", 1)


def share(part: str, whole: str) -> str:
    """0 where nothing happened."""
    return f"({part} or vector(0)) / ({whole} > 0) or vector(0)"


def stat(
    title: str, expression: str, unit: str = "short", *, alarm_above: float | None = None, about: str = ""
) -> Panel:
    return Panel(title, [(expression, "")], unit, "stat", about, alarm_above=alarm_above)


def quantiles(title: str, metric: str, by: str = "", where: str = "", about: str = "") -> Panel:
    """Median and 95th percentile, by a label where one is named."""
    legend = f"{{{{{by}}}}} " if by else ""
    queries = [(quantile(q, metric, by, where), f"{legend}p{round(100 * q)}") for q in (0.5, 0.95)]
    return Panel(title, queries, "s", about=about)


def counts(title: str, metric: str, by: str, where: str = "", about: str = "", unit: str = "reqps") -> Panel:
    legend = " ".join(f"{{{{{each.strip()}}}}}" for each in by.split(","))
    return Panel(title, [(rate(metric, by, where), legend)], unit, about=about, stacking="normal")


def gauge(title: str, expression: str, legend: str, unit: str = "short", about: str = "") -> Panel:
    return Panel(title, [(expression, legend)], unit, about=about)


OF_SERVICE = f"on (instance) group_left (service) groundwork_build_info{{{NS}}}"
FAILED_RUNS = rate("groundwork_runs_total", where='status=~"failed|timeout"')
DEGRADED_RUNS = rate("groundwork_runs_total", where='degraded="yes"')
RUNS = rate("groundwork_runs_total")
SEARCHES = rate("groundwork_retriever_searches_total")
