"""What a person sees in the terminal: a line for each service as its state changes, then where to go."""

from __future__ import annotations

import contextlib
import json
import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import structlog

from services.standalone.supervising.models import ChildEvent, ChildState

COLORS = {ChildState.READY: "32", ChildState.DIED: "31", ChildState.KILLED: "33"}
SHOWN = frozenset({ChildState.READY, ChildState.ENDED, ChildState.DIED, ChildState.STOPPED, ChildState.KILLED})
OWN_QUESTION = "How do I change the port?"


class Console:
    """Prints to a terminal or a pipe; colours only the former."""

    def __init__(self, out: TextIO, *, color: bool) -> None:
        self._out = out
        self._color = color

    def say(self, text: str) -> None:
        """One message. A terminal that is gone, or a file on a full disk, is no reason to stop: then it is not said."""
        with contextlib.suppress(OSError):
            self._out.write(text + "\n")
            self._out.flush()

    def child(self, event: ChildEvent) -> None:
        """One line per change that a person wants to know; a crash shows what the child said last."""
        if event.state not in SHOWN:
            return
        details = f"{event.seconds:6.1f} s"
        if event.pid is not None and event.state is ChildState.READY:
            details += f"   pid {event.pid}"
        if event.state is ChildState.ENDED:
            details += "   ended on request; starting it again"
        if event.state is ChildState.DIED:
            details += f"   {_ending(event.exit_code)}" + (
                f"; starting it again in {event.retry_in_s:g} s" if event.retry_in_s is not None else ""
            )
        self.say(f"  {event.name:<15} {self._paint(event.state)} {details}")
        for line in event.last_lines:
            self.say(f"      | {line}")

    def _paint(self, state: ChildState) -> str:
        text = f"{state.value:<8}"
        code = COLORS.get(state)
        return f"\x1b[{code}m{text}\x1b[0m" if self._color and code else text


def keep_terminal_for_people() -> None:
    """What the connection to the message store logs is for services: here the supervisor says in words what happens."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def welcome(
    *,
    url: str,
    seconds: float,
    program: str,
    environment: str,
    logs: Path,
    with_keys: bool = False,
    own_documents: Sequence[str] = (),
    model: str = "",
    has_terminal: bool = True,
) -> str:
    """The last thing the start prints: the address, and what to do in a first minute. `with_keys`: each command needs an API key.
    `own_documents`: Groundwork's, where they are; the question after them is one that they answer. `model`: what answers.
    `has_terminal`: whether there is a Ctrl-C."""
    key = '-H "authorization: Bearer $GROUNDWORK_API_KEY" ' if with_keys else ""
    question = OWN_QUESTION if own_documents else "YOUR QUESTION"
    body = json.dumps({"question": question})
    command = f"{environment}{program}"
    commands = {
        **({"key": "export GROUNDWORK_API_KEY=gw_…   (yours)"} if with_keys else {}),
        "see": f"{command} demo",
        "upload": f"{command} ingest {' '.join(own_documents) or 'FILES AND FOLDERS'}",
        "ask": f"{command} ask {shlex.quote(question)}",
        "curl": f"curl -s {url}/v1/qa {key}-H 'content-type: application/json' -d {shlex.quote(body)}",
    }
    return "\n".join(
        [
            "",
            f"Groundwork is ready after {seconds:.1f} s: {url}",
            *([f"Language model: {model}"] if model else []),
            "",
            "Open that in a browser, or in another terminal:",
            "",
            *(f"  {word:<8} {line}" for word, line in commands.items()),
            "",
            f"Logs: {logs}.{' Ctrl-C stops everything.' if has_terminal else ''}",
        ]
    )


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "ended"
    return f"killed by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
