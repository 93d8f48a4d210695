"""A Kubernetes API server whose pods answer at their ports, write logs, and are rolled out: what `groundwork cluster` looks at. The
protocols are tried against real servers in tests/cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import WSMsgType, web

from tests.doubles.http_double import Recorded
from tests.doubles.kubernetes import NAMESPACE, KubernetesDouble, Object, refusal

APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
Page = str | Callable[[bytes], str]
"""What a path of a port answers: text, or a function of the request's body."""


class PodsDouble(KubernetesDouble):
    """See the module. `pages`: by pod, port and path; a pod without any refuses connections."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[tuple[str, int, str], Page] = {}
        self.logs: dict[str, list[str]] = {}
        """By pod: lines as `2026-11-23T12:00:00.000000001Z text`."""
        self.previous: dict[str, list[str]] = {}
        self.unauthorized_ports = False
        self.on_patch: Callable[[str, Object], None] = lambda _path, _body: None
        """Called after each change of an object: what the controllers then do."""

    def workload(self, component: str, replicas: int = 1, kind: str = "deployments", **container: Any) -> Object:
        """A Deployment or StatefulSet that is ready, with a pod for each replica."""
        labels = labels_of(component)
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": component, "image": "x:dev", **container}]},
        }
        made = self.put(
            f"{APPS}/{kind}/groundwork-{component}",
            {
                "metadata": {"namespace": NAMESPACE, "labels": labels, "generation": 1},
                "spec": {"replicas": replicas, "template": template},
                "status": ready(replicas),
            },
        )
        for number in range(replicas):
            self.pod(component, number)
        return made

    def pod(self, component: str, number: int = 0, **status: Any) -> Object:
        """A pod that runs and is ready, with our operations port."""
        name = f"groundwork-{component}-{number}"
        running = {"name": component, "ready": True, "restartCount": 0, "image": "x:dev", "state": {"running": {}}}
        return self.put(
            f"{PODS}/{name}",
            {
                "metadata": {
                    "uid": str(next(self._versions)),
                    "labels": labels_of(component),
                    "ownerReferences": [{"kind": "StatefulSet", "name": f"groundwork-{component}"}],
                },
                "spec": {
                    "nodeName": "node1",
                    "containers": [{"name": component, "ports": [{"name": "metrics", "containerPort": 9000}]}],
                },
                "status": {
                    "phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "containerStatuses": [running],
                    **status,
                },
            },
        )

    def says(self, pod: str, readiness: str = "ok\n", metrics: str = "") -> None:
        """What its operations port answers."""
        self.pages[pod, 9000, "/readyz"] = readiness
        self.pages[pod, 9000, "/metrics"] = metrics

    async def _handle(self, request: web.Request) -> web.StreamResponse:  # type: ignore[override]
        if request.path.endswith("/portforward"):
            return await self._forward(request)
        if request.path.endswith("/log"):
            return await self._log(request)
        answer = await super()._handle(request)
        if request.method == "PATCH":
            self.on_patch(request.path, self.objects[request.path])
        return answer

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if self.unauthorized_ports:
            return web.Response(
                status=403, text=refusal(403, "Forbidden", "pods is forbidden: cannot create pods/portforward")
            )
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        pod, port = request.path.split("/")[-2], int(request.query["ports"])
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
        message = await socket.receive()
        assert message.type is WSMsgType.BINARY
        assert message.data[0] == 0
        await self._answer(socket, pod, port, message.data[1:])
        await socket.close()
        return socket

    async def _answer(self, socket: web.WebSocketResponse, pod: str, port: int, sent: bytes) -> None:
        """As a server that sends its answer in pieces, with its length or until the end."""
        head, _, body = sent.partition(b"\r\n\r\n")
        path = head.split(b" ")[1].decode().partition("?")[0]
        page = self.pages.get((pod, port, path))
        if page is None:
            await socket.send_bytes(b"\x01error forwarding port: connect: connection refused")
            return
        text = page if isinstance(page, str) else page(body)
        status = "503 Service Unavailable" if text.startswith("not ok") else "200 OK"
        answer = f"HTTP/1.0 {status}\r\nContent-Type: text/plain\r\n\r\n{text}".encode()
        for start in range(0, len(answer), 1000):
            await socket.send_bytes(b"\x00" + answer[start : start + 1000])

    async def _log(self, request: web.Request) -> web.StreamResponse:
        pod = request.path.split("/")[-2]
        lines = (self.previous if request.query.get("previous") else self.logs).get(pod)
        if lines is None:
            return web.Response(status=400, text=refusal(400, "BadRequest", f"{pod} is waiting to start"))
        return web.Response(text="\n".join(line.partition(" ")[2] for line in lines))

    def _listed(self, request: Recorded) -> list[Object]:
        """Selectors also as `key in (a,b)`, and the field of the name."""
        selector = request.query.get("labelSelector", "")
        key, in_, values = selector.rpartition(",")[2].partition(" in ")
        if in_:
            selector = selector.rpartition(",")[0]
        found = super()._listed(Recorded("GET", request.path, {"labelSelector": selector}, {}, None))
        name = request.query.get("fieldSelector", "").partition("metadata.name=")[2]
        return [
            each
            for each in found
            if (not in_ or each["metadata"]["labels"].get(key) in values.strip("()").split(","))
            and name in {"", each["metadata"]["name"]}
        ]


def labels_of(component: str) -> Mapping[str, str]:
    return {
        "app.kubernetes.io/name": "groundwork",
        "app.kubernetes.io/instance": "groundwork",
        "app.kubernetes.io/component": component,
    }


def ready(replicas: int, generation: int = 1) -> Object:
    """The status of a workload all of whose pods are new and ready."""
    counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), replicas)
    return {"observedGeneration": generation, **counts}
