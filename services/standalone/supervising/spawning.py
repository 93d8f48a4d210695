"""Starts programs that cannot outlive this process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LAUNCHER = Path(__file__).with_name("launcher.py")
GUARD = "prctl" if sys.platform == "linux" else "watch"
"""How they are ended with us; :mod:`.launcher` knows both ways."""


async def spawn(command: Sequence[str], guard: str = GUARD, **options: Any) -> asyncio.subprocess.Process:
    """Starts the command in a session of its own: Ctrl-C in the terminal is for the supervisor, which stops all in order."""
    launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), guard, "--"]
    return await asyncio.create_subprocess_exec(*launcher, *command, start_new_session=True, **options)
