"""How every command runs: connected to the gateway, and ended with a line and an exit code instead of a traceback."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import typer
from pydantic import ValidationError

from cli.client.gateway import Gateway
from cli.display.terminal import harmless
from cli.errors import CliError, UsageError
from cli.settings import CliSettings
from kit.process.configuration import setting_problems

INTERRUPTED = 130
"""128 + SIGINT, as shells say it."""
ASKS = "Asks the server at "
WHERE = (
    f"{ASKS}http://127.0.0.1:8080, unless GROUNDWORK_PORT has another port or GROUNDWORK_URL another address "
    "(https://host:port)."
)
"""Ends the help of commands that ask a server, where the environment names none."""


_given_key: ContextVar[str] = ContextVar("given_key", default="")


def where() -> str:
    """Ends the help of commands that ask a server: which one that is now. Raises ValidationError."""
    settings = CliSettings()
    if not settings.model_fields_set & {"url", "port"}:
        return WHERE
    named_by = "GROUNDWORK_URL" if settings.url else "GROUNDWORK_PORT"
    return f"{ASKS}{settings.base_url}, as {named_by} says."


def use_key(api_key: str) -> None:
    """Has the command show this API key instead of that of the environment, unless it is empty."""
    _given_key.set(api_key)


def given_key() -> str:
    """The API key of the command line; empty where there is none."""
    return _given_key.get()


def run(command: Callable[[Gateway], Coroutine[Any, Any, int]], interrupted: str = "Interrupted.") -> None:
    """Runs `command` and leaves with the exit code that it returns."""
    raise typer.Exit(exit_code_of(command, interrupted))


def exit_code_of(command: Callable[[Gateway], Coroutine[Any, Any, int]], interrupted: str = "Interrupted.") -> int:
    """Runs `command` with the gateway of the settings; an error that ends it early becomes one line."""

    async def connected() -> int:
        settings = CliSettings()
        async with Gateway.open(settings.base_url, _given_key.get() or settings.api_key.get_secret_value()) as gateway:
            return await command(gateway)

    return run_to_exit_code(connected(), interrupted)


def run_to_exit_code(command: Coroutine[Any, Any, int], interrupted: str = "Interrupted.") -> int:
    """Runs `command`; an error that ends it early becomes one line."""
    try:
        return asyncio.run(command)
    except CliError as error:
        tell(error)
        return error.exit_code
    except ValidationError as error:
        sys.stderr.write("".join(f"{line}\n" for line in setting_problems(error, CliSettings)))
        return UsageError.exit_code
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{interrupted}\n")
        return INTERRUPTED


def tell(error: CliError) -> None:
    """The error on a line of its own."""
    sys.stderr.write(f"{harmless(str(error))}\n")
