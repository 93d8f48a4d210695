"""The toolbox with a web of the test's own on the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

from kit.limits.counters import Counters
from kit.network.egress import EgressGuard, parse_networks
from services.tools.adapters.http.web_client import GuardedWebClient
from services.tools.context import Services
from services.tools.settings import ToolsSettings
from services.tools.web.fetching import Fetcher
from services.tools.web.reader import FileReader, Web
from services.tools.web.windows import SharedWindows
from tests.service.tools.boxes import Box
from tests.unit.orchestrator.limits.counting import MemoryCounters

LOOPBACK = "127.0.0.0/8"


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def settings(**more: Any) -> ToolsSettings:
    return ToolsSettings(**{"tools_web_hosts": "*", "egress_allowed_networks": LOOPBACK, **more})


async def compute(function: Callable[..., Any], arguments: Mapping[str, Any], timeout_s: float) -> Any:
    """In this process: what is computed is no attack."""
    return function(**arguments)


def web_box(
    ports: list[int],
    clock: Clock | None = None,
    *,
    services: Services | None = None,
    files: FileReader | None = None,
    counters: Counters | None = None,
    **more: Any,
) -> Box:
    """Tools that may read these ports of the loopback interface."""
    more.setdefault("tools_web_hosts", ",".join(f"127.0.0.1:{port}" for port in ports))
    given = settings(**more)
    clock = clock or Clock()
    web = reader(given, clock, files, shared_windows(given, clock, counters))
    box_services = services or Mock(spec=Services)
    box_services.web = web  # type: ignore[misc] # a mock
    return Box(given, services=box_services)


def shared_windows(given: ToolsSettings, clock: Clock, counters: Counters | None = None) -> SharedWindows:
    return SharedWindows(
        given.tools_web_host_per_minute,
        given.tools_web_run_pages,
        counters or MemoryCounters(),
        lambda: datetime.fromtimestamp(clock(), UTC),
        clock,
    )


def reader(
    given: ToolsSettings, clock: Clock, files: FileReader | None = None, windows: SharedWindows | None = None
) -> Web:
    guard = EgressGuard(parse_networks(given.egress_allowed_networks))
    fetcher = Fetcher(
        GuardedWebClient(guard, given.tools_web_user_agent),
        windows or shared_windows(given, clock),
        hosts=given.tools_web_hosts,
        user_agent=given.tools_web_user_agent,
        asks_robots=given.tools_web_robots,
        fresh_s=given.tools_web_cache_s,
        clock=clock,
    )
    return Web(fetcher, compute, files or Mock(spec=FileReader))


def html(body: str, head: str = "") -> str:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
