"""A run in the terminal: its steps and its answer as they come, and at the end what the answer rests on. Steps go to stderr, the
answer to stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable

from cli.client.asking import Position, RunStart, ask
from cli.client.gateway import Gateway
from cli.client.sse import Event
from cli.display.output import Output
from cli.display.steps import cost_line, step_line
from cli.display.terminal import harmless
from cli.errors import REFUSED
from kit.vocabulary.run_fold import RunFold

_EXIT_CODES = {"completed": 0, "refused": REFUSED}


class RunView:
    """One run, a new one or the one at `position`. It may be left at an event and read on later."""

    def __init__(self, output: Output, position: Position | None = None, *, with_steps: bool = False) -> None:
        self.run = RunFold()
        self.position = position or Position()
        self._output = output
        self._with_steps = with_steps
        # A pipe gets the finished answer, since there a correction could not replace anything.
        self._live = sys.stdout.isatty() and not output.as_json
        self._shown = ""
        self._names: dict[str, str] = {}

    @property
    def exit_code(self) -> int:
        """That of a command which has read the run to its end."""
        return _EXIT_CODES.get(self.run.status, 1)

    async def follow(
        self, gateway: Gateway, asked: RunStart | None = None, until: Callable[[Event], bool] = lambda _: False
    ) -> None:
        """Shows the run to its end, or to an event that `until` is true of. Without something `asked` it reads on."""
        async for event in ask(gateway, asked, self.position, until):
            self.run.add(event.kind, event.data)
            if self._with_steps and not self._output.as_json:
                self._step(event)
            if self._live and event.kind in {"token", "answer"}:
                self._write(harmless(self.run.text))

    def finish(self) -> None:
        """Shows what the answer rests on, and to a pipe the answer itself."""
        if self._output.as_json:
            self._output.json(self.run.result())
            return
        text = self.run.text
        sys.stdout.write(("" if self._live else harmless(text)) + ("\n\n" if text else ""))
        sys.stdout.flush()
        self._output.artefacts(self.run)
        self._output.grounds(self.run)
        if self._with_steps and (cost := cost_line(self.run.usage)):
            self._output.err.print(f"[dim]{cost}[/dim]")

    def _step(self, event: Event) -> None:
        line = step_line(event, self._names)
        if not line:
            return
        if self._live and self._shown and not self._shown.endswith("\n"):
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._output.err.print(line)

    def _write(self, text: str) -> None:
        shown, self._shown = self._shown, text
        if text == shown:
            return
        if text.startswith(shown):
            sys.stdout.write(text[len(shown) :])
        else:  # another writer took over, or the model's answer was replaced: what scrolled by cannot be taken back
            sys.stdout.write(f"\n\n(The answer was revised:)\n\n{text}")
        sys.stdout.flush()
