"""Why the system on one machine could not start or go on. Each message says what happened, to what, and what to do next.

``exit_code`` 2 means that the request or the machine must be put right first; 1 that something broke while running.
"""

from __future__ import annotations


class StandaloneError(Exception):
    """Base: printed as it is, without a traceback."""

    exit_code = 1


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


class BackupUnusable(StartRefused):
    """The backup file cannot be read or written: missing, damaged, cut off, in the way."""


class BackupRefused(StandaloneError):
    """What is stored is damaged: a copy of it would be taken for a good one."""


class RestoreRefused(StartRefused):
    """A backup is not restored over data that is there."""


class KeyRefused(StandaloneError):
    """No API key is made: there is one, or no place for it."""


class ChildKeepsCrashing(StandaloneError):
    """A service died several times before it was ready once."""


class StartLimitReached(StandaloneError):
    """A service took more time or memory than it may until it is ready."""


class DataDamaged(StandaloneError):
    """A service says that what it stored cannot be read. Going on could write over what may still be rescued."""
