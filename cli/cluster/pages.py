"""What the pods themselves say: our processes on their operations port, NATS servers on theirs, and vLLM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cli.cluster import nats_state
from cli.cluster.api import Api
from cli.cluster.concurrency import gathered
from cli.cluster.metrics import Metrics
from cli.cluster.port_forward import PortUnreachable, ask
from cli.cluster.refusals import Forbidden
from cli.cluster.release import namespaced
from cli.cluster.snapshot import NatsServer, Ops, Pod, ServedModel, Snapshot, Stream, Trouble
from cli.errors import CliError

OPS_PORT = 9000
_VLLM_PORT = 8000
_OK = 200
_LOG_LINES = 2000


@dataclass(frozen=True)
class Pages:
    """All of it."""

    ops: Mapping[str, Ops] = field(default_factory=dict)
    nats: Sequence[NatsServer] = ()
    streams: Sequence[Stream] = ()
    served: Sequence[ServedModel] = ()


async def read_pages(api: Api, snapshot: Snapshot, unseen: list[str], *, with_logs: bool) -> Pages:
    """Asks all pods that run, on nodes that answer. Where ports may not be forwarded that is noted in `unseen`."""
    reader = _PageReader(api, snapshot.namespace, with_logs=with_logs)
    lost = snapshot.lost_nodes
    pods = [pod for pod in snapshot.pods if pod.phase == "Running" and pod.node not in lost and not pod.is_of_job]
    ours = [pod for pod in pods if OPS_PORT in pod.ports.values()]
    try:
        ops = await gathered([reader.ops(pod) for pod in ours])
        servers = await gathered([reader.nats(pod) for pod in pods if pod.component == "nats"])
        served = await gathered([reader.vllm(pod) for pod in pods if pod.component == "vllm"])
    except Forbidden as error:
        unseen.append(f"what the pods say of themselves ({str(error).partition('. ')[0]})")
        return Pages()
    states = {server.name: state for server, state in servers if state}
    return Pages(
        dict(zip((pod.name for pod in ours), ops, strict=True)),
        [server for server, _ in servers],
        nats_state.streams(states),
        served,
    )


class _PageReader:
    """Asks one pod at a time."""

    def __init__(self, api: Api, namespace: str, *, with_logs: bool) -> None:
        self._api = api
        self._namespace = namespace
        self._with_logs = with_logs

    async def ops(self, pod: Pod) -> Ops:
        try:
            readiness = await ask(self._api, self._namespace, pod.name, OPS_PORT, "/readyz")
            metrics = await ask(self._api, self._namespace, pod.name, OPS_PORT, "/metrics")
        except Forbidden:
            raise
        except CliError as error:
            return Ops(ready=False, problem=str(error))
        _, *lines = readiness.text.splitlines()
        return Ops(readiness.status == _OK, tuple(map(_trouble, lines)), Metrics.parse(metrics.text))

    async def nats(self, pod: Pod) -> tuple[NatsServer, str]:
        """The server, and its page of streams."""
        try:
            pages = [await self._page(pod, path) for path in ("/healthz", "/varz", nats_state.STATE_PATH)]
            log = await self._log(pod) if self._with_logs else ""
            return nats_state.server(pod.name, pages[0], pages[1], pages[2], log), pages[2]
        except Forbidden:
            raise
        except (CliError, ValueError) as error:
            return NatsServer(pod.name, healthy=False, problem=str(error)), ""

    async def vllm(self, pod: Pod) -> ServedModel:
        try:
            listed = json.loads(await self._page(pod, "/v1/models", _VLLM_PORT))
            return ServedModel(pod.name, tuple(str(each["id"]) for each in listed["data"]))
        except PortUnreachable as error:
            return ServedModel(pod.name, problem=str(error))
        except (ValueError, KeyError, TypeError):
            return ServedModel(pod.name, problem="what answers there lists no models")

    async def _page(self, pod: Pod, path: str, port: int = nats_state.PORT) -> str:
        return (await ask(self._api, self._namespace, pod.name, port, path)).text

    async def _log(self, pod: Pod) -> str:
        path = f"{namespaced(self._namespace, 'v1/pods')}/{pod.name}/log"
        try:
            return await self._api.text(path, tailLines=_LOG_LINES, container="nats")
        except CliError:
            return ""


def _trouble(line: str) -> Trouble:
    part, _, message = line.partition(": ")
    return Trouble(part, message) if message else Trouble("", line)
