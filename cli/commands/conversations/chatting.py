"""`groundwork chat`: a conversation in which the model may use tools. Questions to the person are asked between two stretches of
following the run, never while events are being read: a run goes on, or waits, without us."""

from __future__ import annotations

import contextlib
import sys
from functools import partial
from typing import Annotated, Literal

import typer

from cli.client.asking import Message, Position, cancel
from cli.client.gateway import Gateway, Json, in_path
from cli.client.sse import Event
from cli.commands.conversations.approvals import Choice, choose, decide, waiting
from cli.display.answering import RunView
from cli.display.output import Output
from cli.errors import UNAUTHENTICATED, WAITING, ApiError, CliError, ServerUnreachable, given, in_words
from cli.running import INTERRUPTED, exit_code_of, tell
from kit.vocabulary.run_fold import RunFold

PROMPT = "> "
Verify = Annotated[
    Literal["mark", "remove", "off"] | None,
    typer.Option(
        help="What becomes of claims that nothing carries: `mark` (they lose their citation), `remove` (their sentences are left "
        "out), or `off` (nothing is checked)."
    ),
]


def chat(
    message: Annotated[str | None, typer.Argument(help="What to say; left out: a conversation, line by line.")] = None,
    thread: Annotated[str | None, typer.Option(help="Thread to continue.")] = None,
    tool: Annotated[list[str], typer.Option("--tool", help="Only this tool; repeatable.")] = [],  # noqa: B006 - typer copies it
    collection: Annotated[
        list[str], typer.Option("--collection", "-c", help="Tools read only this collection; repeatable.")
    ] = [],  # noqa: B006
    verify: Verify = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON document; in a conversation one on each line.")
    ] = False,
) -> None:
    """Talk; the model may use tools, and asks before it acts. Ctrl-C cancels an answer, Ctrl-D leaves."""
    output = Output(as_json=as_json, json_lines=message is None)
    session = Session(output, thread, tuple(tool) or None, tuple(collection) or None, verify)
    raise typer.Exit(session.converse() if message is None else session.say(message))


class Session:
    """One conversation."""

    def __init__(
        self,
        output: Output,
        thread_id: str | None = None,
        tools: tuple[str, ...] | None = None,
        collection_ids: tuple[str, ...] | None = None,
        verify: str | None = None,
    ) -> None:
        self._output = output
        self._verify = verify
        self._thread_id = thread_id
        self._tools = tools
        self._collection_ids = collection_ids
        self._is_shut_out = False
        """Whether the last message reached no server, or one that did not know the key."""
        self._interactive = sys.stdin.isatty() and not output.as_json

    def converse(self) -> int:
        """Each line of the input is a message, until it ends. Returns the exit code: of a person's conversation 0, else that of the
        last message that failed."""
        code = exit_code_of(self._look_up_thread)
        if code:
            return code
        if self._interactive:
            self._output.err.print("[dim]Ctrl-C cancels an answer, Ctrl-D leaves.[/dim]")
        while (line := self._read()) is not None:
            if line.strip():
                code = self.say(line.strip(), keep_thread=True) or code
                if self._is_shut_out and not self._interactive:
                    break  # nobody is there to start the server, or to give a key, before the next line
        if self._interactive and self._thread_id:
            self._output.err.print(f"\nGo on with: groundwork chat --thread {self._thread_id}", markup=False)
        return 0 if self._interactive else code

    def say(self, text: str, *, keep_thread: bool = False) -> int:
        """Sends a message and shows the run to its end, or until it waits for a decision that is not made here. With
        `keep_thread` a thread is made for it where there is none."""
        view = RunView(self._output, with_steps=True)

        async def begin(gateway: Gateway) -> int:
            try:
                message = await self._message(gateway, text, keep_thread=keep_thread)
                await view.follow(gateway, message, until=is_parked)
            except CliError as error:
                self._is_shut_out = _is_same_for_all(error)
                raise
            return 0

        return self.see_through(view, exit_code_of(begin, "Cancelled."))

    async def _message(self, gateway: Gateway, text: str, *, keep_thread: bool) -> Message:
        said = in_words(text, "message")
        if keep_thread and not self._thread_id:
            self._thread_id = (await gateway.request("POST", "/v1/threads", json={}))["id"]
        if self._thread_id is not None:
            given(self._thread_id, "thread")
        for each in self._collection_ids or ():
            given(each, "collection")
        return Message(said, self._thread_id, self._tools, self._collection_ids, self._verify)

    def see_through(self, view: RunView, code: int) -> int:
        """From where following stopped to the end of the run, deciding what it asks."""
        while code == 0 and not view.position.done:
            if view.run.input and self._interactive:
                if not (text := _reply(self._output)):
                    return self._leave(view)
                code = exit_code_of(partial(_go_on_with, view=view, text=text), "Cancelled.")
                continue
            asked = next(iter(view.run.pending.values()), None)
            choice = choose(asked, self._output) if asked and self._interactive else Choice.LATER
            if not asked or choice is Choice.LATER:
                return self._leave(view)
            code = exit_code_of(partial(_go_on, view=view, asked=asked, choice=choice), "Cancelled.")
        if code == 0:
            view.finish()
            return view.exit_code
        return code

    def _leave(self, view: RunView) -> int:
        if self._output.as_json:
            view.finish()
        else:
            if view.run.answer:  # an e-mail with it waits
                view.finish()
            run_id = view.position.run_id
            how = (
                f"Answer with: groundwork runs answer {run_id}"
                if view.run.input
                else "Decide with: groundwork approvals"
            )
            self._output.err.print(
                f"Run {run_id} waits. {how}; then see: groundwork runs follow {run_id}", markup=False, soft_wrap=True
            )
        return WAITING

    async def _look_up_thread(self, gateway: Gateway) -> int:
        if self._thread_id is not None:
            await gateway.request("GET", f"/v1/threads/{in_path(self._thread_id, 'thread')}")
        return 0

    def _read(self) -> str | None:
        """The next line; None at the end of the input."""
        while True:
            try:
                if not self._interactive:
                    return sys.stdin.readline() or None
                return _prompted()
            except EOFError:
                return None
            except KeyboardInterrupt:
                sys.stderr.write("\n")
                if not self._interactive:
                    raise typer.Exit(INTERRUPTED) from None


