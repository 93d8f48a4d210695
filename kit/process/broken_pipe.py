"""What remains to be done when nobody reads on what a command prints, as with `| head`."""

import os
import sys

READER_GONE = 141
"""128 + SIGPIPE, as shells say it of a program that a broken pipe has ended."""


def reader_has_gone() -> int:
    """Sends what is still to be printed nowhere: nothing is said of the broken pipe, also not by Python when it ends. Returns the
    exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    return READER_GONE
