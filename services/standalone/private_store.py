"""A nats-server of one command's own, over a folder that nobody else uses: for restoring, and for looking at a copy."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from kit.jetstream import Nats, connect
from kit.private_files import write_private
from services.standalone import topology
from services.standalone.adapters.health import NetworkProbe
from services.standalone.free_ports import LOOPBACK, choose_free_ports
from services.standalone.settings import inherited_environment
from services.standalone.storage.disk import Disk
from services.standalone.storage.log_files import JsonLinesLog
from services.standalone.supervising.models import ChildEvent, RestartPolicy, StartLimits
from services.standalone.supervising.supervisor import Supervisor

USER = "groundwork"


@asynccontextmanager
async def private_store(
    store: Path, nats_server: Path, limits: StartLimits, say: Callable[[str], None]
) -> AsyncIterator[Nats]:
    """Serves `store` for the block. Raises a StandaloneError when the server says that the data is damaged, takes too much until it
    is ready, or dies again and again. Beside `store` lie its configuration and its log while it runs."""
    rng = random.Random()  # noqa: S311 - spreads instances, hides nothing
    port = choose_free_ports(1, rng, reserved=())[0]
    password = secrets.token_hex(16)
    config, log = store.with_name(f"{store.name}.conf"), store.with_name(f"{store.name}.log")
    write_private(config, _configuration(store, port, password))
    command = [str(nats_server), "--config", str(config)]
    ready = asyncio.Event()
    supervisor = Supervisor(
        [topology.nats_child(command, inherited_environment(), port, limits, damage_advice="Restore a backup")],
        RestartPolicy(),
        probe=NetworkProbe(),
        open_log=lambda _name: JsonLinesLog(log),
        announce=_tell_nobody,
        on_all_ready=ready.set,
        disk=Disk(store.parent, say),
        on_stage_ready=_nothing_to_check,
        on_stage_stopping=_nothing_to_check,
    )
    running = asyncio.create_task(supervisor.run())
    try:
        is_ready = asyncio.create_task(ready.wait())
        await asyncio.wait({running, is_ready}, return_when=asyncio.FIRST_COMPLETED)
        is_ready.cancel()
        if not running.done():
            url = f"nats://{USER}:{password}@{LOOPBACK}:{port}"
            async with connect(url, name="groundwork") as nats:
                yield nats
            supervisor.request_stop()
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for leftover in (config, log):
            await asyncio.to_thread(leftover.unlink, missing_ok=True)


def _configuration(store: Path, port: int, password: str) -> str:
    """One user, who may do all. Synced now and then only: the command is not done before the server has ended in good order."""
    return (
        f"listen: {json.dumps(f'{LOOPBACK}:{port}')}\n"
        f"jetstream {{ store_dir: {json.dumps(str(store))}, sync_interval: 10s }}\n"
        f"authorization {{ user: {USER}, password: {json.dumps(password)} }}\n"
    )


def _tell_nobody(event: ChildEvent) -> None:
    """A command has no use for the life of its own server; what ends it is raised."""


async def _nothing_to_check(stage: int) -> None:
    """What is looked at, the command looks at itself."""
