"""What ends a command early: printed as it is, without a traceback.

Exit codes: 1 the server or a document said no, 2 the command, its API key or the machine must be put right first, 3 the answer is
that the documents do not say, 4 the run waits for a person's decision, 130 Ctrl-C, 141 nobody reads on what is printed.
"""

from __future__ import annotations

import re
from typing import Any

UNAUTHENTICATED = 401
_BAD_REQUEST, _TOO_MANY = 400, 429
REFUSED = 3
"""Exit code of a command whose answer is that the documents do not say."""
WAITING = 4
"""Exit code of a command whose run waits for a person's decision."""
_DOCUMENT_ID = re.compile("[0-9a-f]{8,64}")
_ARGUMENTS = {
    "message": "the question",
    "question": "the question",
    "query": "the query",
    "agent": "--agent",
    "tools": "--tool",
    "collection_ids": "--collection",
    "filters.document_ids": "--document",
    "filters.metadata": "--where",
    "filters.date_from": "--from",
    "filters.date_to": "--to",
    "status": "--status",
    "scopes": "--scope",
    "expires_at": "--expires",
    "thread_id": "the thread",
    "collection_id": "the collection",
    "document_id": "the document",
    "run_id": "the run",
    "key_id": "the key",
}
"""Members of requests as the commands call them. An id that is an argument here and an option there is called by its kind."""


class CliError(Exception):
    """Base. The message says what happened, to what, and what to do next."""

    exit_code = 1


class UsageError(CliError):
    """What was asked for cannot be done as asked."""

    exit_code = 2


class ServerUnreachable(CliError):
    """Nobody answers at the server's address."""

    exit_code = 2


class ApiError(CliError):
    """The server answered with a problem (RFC 9457)."""

    def __init__(self, status: int, problem: dict[str, Any], retry_after_s: float | None = None) -> None:
        self.status = status
        self.problem = problem
        self.retry_after_s = retry_after_s
        self.reason = str(problem.get("reason", f"HTTP_{status}"))
        if status in {_BAD_REQUEST, UNAUTHENTICATED}:
            self.exit_code = UsageError.exit_code
        said = _wrong_words(problem) or problem.get("detail") or f"the server answered with HTTP {status}"
        super().__init__(f"{said} ({self.reason}){_advice(status, retry_after_s)}")


def _advice(status: int, retry_after_s: float | None) -> str:
    """What to do, where the server cannot know the options of this command."""
    if status == UNAUTHENTICATED:
        return "\nGive your key to this command: export GROUNDWORK_API_KEY=gw_…"
    if status == _TOO_MANY and retry_after_s:
        return f"\nTry again in {retry_after_s:g} s."
    return ""


def _wrong_words(problem: dict[str, Any]) -> str:
    """What is wrong with a request, in the words of the command; empty when it is something else."""
    said = []
    for each in problem.get("errors") or ():
        field, message = str(each.get("field", "")), str(each.get("message", ""))
        said.append(f"{_called(field)}: {message}")
    return f"That cannot be asked: {'; '.join(said)}" if said else ""


def _called(field: str) -> str:
    """A member such as `scopes.0` or `filters.date_from` in the words of the command; its own name where there are none."""
    parts = field.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((_ARGUMENTS[name] for name in names if name in _ARGUMENTS), field)


def in_words(text: str, what: str) -> str:
    """The text, which must say something. Raises UsageError that names `what` is missing."""
    if not text.strip():
        raise UsageError(f"The {what} is empty. Write it in quotation marks behind the command.")
    # Bytes of the command line that the environment's encoding lacks come as surrogates; one that is no UTF-8 either is no text.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def given(id_: str, what: str) -> str:
    """The id of a collection, a document …, `what`, which must be there. Raises UsageError."""
    if not id_:
        raise UsageError(f"The id of the {what} is empty: write it, or check the variable that it comes from.")
    return id_


def document_id(id_: str) -> str:
    """The id of a document, which must look like one: a search would find nothing in others. Raises UsageError."""
    if not _DOCUMENT_ID.fullmatch(given(id_, "document")):
        raise UsageError(f"--document {id_!r} is no document id; `groundwork documents list` shows them.")
    return id_
