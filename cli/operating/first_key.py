"""``groundwork keys bootstrap``: the first API key of an installation, or one more when that is lost. Works like the other commands
for operators: on a system that runs on this machine, on one that does not run, and on a cluster."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from cli.operating.message_store import exit_code_of, message_store
from services.standalone import first_key
from services.standalone.app import read_standalone_settings
from services.standalone.errors import KeyRefused

_THERE_IS_ONE = (
    "An operator's API key exists already, so none was made. Is it lost? `groundwork keys bootstrap --another` makes one more; "
    "then revoke the lost one: `groundwork keys list`, `groundwork keys revoke ID`"
)


def bootstrap(*, another: bool, if_none: bool, output: Path | None, as_json: bool) -> int:
    """Makes a key and prints it, or writes it to `output`; the exit code. When there is one already it is 1, with `if_none` 0."""

    async def run() -> None:
        settings = read_standalone_settings()
        with _place(output) as place:
            async with message_store(settings) as nats:
                key = await first_key.make(nats, settings, another=another)
            if key:
                text = key.get_secret_value()
                place.write((json.dumps({"key": text}) if as_json else text) + "\n")
        if key is None and not if_none:
            raise KeyRefused(_THERE_IS_ONE)
        _tell(_remark(made=key is not None, output=output))

    return exit_code_of(run())


@contextmanager
def _place(output: Path | None) -> Iterator[TextIO]:
    """Where the key goes: stdout, or a new file that only its owner can read, which is removed when nothing was written. Opened
    before the key is made, so that none is lost for want of a place. Raises KeyRefused, OSError."""
    if output is None:
        yield sys.stdout
        return
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR)
    except FileExistsError as error:
        raise KeyRefused(f"{output} exists already; no key was made. Remove it or name another file") from error
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            yield file
    finally:
        if not output.stat().st_size:
            output.unlink()


def _remark(*, made: bool, output: Path | None) -> str:
    if not made:
        return "An operator's API key exists already."
    if output:
        return f"The API key is in {output}, which only you can read."
    return "This is shown only now. Commands take it from GROUNDWORK_API_KEY, the console asks for it."


def _tell(text: str) -> None:
    """A remark: the result alone goes to stdout."""
    sys.stderr.write(text + "\n")
