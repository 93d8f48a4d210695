"""Runs a browser for a task: a process of its own with a folder of its own, which ends with all that it started when the task ends,
takes too long or takes too much memory."""

import asyncio
import base64
import contextlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from kit.network.egress import EgressGuard
from services.tools.adapters.browser.proxy import BrowserProxy
from services.tools.browser.steps import (
    TASK_TIME_S,
    BrowserFailed,
    BrowserReport,
    BrowserTask,
    Permit,
    SeenFile,
    SeenPage,
)
from services.tools.errors import CallInDoubt, ToolError, ToolsBusy

_log = structlog.get_logger()
_LINE_BYTES_MAX = 64 * 1024 * 1024
_TURN_S = 15.0
_WATCH_EVERY_S = 0.5
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_program(setting: str) -> str:
    """The Chromium of the setting tools_browser; empty where there is none."""
    names = _PROGRAMS if setting == _PROGRAMS[0] else (setting,)
    return next((found for name in names if name and (found := shutil.which(name))), "")


def problem(setting: str) -> str:
    """Why there is no browser; empty when there is."""
    if not find_program(setting):
        return "no Chromium was found: install Debian's `chromium`, or set GROUNDWORK_TOOLS_BROWSER to its path"
    if any(importlib.util.find_spec(package) is None for package in ("playwright", "psutil")):
        return "the packages that drive it are not installed: pip install 'groundwork[browser]'"
    return ""


class ChromiumBrowser:
    """Browser by Chromium; one task at a time, for a browser takes some 400 MB."""

    def __init__(
        self, guard: EgressGuard, program: str, hosts: tuple[str, ...], user_agent: str, *, memory_max_mb: int
    ) -> None:
        self._guard, self._program, self._hosts, self._user_agent = guard, program, hosts, user_agent
        self._memory_max_bytes = memory_max_mb * 1024**2
        self._turn = asyncio.Semaphore(1)

    async def run(self, task: BrowserTask, permit: Permit) -> BrowserReport:
        try:
            async with asyncio.timeout(_TURN_S):
                await self._turn.acquire()
        except TimeoutError as error:
            raise ToolsBusy("the browser is busy; try again in a moment") from error
        try:
            with tempfile.TemporaryDirectory(prefix="groundwork-browser-", ignore_cleanup_errors=True) as folder:
                return await self._in_folder(Path(folder), task, permit)
        finally:
            self._turn.release()

    async def _in_folder(self, folder: Path, task: BrowserTask, permit: Permit) -> BrowserReport:
        proxy = BrowserProxy(self._guard, self._hosts, may_submit=task.may_submit)
        socket_path = folder / "out"
        state = _State()
        async with proxy.listening(socket_path):
            process = await self._start(folder)
            family = _Family(process.pid)
            watching = asyncio.create_task(self._watch(family, state))
            try:
                async with asyncio.timeout(TASK_TIME_S):
                    report = await _converse(process, self._order(folder, socket_path, task), permit, state)
            except TimeoutError as error:
                raise state.failed(f"the browser took longer than {TASK_TIME_S:.0f} s; ask for fewer steps") from error
            except (EOFError, ValueError, OSError) as error:
                raise state.failed(state.why or "the browser broke") from error
            finally:
                watching.cancel()
                await asyncio.shield(_end(process, family))
        refused = [f"{target}: {why}" for target, why in proxy.refused.items()]
        return _report(report, refused)

    async def _start(self, folder: Path) -> asyncio.subprocess.Process:
        # Nothing of this service's environment: it has keys.
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
        }
        program = [sys.executable, "-m", "services.tools.adapters.browser.child"]
        return await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            limit=_LINE_BYTES_MAX,
            start_new_session=True,
        )

    def _order(self, folder: Path, socket_path: Path, task: BrowserTask) -> dict[str, Any]:
        return {
            "socket": str(socket_path),
            "program": self._program,
            "folder": str(folder),
            "user_agent": self._user_agent,
            "is_root": os.geteuid() == 0,
            "may_submit": task.may_submit,
            "steps": [dict(step) for step in task.steps],
        }

    async def _watch(self, family: "_Family", state: "_State") -> None:
        while True:
            if await asyncio.to_thread(family.memory_bytes) > self._memory_max_bytes:
                state.why = f"the pages took more than {self._memory_max_bytes // 1024**2} MiB of memory"
                await asyncio.to_thread(family.kill)
                return
            await asyncio.sleep(_WATCH_EVERY_S)


class _State:
    """What is known of a task while it goes on."""

    has_submitted = False
    why = ""

    def failed(self, why: str) -> ToolError:
        if self.has_submitted:
            return CallInDoubt(
                f"{why}, after something was submitted: it may have been done. It is not submitted again; look at the site whether "
                "it was, before anybody does it anew"
            )
        return BrowserFailed(why)


async def _converse(
    process: asyncio.subprocess.Process, order: Mapping[str, Any], permit: Permit, state: _State
) -> dict[str, Any]:
    """The report. Raises EOFError where the process ends without one."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(_line(order))
    while line := await process.stdout.readline():
        message: dict[str, Any] = json.loads(line)
        if "report" in message:
            report: dict[str, Any] = message["report"]
            return report
        if "ask" in message:
            process.stdin.write(_line(await _judged(str(message["ask"]), permit)))
            await process.stdin.drain()
        elif "submitted" in message:
            state.has_submitted = True
        else:
            _log.info("browser_started", **message)
    raise EOFError


async def _judged(url: str, permit: Permit) -> dict[str, Any]:
    try:
        await permit(url)
    except ToolError as error:
        return {"allow": False, "why": str(error)}
    return {"allow": True}


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _report(said: Mapping[str, Any], refused: list[str]) -> BrowserReport:
    return BrowserReport(
        int(said["done"]),
        [_seen(each) for each in said["seen"]],
        str(said["stopped"]),
        [*map(str, said["blocked"]), *refused],
        has_submitted=bool(said["has_submitted"]),
    )


def _seen(each: Mapping[str, Any]) -> SeenPage | SeenFile:
    if "data" in each:
        data = base64.b64decode(each["data"])
        return SeenFile(str(each["url"]), str(each["name"]), data, bool(each.get("is_screenshot")))
    return SeenPage(
        str(each["url"]), str(each["title"]), str(each["html"]), each["elements"], bool(each["is_truncated"])
    )


async def _end(process: asyncio.subprocess.Process, family: "_Family") -> None:
    await asyncio.to_thread(family.kill)
    await process.wait()


class _Family:
    """A process and all that it has started, also what has lost its parent since."""

    def __init__(self, pid: int) -> None:
        import psutil  # noqa: PLC0415 - of the extra `browser`

        self._errors = psutil.Error
        self._process = psutil.Process(pid)
        self._known = {self._process}

    def memory_bytes(self) -> int:
        """What they have for themselves."""
        self._look()
        total = 0
        for each in self._known:
            with contextlib.suppress(self._errors):
                used = each.memory_info()
                total += used.rss - getattr(used, "shared", 0)
        return total

    def kill(self) -> None:
        self._look()
        for each in self._known:
            with contextlib.suppress(self._errors):
                each.kill()  # not where the number is another process's by now

    def _look(self) -> None:
        with contextlib.suppress(self._errors):
            self._known |= set(self._process.children(recursive=True))
