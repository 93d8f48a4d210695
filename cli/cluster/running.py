"""How the commands run that look at an installation: connected to the API server, and ended with a sentence and an exit code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import typer

from cli.cluster.connection.api import Api, open_api
from cli.cluster.connection.release import Release, find_release
from cli.running import run_to_exit_code


@dataclass(frozen=True)
class Target:
    """The installation that the options name; empty where they name none."""

    context: str = ""
    namespace: str = ""
    release: str = ""


def run(
    command: Callable[[Api, Release], Coroutine[Any, Any, int]], target: Target, interrupted: str = "Interrupted."
) -> None:
    """Runs `command` and leaves with the exit code that it returns; an error that ends it early becomes one line."""

    async def found(api: Api) -> int:
        return await command(api, await find_release(api, target.namespace, target.release))

    run_on(found, target.context, interrupted)


def run_on(command: Callable[[Api], Coroutine[Any, Any, int]], context: str, interrupted: str = "Interrupted.") -> None:
    """Likewise where there may be no installation yet."""

    async def connected() -> int:
        async with open_api(context) as api:
            return await command(api)

    raise typer.Exit(run_to_exit_code(connected(), interrupted))
