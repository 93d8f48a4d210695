"""What a run may be asked for: a request that is bound to be refused later is refused before there is a run."""

import math
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import fields
from datetime import datetime

from kit.stores.idempotency import KEY_PATTERN
from kit.vocabulary.memory_modes import MEMORY_MODES
from services.orchestrator.errors import InvalidRequest, MemoryModeNotOffered
from services.orchestrator.guard.policy import Guard, refuse_unsafe, strictest
from services.orchestrator.log.events import Budgets
from services.orchestrator.models import ResearchOptions, RunRequest, Tool
from services.orchestrator.modes.agents import AUTO
from services.orchestrator.modes.mode import Mode
from services.orchestrator.modes.serving import Modes, listed
from services.orchestrator.research.calling import only_reads
from services.orchestrator.research.models import ANSWERS, Effort
from services.orchestrator.runs.functions import check_brought
from services.orchestrator.verification.verdicts import Verify

SPOKEN = "spoken"
"""The style of an answer that is going to be read aloud."""
_MAX_QUESTION_CHARS = 8_000
_MAX_COLLECTIONS = 64
_MAX_DOCUMENTS = 1_000
_MAX_HISTORY, _MAX_HISTORY_CHARACTERS = 100, 100_000
_MAX_TOOLS = 200
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_=-]{0,127}")
_MAX_TOP_K = 200
"""A record and an event must each fit into one message of the store, which is 1 MB."""
_IDEMPOTENCY_KEY = re.compile(KEY_PATTERN[1:-1])


def check(request: RunRequest, modes: Modes) -> None:
    """Raises ModeNotOffered, InvalidRequest, MemoryModeNotOffered, QuestionBlocked."""
    mode = modes.named(request.mode)
    if not request.question.strip():
        raise InvalidRequest("the question is empty; ask something", field="question")
    if len(request.question) > _MAX_QUESTION_CHARS:
        raise InvalidRequest(
            f"the question has {len(request.question)} characters; at most {_MAX_QUESTION_CHARS} are read",
            field="question",
        )
    if not request.collection_ids and mode.needs_collections:
        raise InvalidRequest("no collection is named; name at least one to search", field="collection_ids")
    _check_ids("collection_ids", request.collection_ids, _MAX_COLLECTIONS)
    _check_ids("document_ids", request.document_ids, _MAX_DOCUMENTS)
    if request.top_k > _MAX_TOP_K:
        raise InvalidRequest(f"top_k is {request.top_k}; at most {_MAX_TOP_K} passages are read", field="top_k")
    _check_budgets(request.budgets)
    _check_history(request)
    _check_taken(request, mode, modes)
    modes.agents.check(request.agent)
    _check_research(request.research, mode)
    check_brought(request, mode, modes)
    if request.guard not in ("", Guard.FLAG, Guard.BLOCK):
        raise InvalidRequest(f"guard is {request.guard[:40]!r}; use flag or block, or leave it out", field="guard")
    if strictest(modes.guard, request.guard) is Guard.BLOCK:
        refuse_unsafe(request.question)


def _check_budgets(budgets: Budgets) -> None:
    for field in fields(budgets):
        name, value = field.name.removesuffix("_s"), getattr(budgets, field.name)
        if not 0 <= value < math.inf:
            raise InvalidRequest(f"budgets.{name} is {value}; give a number above 0, or leave it out", field="budgets")


def _check_history(request: RunRequest) -> None:
    if request.history and request.thread_id:
        raise InvalidRequest("history and thread_id are both given; use one of them", field="history")
    if len(request.history) > _MAX_HISTORY:
        raise InvalidRequest(
            f"history has {len(request.history)} messages; give the last {_MAX_HISTORY}", field="history"
        )
    for message in request.history:
        if message.role not in ("user", "assistant", "tool"):
            raise InvalidRequest(
                f"a message of history is by {message.role[:40]!r}; use user, assistant or tool", field="history"
            )
    if sum(len(message.text) for message in request.history) > _MAX_HISTORY_CHARACTERS:
        raise InvalidRequest(
            f"history has over {_MAX_HISTORY_CHARACTERS} characters; give its last messages", field="history"
        )


