"""Which release this is."""

from importlib.metadata import PackageNotFoundError, version

UNKNOWN = "unknown"
"""Of code that was never installed as a package: a source tree."""


def release() -> str:
    """The version of the installed package, or UNKNOWN."""
    try:
        return version("groundwork")
    except PackageNotFoundError:
        return UNKNOWN
