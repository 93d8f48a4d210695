"""`python -m kit.observability.health`: whether the service in this container is ready. HEALTHCHECK and compose.yaml run it;
Kubernetes probes the port itself.

Exit code 0 if it is; else 1, with what it waits for on stderr. It reads the environment itself, not through the service's settings,
which take half a second to import: it runs every few seconds.
"""

import os
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

_TIMEOUT_S = 5.0
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared with, not listened on


def main() -> None:
    problem = unready(os.environ)
    if problem:
        sys.exit(problem)


def unready(environment: Mapping[str, str]) -> str:
    """Why the service is not ready, as its /readyz says; empty if it is."""
    host, port = environment.get("GROUNDWORK_OPS_HOST", "127.0.0.1"), environment.get("GROUNDWORK_OPS_PORT", "")
    if not port.isdecimal() or port == "0":
        return "set GROUNDWORK_OPS_PORT to the port of /readyz: this command cannot find a port that the service chose itself"
    door = HTTPConnection("127.0.0.1" if host == _ANY_ADDRESS else host, int(port), timeout=_TIMEOUT_S)
    try:
        door.request("GET", "/readyz")
        answer = door.getresponse()
        words = answer.read().decode(errors="replace").strip()
    except (OSError, HTTPException) as error:
        return f"{door.host}:{port} does not answer: {error}"
    finally:
        door.close()
    return "" if answer.status == HTTPStatus.OK else words or f"/readyz answers {answer.status}"


if __name__ == "__main__":
    main()