def _check_taken(request: RunRequest, mode: Mode, modes: Modes) -> None:
    """What some modes take and others do not."""
    name = mode.name.value
    if request.memory not in ("", *MEMORY_MODES):
        raise MemoryModeNotOffered(
            f"memory mode {request.memory[:40]!r} is not offered; use {', '.join(MEMORY_MODES)}, or leave it out"
        )
    if request.memory and not mode.remembers:
        others = listed(each for each in modes.all if each.remembers)
        raise InvalidRequest(f"mode {name} uses no memory of its user; leave it out, or use {others}", field="memory")
    if request.verify not in ("", *Verify):
        known = ", ".join(Verify)
        raise InvalidRequest(f"verify is {request.verify[:40]!r}; use {known}, or leave it out", field="verify")
    if request.document_ids and not mode.takes_documents:
        others = listed(each for each in modes.all if each.takes_documents)
        raise InvalidRequest(
            f"mode {name} searches whole collections; name collection_ids instead, or use {others}",
            field="document_ids",
        )
    if request.agent not in ("", AUTO) and not mode.takes_agents:
        others = listed(each for each in modes.all if each.takes_agents)
        raise InvalidRequest(f"mode {name} uses no agent; leave it out, or use {others}", field="agent")
    if request.style not in ("", SPOKEN):
        raise InvalidRequest(f"style is {request.style[:40]!r}; use {SPOKEN}, or leave it out", field="style")
    if request.style and not mode.speaks:
        others = listed(each for each in modes.all if each.speaks)
        raise InvalidRequest(f"mode {name} writes no spoken answers; leave style out, or use {others}", field="style")
    if request.tools is not None and not mode.takes_tools:
        others = listed(each for each in modes.all if each.takes_tools)
        raise InvalidRequest(f"mode {name} uses no tools; leave them out, or use {others}", field="tools")
    if request.tools is not None and len(request.tools.names) > _MAX_TOOLS:
        raise InvalidRequest(f"tools names {len(request.tools.names)}; name at most {_MAX_TOOLS}", field="tools")


def _check_research(options: ResearchOptions | None, mode: Mode) -> None:
    if options is None:
        return
    if not mode.takes_research:
        raise InvalidRequest(
            f"mode {mode.name.value} does no research; leave research out, or use agent", field="research"
        )
    if options.effort not in ("", *(each.value for each in Effort)):
        raise InvalidRequest(
            f"effort is {options.effort[:40]!r}; use auto, low, medium or high", field="research.effort"
        )
    if options.answer not in ("", *ANSWERS):
        raise InvalidRequest(f"answer is {options.answer[:40]!r}; use short or report", field="research.answer")


def check_tools(request: RunRequest, mode: Mode, tools: Collection[Tool]) -> None:
    """Raises InvalidRequest when the request names a tool that is not offered to its tenant, or that its mode may not call."""
    named_tools, offered = (request.tools.names if request.tools else ()), {each.name for each in tools}
    unknown = [name for name in named_tools if not any(each.is_named([name]) for each in tools)]
    if unknown:
        named = ", ".join(repr(name[:40]) for name in unknown[:5])
        raise InvalidRequest(
            f"there is no tool {named}; use some of {', '.join(sorted(offered)) or 'none: no tool is offered'}, or leave tools out",
            field="tools",
        )
    acting = [each.name for each in tools if each.is_named(named_tools) and not only_reads(each)]
    if acting and mode.only_reads:
        raise InvalidRequest(
            f"{', '.join(acting)} may change something or needs a person; mode {mode.name.value} only reads: leave it out, or ask "
            "in POST /v1/chat",
            field="tools",
        )


def _check_ids(field: str, ids: Sequence[str], most: int) -> None:
    """The limits of the retriever's contract: a run that is bound to be refused there is not begun."""
    if len(ids) > most:
        raise InvalidRequest(f"{field} names {len(ids)}; name at most {most}", field=field)
    for each in ids:
        if not _ID.fullmatch(each):
            raise InvalidRequest(
                f"{field} has {each[:80]!r}, which is no id; use 1 to 128 of A-Z, a-z, 0-9, '-', '_', '='", field=field
            )


def new_run_id(now: datetime) -> str:
    """32 hex characters that sort by time: 48 bits of milliseconds, 80 of randomness (the layout of UUIDv7's use, RFC 9562)."""
    return f"{int(now.timestamp() * 1000):012x}{secrets.token_hex(10)}"


def check_idempotency_key(key: str) -> None:
    """Raises InvalidRequest."""
    if not _IDEMPOTENCY_KEY.fullmatch(key):
        raise InvalidRequest(
            "the idempotency key is not usable; use 1 to 255 visible ASCII characters, such as a UUID",
            field="idempotency_key",
        )
