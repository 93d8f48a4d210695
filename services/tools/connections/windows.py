"""How often the services of connections are asked: so many requests a minute by one connection, and so many in one run."""

from cachetools import TTLCache

from services.tools.connections.records import Connection
from services.tools.web.windows import Windows

_PER_MINUTE = 30
"""What GitHub allows an account to search in a minute; Google and mail servers allow more."""
_PER_RUN = 100
_CONNECTIONS_MAX = 4_096


class ConnectionWindows:
    """The windows of all connections to one service, in this process."""

    def __init__(self) -> None:
        self._windows: TTLCache[tuple[str, str], Windows] = TTLCache(_CONNECTIONS_MAX, 2 * 3_600.0)

    def of(self, tenant_id: str, connection: Connection) -> Windows:
        """Those of one connection."""
        key = (tenant_id, connection.subject)
        windows = self._windows.get(key) or Windows(_PER_MINUTE, _PER_RUN)
        self._windows[key] = windows  # kept for as long again
        return windows
