"""The API server as JSON by path, texts and web sockets. The Python client knows the way and who we are; its classes for objects
are not used: a field that a newer server adds or an older one lacks would make them refuse the whole answer."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.cluster.connection.refusals import NotFound, answered, unreachable
from cli.cluster.errors import CLIENT_MISSING, ClusterUnreachable
from cli.errors import UsageError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientWebSocketResponse
    from kubernetes.aio.client import ApiClient, Configuration

Json = dict[str, Any]

REQUEST_TIMEOUT_S = 20.0
"""For one answer; a long list takes a busy server some seconds."""
_CONNECT_TIMEOUT_S = 5.0
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_KUBECONFIG = "~/.kube/config"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True)
class Api:
    """An open API server."""

    client: ApiClient
    context_namespace: str
    """The namespace of the kubeconfig's context, or that of the pod; empty when none is named."""

    @property
    def server(self) -> str:
        return str(self.client.configuration.host)

    async def get(self, path: str, **query: str | int) -> Json:
        """The object at a path. Raises NotFound, Forbidden, or another CliError."""
        return await self._json("GET", path, query)

    async def get_if_there(self, path: str, **query: str | int) -> Json | None:
        """None where there is no such object, or no such kind of object."""
        try:
            return await self.get(path, **query)
        except NotFound:
            return None

    async def list(self, path: str, **query: str | int) -> list[Json]:
        """All objects of a list."""
        return list((await self.get(path, **query)).get("items") or ())

    async def create(self, path: str, body: Json) -> Json:
        """The object as it was made, in the list at a path. Raises Conflict where there is one of that name."""
        return await self._json("POST", path, {}, body, "application/json")

    async def patch(self, path: str, body: Json, kind: str = MERGE_PATCH) -> Json:
        """The object as it is afterwards. Raises Conflict where the body names a version of it that is not the last one."""
        return await self._json("PATCH", path, {}, body, kind)

    async def text(self, path: str, **query: str | int) -> str:
        """An answer that is not JSON: a log."""
        return (await self._answer("GET", path, query)).decode(errors="replace")

    @asynccontextmanager
    async def websocket(self, path: str, **query: str | int) -> AsyncIterator[ClientWebSocketResponse]:
        """A connection that speaks Kubernetes' channels (v4.channel.k8s.io)."""
        url, headers = await self._prepared("GET", path, query)
        configuration = self.client.configuration
        with self._translate_errors(path):
            socket = await self._session().ws_connect(
                url,
                protocols=("v4.channel.k8s.io",),
                headers=headers,
                proxy=configuration.proxy,
                server_hostname=configuration.tls_server_name,
                max_msg_size=0,
            )
        try:
            yield socket
        finally:
            await socket.close()

    async def _json(
        self, method: str, path: str, query: dict[str, str | int], body: Json | None = None, kind: str = ""
    ) -> Json:
        content = await self._answer(method, path, query, body, kind)
        with self._translate_errors():
            answer: Json = json.loads(content)
        return answer

    async def _answer(
        self, method: str, path: str, query: dict[str, str | int], body: Json | None = None, kind: str = ""
    ) -> bytes:
        """What an answer with a status of success holds. Raises CliError."""
        from aiohttp import ClientTimeout  # noqa: PLC0415 - comes with the client

        timeout = ClientTimeout(total=REQUEST_TIMEOUT_S, sock_connect=_CONNECT_TIMEOUT_S)
        url, headers = await self._prepared(method, path, query)
        headers |= {"Content-Type": kind} if kind else {}
        with self._translate_errors():
            answer = await self.client.rest_client.request(
                method, url, headers=headers, body=body, _request_timeout=timeout
            )
            response: ClientResponse = answer.response
            async with response:
                content = await response.read()
        if response.status >= 300:
            raise answered(response.status, response.reason or "", content.decode(errors="replace"), self.server)
        return content

    async def _prepared(self, method: str, path: str, query: dict[str, str | int]) -> tuple[str, dict[str, str]]:
        _, url, headers, _, _ = await self.client.param_serialize(
            method, path, query_params=list(query.items()), auth_settings=["BearerToken"]
        )
        return url, dict(headers)

    def _session(self) -> Any:
        rest = self.client.rest_client
        # Where the client makes no session of its own before the first request; its own web sockets do the same.
        rest.pool_manager = rest.pool_manager or rest._create_pool_manager()
        return rest.pool_manager

    @contextmanager
    def _translate_errors(self, path: str = "") -> Iterator[None]:
        """Raises ClusterUnreachable, or what a refused web socket at that path means, for the transport's errors."""
        import aiohttp  # noqa: PLC0415 - comes with the client

        try:
            yield
        except aiohttp.WSServerHandshakeError as error:
            raise answered(error.status, f"{path} cannot be connected to", "", self.server) from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise unreachable(self.server, error) from error


@asynccontextmanager
async def open_api(context: str = "") -> AsyncIterator[Api]:
    """The API server of the kubeconfig's context, or inside a pod that of its ServiceAccount. Raises UsageError without the
    client's package or a usable kubeconfig."""
    try:
        from kubernetes.aio import client  # noqa: PLC0415 - takes half a second, and is an extra of its own
    except ImportError as error:
        raise UsageError(CLIENT_MISSING) from error
    configuration = client.Configuration()
    namespace = await _load(configuration, context)
    async with client.ApiClient(configuration) as opened:
        yield Api(opened, namespace)


async def _load(configuration: Configuration, context: str) -> str:
    """Sets the way and who we are; returns the namespace that goes with it."""
    from kubernetes.aio import config  # noqa: PLC0415 - as above

    if not context and (inside := _namespace_of_pod()):
        config.load_incluster_config(client_configuration=configuration)
        return inside
    path = os.environ.get("KUBECONFIG") or _KUBECONFIG
    try:
        await config.load_kube_config(
            path, context=context or None, client_configuration=configuration, persist_config=False
        )
        contexts, active = config.list_kube_config_contexts(path)
    except (config.ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        raise ClusterUnreachable(
            f"The kubeconfig {path} cannot be used: {error}. kubectl config get-contexts lists its contexts; choose "
            "one with --context."
        ) from error
    chosen = next((each for each in contexts if each["name"] == context), active) if context else active
    return str(chosen["context"].get("namespace") or "")


def _namespace_of_pod() -> str:
    """Where this process runs, unless a kubeconfig is named or it runs in no pod."""
    if os.environ.get("KUBECONFIG") or not (_SERVICE_ACCOUNT / "token").is_file():
        return ""
    return (_SERVICE_ACCOUNT / "namespace").read_text("ascii").strip()
