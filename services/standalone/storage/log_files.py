"""What the children write, kept as JSON lines in one capped file per service."""

from __future__ import annotations

import errno
import io
import json
import os
import re
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

FILE_BYTES_MAX = 10 * 1024 * 1024
"""A file that grows beyond is renamed to ``.1`` (replacing the one before) and begun anew: 20 MB a service at most."""
LAST_LINES = 24
SHOWN_CHARACTERS_MAX = 800
_TRACEBACK = re.compile(
    r"Traceback \(most|Exception Group Traceback|\^+$|~*\^+~*$|During handling of|The above exception"
)
_GROUP_FRAME = re.compile(r"^\s*[|+](?:[\s|+-]|\d+ -)*")


class JsonLinesLog:
    """A LogSink that writes a file."""

    def __init__(
        self,
        path: Path,
        file_bytes_max: int = FILE_BYTES_MAX,
        report_failure: Callable[[str], None] = lambda _problem: None,
    ) -> None:
        self._path = path
        self._file_bytes_max = file_bytes_max
        self._report_failure = report_failure
        self._file = self._open()
        self._lines_left_out = 0
        self._last: dict[str, deque[str]] = {name: deque(maxlen=LAST_LINES) for name in ("stdout", "stderr")}

    def write(self, stream: str, line: bytes) -> None:
        """A line that is a JSON object is kept as it is; any other is wrapped with time and stream.

        Lines that cannot be written, on a full disk, are left out and counted; the count is written once there is room.
        """
        text = line.decode("utf-8", "replace").rstrip("\r")
        if not text.strip():
            return
        self._last[stream].append(text)
        if not (text.startswith("{") and text.endswith("}")):
            text = _record("output", stream=stream, line=text)
        try:
            if self._lines_left_out:
                self._append(_record("log_lines_left_out", count=self._lines_left_out))
                self._lines_left_out = 0
            self._append(text)
            if self._file.tell() > self._file_bytes_max:
                self._rotate()
        except OSError as error:
            self._lines_left_out += 1
            self._report_failure(f"{error.strerror} ({self._path.name})")

    def last_lines(self) -> list[str]:
        """The last lines of stderr; of stdout when stderr was silent, since services log there."""
        lines = self._last["stderr"] or self._last["stdout"]
        return [line[:SHOWN_CHARACTERS_MAX] for line in without_frames([readable(line) for line in lines])]

    def mark_start(self) -> None:
        """Forgets the last process's lines."""
        for lines in self._last.values():
            lines.clear()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _append(self, text: str) -> None:
        """One whole line, or none: what a full disk took of it is cut off again. Raises OSError."""
        line = text.encode() + b"\n"
        end = self._file.seek(0, os.SEEK_END)
        if self._file.write(line) != len(line):
            self._file.truncate(end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _rotate(self) -> None:
        self._path.replace(self._path.with_name(self._path.name + ".1"))
        full, self._file = self._file, self._open()
        full.close()

    def _open(self) -> io.FileIO:
        file = io.FileIO(self._path, "a")  # unbuffered: what a full disk refuses must not come again with the next line
        self._path.chmod(0o600)
        return file


def _record(event: str, **fields: object) -> str:
    return json.dumps({"timestamp": datetime.now(UTC).isoformat(), "event": event, **fields}, ensure_ascii=False)


def readable(line: str) -> str:
    """A JSON log record as ``level event key=value …``; any other line without the frame that exception groups draw."""
    try:
        record = json.loads(line)
    except ValueError:
        return _GROUP_FRAME.sub("", line)
    if not isinstance(record, dict) or "event" not in record:
        return line
    level, event = str(record.pop("level", "info")), str(record.pop("event"))
    shown = " ".join(f"{key}={value}" for key, value in record.items() if key not in {"timestamp", "service", "logger"})
    return f"{level} {event} {shown}".rstrip()


def without_frames(lines: list[str]) -> list[str]:
    """A traceback without its stack: the log file has it; a person in the terminal needs what went wrong."""
    shown: list[str] = []
    after_frame = False
    for line in (line.strip() for line in lines):
        is_frame = line.startswith('File "')
        if line and not is_frame and not after_frame and not _TRACEBACK.match(line):
            shown.append(line)
        after_frame = is_frame
    return shown or [line for line in lines if line.strip()]
