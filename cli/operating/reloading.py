"""`groundwork cluster reload`: has a server of the same pod read its configuration again when files have changed.

nats-server reads its certificates when it starts and on SIGHUP, and no other process would notice that Kubernetes
has renewed them. Beside it in the pod, with a process namespace in common, this one does.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

_EVERY_S = 10.0
_Stamps = list[tuple[int, int] | None]


def reload(
    files: Annotated[list[Path], typer.Argument(help="What is looked at.")],
    pid_file: Annotated[Path, typer.Option(help="Where the server has written its process id.")],
) -> None:
    """Send SIGHUP to a server whenever its files have changed. The chart runs this beside NATS, for its certificates."""
    Reloader(files, pid_file, typer.echo).run()


class Reloader:
    """Compares files with what they were, for ever."""

    def __init__(self, files: Sequence[Path], pid_file: Path, report: Callable[[str], None]) -> None:
        self._files = files
        self._pid_file = pid_file
        self._report = report
        self._seen: _Stamps | None = None
        """None before the first look: the server may have read them before they changed."""

    def run(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Never returns."""
        while True:
            sleep(_EVERY_S)
            self.look()

    def look(self) -> None:
        """Signals the server when something changed; a signal that fails is sent again at the next look."""
        now = _stamps(self._files)
        if now == self._seen:
            return
        try:
            os.kill(int(self._pid_file.read_text("ascii")), signal.SIGHUP)
        except (OSError, ValueError) as error:
            self._report(f"The server did not get the signal to read its files again: {error}.")
            return
        self._seen = now
        self._report("The server got the signal to read its files again.")


def _stamps(files: Sequence[Path]) -> _Stamps:
    """A mounted Secret is replaced behind a symbolic link: then the inode is another."""
    return [_stamp(file) for file in files]


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns)
