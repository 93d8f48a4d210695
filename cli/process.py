"""The command as a process among others: what it prints never fails for want of an encoding, keeps its order where both streams go
to one place, and ends without a word when nobody reads on."""

from __future__ import annotations

import io
import shlex
import sys
from typing import Any

from pydantic import ValidationError
from typer.core import TyperCommand, TyperGroup

from cli.display.terminal import harmless
from cli.program import program
from cli.running import ASKS, WHERE, where
from kit.process.broken_pipe import reader_has_gone


class Program(TyperGroup):
    """`groundwork` itself, to which the commands belong."""

    def main(self, *args: Any, **options: Any) -> Any:
        _print_anything_in_order()
        try:
            try:
                return super().main(*args, **options)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            sys.exit(reader_has_gone())
        except SystemExit as end:
            if isinstance(end.__context__, BrokenPipeError):  # typer and rich make 1 of it
                sys.exit(reader_has_gone())
            raise

    def get_help(self, ctx: Any) -> str:
        _name_server(self)
        return super().get_help(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _name_server(command)
        return command


class OneText(TyperCommand):
    """A command whose one argument is a text: more words than one are a text without its quotation marks."""

    allow_extra_args = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        more = super().parse_args(ctx, args)
        if more and not ctx.resilient_parsing:
            text = next(parameter for parameter in self.params if parameter.param_type_name == "argument")
            whole = shlex.join([program(), str(ctx.info_name), " ".join([str(ctx.params[str(text.name)]), *more])])
            ctx.fail(f"Put the {text.name} in quotation marks: {harmless(whole)}")
        return more


def _print_anything_in_order() -> None:
    """A letter that the streams' encoding lacks becomes a question mark, and each line leaves when it is written."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace", line_buffering=True)


def _name_server(command: Any) -> None:
    """In the help of a command that asks a server: the one that it would ask now."""
    if (command.epilog or "").startswith(ASKS):
        try:
            command.epilog = where()
        except ValidationError:
            command.epilog = WHERE  # the command itself says which setting is not valid
