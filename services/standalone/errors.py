"""Why the system on one machine could not start or go on. Each message says what happened, to what, and what to do next.

``exit_code`` 2 means that the request or the machine must be put right first; 1 that something broke while running.
"""

from __future__ import annotations

from ops.errors import OperatorError


class StandaloneError(OperatorError):
    """Base."""


class StartRefused(StandaloneError):
    """Something on this machine must be put right first: a port, a permission, a folder, a missing file."""

    exit_code = 2


class DataDirUnusable(StartRefused):
    """The data directory cannot be used: permission, lock, or content that is not Groundwork's."""


class DiskFull(StartRefused):
    """The disk of the data directory has no room."""


class NotRunning(StartRefused):
    """There is no message store to look at."""


class PortTaken(StartRefused):
    """Another process listens on the public port."""


class SettingsRefused(StartRefused):
    """A setting is not valid: ours, or that of a service, which says so by exit code 78 and a line on stderr."""


class KeyRefused(StandaloneError):
    """No API key is made: there is one, or no place for it."""


class PortLost(StandaloneError):
    """Another program has taken a port between its choice and the moment at which a service was to listen on it."""


class ChildKeepsCrashing(StandaloneError):
    """A service died several times before it was ready once."""


class NotRestarted(StandaloneError):
    """A process did not come back after it was ended."""


class StartLimitReached(StandaloneError):
    """A service took more time or memory than it may until it is ready."""


class DataDamaged(StandaloneError):
    """A service says that what it stored cannot be read. Going on could write over what may still be rescued."""
