"""The operator's door of each process: /metrics, /livez and /readyz over plain HTTP. It runs on a thread of its own, so that
it answers, truthfully, even while the event loop is stuck."""

import socket
import socketserver
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from kit.errors import FailedPrecondition
from kit.network.hosts import host_name, is_address

LOOP_STUCK_AFTER_S = 30.0
"""/livez fails when the event loop has not moved for this long: a restart is then the only cure."""


@dataclass(frozen=True)
class Trouble:
    """What is wrong in a process that runs, for an operator: anybody may read it. `stops_service`: what it is there for cannot be
    done at all, so that others should be asked while it lasts. `kind` is a constant for programs, which do not read the words."""

    part: str
    message: str
    stops_service: bool = False
    kind: str = "other"


class OpsServer:
    """Serves the three endpoints until closed. `beat()` is called by the event loop about once a second. /readyz lists the
    troubles, one a line, whether or not the process is ready in spite of them.

    A request must name this machine by an address, as `localhost` or by one of `allowed_hosts`: see kit.network.hosts. Scrapers and
    probes of a cluster use a pod's address.
    """

    def __init__(
        self,
        host: str,
        port: int,
        ready: Callable[[], bool],
        *,
        troubles: Callable[[], Sequence[Trouble]] = tuple,
        allowed_hosts: Collection[str] = (),
    ) -> None:
        self._ready = ready
        self._troubles = troubles
        self._allowed_hosts = frozenset({"localhost", *allowed_hosts})
        self._last_beat = time.monotonic()
        self._metrics = make_wsgi_app()
        try:
            self._server = make_server(host, port, self._app, server_class=_Server, handler_class=_QuietHandler)
        except OSError as error:
            raise FailedPrecondition(
                f"/metrics, /livez and /readyz cannot listen on {host}, port {port} ({error.strerror or error}); "
                "set GROUNDWORK_OPS_HOST and GROUNDWORK_OPS_PORT",
                reason="ADDRESS_IN_USE",
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), name="ops", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def beat(self) -> None:
        self._last_beat = time.monotonic()

    def __enter__(self) -> "OpsServer":
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _app(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        name = host_name(environ.get("HTTP_HOST", ""))
        if not is_address(name) and name not in self._allowed_hosts:
            start_response("403 Forbidden", [("Content-Type", "text/plain")])
            return [
                b"this door does not answer under that name; list it in GROUNDWORK_OPS_ALLOWED_HOSTS if it is yours\n"
            ]
        path = environ["PATH_INFO"]
        if path == "/metrics":
            answer: Iterable[bytes] = self._metrics(environ, start_response)
            return answer
        if path == "/livez":
            return _text(start_response, alive=time.monotonic() - self._last_beat < LOOP_STUCK_AFTER_S)
        if path == "/readyz":
            return _text(start_response, alive=self._ready(), troubles=self._troubles())
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"not found: try /metrics, /livez or /readyz\n"]


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    # make_server would otherwise look the host name up in DNS, which can take seconds on a laptop.
    def server_bind(self) -> None:
        self.server_name = self.server_address[0] if isinstance(self.server_address[0], str) else "localhost"
        socketserver.TCPServer.server_bind(self)
        self.server_port = self.server_address[1]
        self.setup_environ()


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Probes every few seconds are not worth a line."""


def _text(start_response: Any, *, alive: bool, troubles: Sequence[Trouble] = ()) -> list[bytes]:
    status = HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE
    start_response(f"{status.value} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")])
    return [b"ok\n" if alive else b"not ok\n", *(f"{each.part}: {each.message}\n".encode() for each in troubles)]
