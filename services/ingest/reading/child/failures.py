"""What is said of a file that the parser could not take."""

import traceback


def too_large(name: str) -> str:
    """What to tell a person whose file needs more memory than a parser may have."""
    return f"{name} needs more memory than one file may take when it is read; split it into smaller files"


def too_deep(name: str) -> str:
    """What to tell a person whose file has elements within elements beyond all use."""
    return f"{name} is nested more deeply than documents are; simplify it and upload it again"


def unreadable(name: str) -> str:
    """What to tell a person whose file breaks the rules of its format in a way that its parser did not foresee."""
    return (
        f"{name} breaks the rules of its format in a way that its reader does not know; "
        "open it in its program, save it again and upload that"
    )


def where(error: BaseException) -> str:
    """What happened and in which line, for the log: not the message, which may quote the document."""
    frames = traceback.extract_tb(error.__traceback__)[-2:]
    return f"{type(error).__name__} at " + " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))
