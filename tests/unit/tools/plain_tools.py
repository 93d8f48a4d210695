"""Tools that are no coroutines: importable, since they run in a process of their own."""

import os
import time
from typing import Any

from services.tools.errors import ToolError


def give(count: int) -> int:
    return count


def own_process(count: int) -> int:
    return os.getpid()


def breaks(count: int) -> None:
    raise RuntimeError("password=hunter2")


def refuses(count: int) -> None:
    raise ToolError("not today", reason="NOT_TODAY")


def hangs(count: int) -> None:
    time.sleep(3600)


def dies(count: int) -> None:
    os._exit(9)


def odd(count: int) -> Any:
    return object()


def large(count: int) -> str:
    return "x" * 200_001
