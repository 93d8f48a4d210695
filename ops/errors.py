"""Why a command for operators ended. Each message says what happened, to what, and what to do next.

``exit_code`` 2 means that the request or the machine must be put right first; 1 that something is wrong with what was found.
"""

from __future__ import annotations


class OperatorError(Exception):
    """Base: printed as it is, without a traceback."""

    exit_code = 1


class BackupUnusable(OperatorError):
    """The backup file cannot be read or written: missing, damaged, cut off, in the way."""

    exit_code = 2


class BackupRefused(OperatorError):
    """What is stored is damaged: a copy of it would be taken for a good one."""


class RestoreRefused(OperatorError):
    """A backup is not restored over data that is there."""

    exit_code = 2


class NoRoomToExamine(OperatorError):
    """The disk has no room for the copy of the message store that is to be examined."""

    exit_code = 2
