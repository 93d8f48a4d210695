"""OpenVINO without its telemetry, for the two processes that compute with it.

`import openvino` imports its model converter, which reports each import to a web analytics service unless the package
openvino_telemetry, a hard dependency, is absent; then it takes a stub. Nothing that Groundwork runs may call home.
"""

import sys

_TELEMETRY = "openvino_telemetry"


def without_telemetry() -> None:
    """Call it before anything imports OpenVINO. A None in sys.modules makes a package absent to Python (importlib's documented
    behaviour)."""
    if _TELEMETRY not in sys.modules:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment] # typeshed does not know the documented None
