"""Lines of logs: read from what the kubelet gives, chosen, and shown so that people can read them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from cli.display.terminal import escape
from cli.errors import UsageError

LEVELS = ("debug", "info", "warning", "error", "critical")
_TRACE = re.compile(r"[0-9a-f]{32}")
_HIDDEN = {"event", "level", "timestamp", "service", "logger"}
_OTHERS = re.compile(
    r"\[(?P<nats>TRC|DBG|INF|WRN|ERR|FTL)\]|^\S*\s*(?P<python>DEBUG|INFO|WARNING|ERROR|CRITICAL)\b"
    r"|\s(?P<rust>DEBUG|INFO|WARN|ERROR)\s"
)
"""How NATS, vLLM and Qdrant write the level of a line; Elasticsearch writes JSON, with `log.level`."""
_BY_NAME = {
    "trc": "debug",
    "dbg": "debug",
    "inf": "info",
    "wrn": "warning",
    "warn": "warning",
    "err": "error",
    "ftl": "critical",
}
_THEIRS = {"nats", "qdrant", "elasticsearch", "vllm"}
"""Components that are not ours, whose lines are no JSON of ours."""
_STYLES = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "bold red"}


@dataclass(frozen=True)
class Source:
    """Whose lines they are."""

    pod: str
    component: str
    container: str

    @property
    def short(self) -> str:
        """`gateway-x7k2p`, `nats-0`: the component and what tells its pods apart."""
        return f"{self.component}-{self.pod.rpartition('-')[2]}"


@dataclass(frozen=True)
class LogLine:
    """One line."""

    source: Source
    at: str
    """When the kubelet got it, in RFC 3339 with nanoseconds: it can be compared as text."""
    text: str
    fields: dict[str, Any] | None = None
    """Of a line that is a JSON object."""

    @classmethod
    def read(cls, source: Source, line: str) -> LogLine:
        """From the kubelet's form with time stamps: the time, a space, the line."""
        at, _, text = line.partition(" ")
        return cls(source, at, text, _fields(text))

    @property
    def level(self) -> str:
        """What a line that is none of ours and names no level is depends on whose it is: of our own processes it is what they say
        when they end."""
        if self.fields is not None:
            name = str(self.fields.get("level") or self.fields.get("log.level") or "info").lower()
            return _BY_NAME.get(name, name if name in LEVELS else "info")
        found = _OTHERS.search(self.text[:200])
        if self.source.component not in _THEIRS:
            return "error"
        return _BY_NAME.get(name := next(filter(None, found.groups())).lower(), name) if found else "info"

    def as_json(self) -> str:
        """On one line, with the pod it is from."""
        own = (
            self.fields if self.fields is not None else {"timestamp": self.at, "level": self.level, "event": self.text}
        )
        return json.dumps({"pod": self.source.pod, "component": self.source.component, **own}, ensure_ascii=False)

    def shown(self) -> str:
        """For a terminal, with rich's markup: time, whose, level, event and fields."""
        style = _STYLES.get(self.level)
        level = f"{self.level:<8}"
        level = f"[{style}]{level}[/{style}]" if style else level
        head = f"[dim]{self.at[11:23]}[/dim] {escape(self.source.short):<24} {level}"
        if self.fields is None:
            return f"{head} {escape(self.text)}"
        return f"{head} [bold]{escape(str(self.fields.get('event', '')))}[/bold]{_rest(self.fields)}"


def _fields(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _rest(fields: dict[str, Any]) -> str:
    """The other fields; a traceback below, as it was written."""
    shown = "".join(
        f" {name}={_value(value)}" for name, value in fields.items() if name not in _HIDDEN and name != "exception"
    )
    below = f"\n{fields['exception']}".replace("\n", "\n    ") if fields.get("exception") else ""
    return f"[dim]{escape(shown)}[/dim]{escape(below)}"


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False) if not text or " " in text or "\n" in text else text


@dataclass(frozen=True)
class Wanted:
    """Which lines to show."""

    trace: str = ""
    run: str = ""
    level: str = "debug"

    @classmethod
    def of(cls, trace: str, run: str, level: str) -> Wanted:
        """Raises UsageError. A trace may also be given as the header `traceparent` has it."""
        if level.lower() not in LEVELS:
            raise UsageError(f"There is no level {level!r}; there are {', '.join(LEVELS)}.")
        found = _TRACE.search(trace.lower())
        if trace and found is None:
            raise UsageError(
                f"{trace!r} is no trace id, which has 32 hexadecimal digits: X-Trace-Id of an answer names it."
            )
        return cls(found[0] if found else "", run, level.lower())

    def has(self, line: LogLine) -> bool:
        if LEVELS.index(line.level) < LEVELS.index(self.level):
            return False
        return _names(line, "trace_id", self.trace) and _names(line, "run_id", self.run)


def _names(line: LogLine, field: str, id_: str) -> bool:
    if not id_:
        return True
    return str(line.fields.get(field, "")) == id_ if line.fields is not None else id_ in line.text
