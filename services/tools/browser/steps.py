"""What a browser is asked to do, and what came of it. Both travel as JSON between the service and the process of the browser."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from services.tools.errors import ToolError

STEPS_MAX = 20
TASK_TIME_S = 90.0
"""For all steps of a task, with the start of the browser."""
TIMEOUT_S = TASK_TIME_S + 45.0
"""Of a tool that asks a browser: it may wait for another task to end, and read files and pictures afterwards."""
WAIT_S_MAX = 10.0
TARGET_CHARACTERS_MAX = 300
TEXT_CHARACTERS_MAX = 4_000


class BrowserFailed(ToolError):
    """The browser could not do what was asked, and nothing was submitted."""

    reason = "BROWSER_FAILED"


@dataclass(frozen=True)
class BrowserTask:
    """Steps to do, one after another, in a browser that has no history, no cookies and no logins."""

    steps: Sequence[Mapping[str, Any]]
    """As in the schema of the tool: `do` and what belongs to it."""
    may_submit: bool = False
    """Whether forms may be submitted. Otherwise only documents are asked for, and what is filled in leaves no page."""


@dataclass(frozen=True)
class SeenPage:
    """A page as a step has read it."""

    url: str
    title: str
    html: str
    elements: Sequence[Mapping[str, str]] = ()
    """Links, buttons and fields that can be seen: `kind` and `name`."""
    is_truncated: bool = False


@dataclass(frozen=True)
class SeenFile:
    """A file that the browser downloaded, or the picture of a screenshot."""

    url: str
    name: str
    data: bytes
    is_screenshot: bool = False


@dataclass(frozen=True)
class BrowserReport:
    """What came of a task."""

    done: int
    """Steps that were done."""
    seen: Sequence[SeenPage | SeenFile] = ()
    stopped: str = ""
    """Why the step after those was not done; empty when all were."""
    blocked: Sequence[str] = ()
    """Requests of the pages that were not let out, each with the reason."""
    said: Mapping[str, Any] = field(default_factory=dict)
    """The last page: its address and title."""
    has_submitted: bool = False
    """Whether something left the browser that may have changed something."""


class Permit(Protocol):
    """Judges the address of a page before the browser opens it."""

    async def __call__(self, url: str) -> None:
        """Raises ToolError where it must not be opened."""
        ...


class Browser(Protocol):
    """Runs browsers."""

    async def run(self, task: BrowserTask, permit: Permit) -> BrowserReport:
        """Does the steps in a browser of their own. Raises BrowserFailed, ToolsBusy, and CallInDoubt where the browser broke after
        something was submitted."""
        ...