def follow(run_id: str, output: Output) -> int:
    """Shows a run from its beginning to its end, and asks what it waits for. Leaving it does not cancel it."""
    view = RunView(output, Position(run_id=run_id, looks_only=True), with_steps=True)
    session = Session(output)

    async def begin(gateway: Gateway) -> int:
        given(run_id, "run")
        while not view.position.done:
            await view.follow(gateway, until=is_parked)
            if await _still_waits(gateway, view.run):
                break
        return 0

    return session.see_through(view, exit_code_of(begin, "Left; the run goes on."))


def is_parked(event: Event) -> bool:
    """Whether the run waits from this event on."""
    return event.kind == "parked"


async def _still_waits(gateway: Gateway, run: RunFold) -> bool:
    """Whether the run waits now: when it is read from its beginning, it may have waited before and gone on."""
    if run.waits and run.waits["waits_for"] == "input":
        return bool((await gateway.request("GET", f"/v1/runs/{in_path(run.run_id, 'run')}"))["status"] == "waiting")
    asked = set(run.waits["approval_ids"]) if run.waits else set()
    return bool(asked) and asked <= {each["id"] for each in await waiting(gateway)}


def _is_same_for_all(error: CliError) -> bool:
    """Whether no other message would fare better: there is no server, or not with this key."""
    return isinstance(error, ServerUnreachable) or (isinstance(error, ApiError) and error.status == UNAUTHENTICATED)


async def _go_on(gateway: Gateway, *, view: RunView, asked: Json, choice: Choice) -> int:
    if choice is Choice.CANCEL:
        await cancel(gateway, view.position.run_id)
    else:
        try:
            await decide(gateway, asked, choice)
        except ApiError as error:
            tell(error)  # decided elsewhere, or expired: the run's next events say what became of it
    await view.follow(gateway, until=is_parked)
    return 0


async def _go_on_with(gateway: Gateway, *, view: RunView, text: str) -> int:
    try:
        await answer(gateway, view.position.run_id, text)
    except ApiError as error:
        tell(error)  # answered elsewhere, or the run went on: its next events say what became of it
    await view.follow(gateway, until=is_parked)
    return 0


async def answer(gateway: Gateway, run_id: str, text: str) -> Json:
    """Answers what the run asks its user. Raises ApiError, for example when the question is closed."""
    return await gateway.request("POST", f"/v1/runs/{in_path(run_id, 'run')}/input", json={"text": text})


def _reply(output: Output) -> str:
    """What the person at the terminal answers; empty for later. The question stands above, as a step of the run."""
    output.err.print("[dim]Answer in a line; an empty one leaves it for later.[/dim]")
    try:
        return _prompted().strip()
    except (EOFError, KeyboardInterrupt):
        return ""


def _prompted() -> str:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - gives `input` editing and history, where there is one
    if sys.stdout.isatty():
        return input(PROMPT)
    sys.stderr.write(PROMPT)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line
