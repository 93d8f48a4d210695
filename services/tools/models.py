"""Tools and what comes out of calling them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kit.access.principal import QUERY, SCOPES
from services.tools.errors import ToolError


class Effect(Enum):
    """What a call does to the world."""

    NONE = "none"
    """Nothing: it may be made again."""
    IDEMPOTENT = "idempotent"
    """Something that is there once, however often it is done."""
    ONCE = "once"
    """Something that is there twice when it is done twice: an e-mail, a payment. Never repeated when its fate is unknown."""


INTENTS = ("search", "math", "time")
"""What a message can ask for where no model calls tools."""


@dataclass(frozen=True)
class WithoutModel:
    """What a tool does in a chat where no model calls tools: the words of a message ask for it."""

    intent: str
    """One of INTENTS. A search answers with passages, `math` with a `result`, `time` with `time`, `weekday` and `timezone`."""
    argument: str = ""
    """The argument that gets what is asked for: the queries of a search as a list, the expression of a sum."""
    ability: str = ""
    """The ability in words for people: completes "I can"."""


@dataclass(frozen=True)
class Policy:
    """How a tool may be called. A tool module sets POLICY to one of these, or leaves the defaults."""

    timeout_s: float = 5.0
    """Longest a call may take: a person waits for it."""
    parallel_safe: bool = True
    """Whether calls may run beside each other."""
    requires_fresh_input: bool = False
    """Whether it works on what the call before it found, so that it must wait for that."""
    needs_approval: bool = False
    """Whether a person must allow each call; for tools that change something in the world."""
    effect: Effect = Effect.NONE
    scope: str = QUERY
    """What the caller must be allowed to do: the scope of what the tool asks of other services in the caller's name."""
    key_arguments: tuple[str, ...] = ()
    """Arguments that make two calls the same; empty means all."""
    worth: int = 0
    """Worth to a model whose context has no room for all tools: the higher, the sooner it is shown. 0 is usual: above it is what a
    model is bad at itself, below it what only refines other tools."""
    called_for_by: tuple[str, ...] = ()
    """Regular expressions, letter case ignored. A message in which one is found calls for the tool, and the model is shown it,
    however many others there are. One a language reads well."""
    without_model: WithoutModel | None = None
    """What it does in a chat where no model calls tools; None: nothing."""
    self_contained: bool = False
    """Whether its result holds no text but its own and that of its arguments. Results of all other tools may hold orders of
    somebody else: after them each call with an effect waits for a person."""
    outward: bool = False
    """Whether a call asks for an address that its arguments name, and so could carry data there. After text of others, a call with
    an address that stands neither in that text nor in the user's messages waits for a person."""
    on_request: bool = False
    """Whether a model is shown it only where the run names it or the message calls for it: another tool does the same for most
    messages, and of two alike a model takes the wrong one."""
    other_name_of: str = ""
    """The tool that is offered in the place of this one. A call by this one's name still calls this one."""


@dataclass(frozen=True)
class Tool:
    """A tool of a source."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments, as in OpenAI function calling."""
    cacheable: bool = False
    policy: Policy = Policy()
    refusal: ToolError | None = None
    """Why the caller that the tool is listed for cannot call it. Made anew for each list."""
    other_names: tuple[str, ...] = ()
    """Names of tools that it is offered in the place of. Known where tools are offered."""


@dataclass(frozen=True, kw_only=True)
class FunctionTool(Tool):
    """A tool that is a function of a module."""

    function: Callable[..., Any]
    """Called with the arguments by name; a coroutine function or a plain one. Returns what JSON can hold, or a ToolOutput."""
    wants_context: bool = False
    """Whether it also takes a ToolContext, as `context`."""
    missing: str = ""
    """What to set up before it can be called; empty when it can."""
    connection: str = ""
    """The service that its caller must have connected; empty where it needs none."""
    summarise: Callable[[Any], str] | None = None
    """Says in a sentence what came out, where the function returns plain JSON."""


@dataclass(frozen=True)
class Passage:
    """A passage of a document, as the retriever found it."""

    chunk_id: str
    document_id: str
    document_name: str
    collection_id: str
    text: str
    page: int = 0
    """1-based; 0 where there are none."""
    heading_path: tuple[str, ...] = ()
    score: float = 0.0
    ordinal: int = 0
    """Position in the document, from 0."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    content_hash: str = ""
    """Under which the model server keeps what it knows of the text."""
    is_cut: bool = False
    """Whether `text` is only the beginning of the chunk's."""
    hit: Any = field(default=None, compare=False, repr=False)
    """The message that it came in, with this `text`; None where the text is not a document's."""

    @property
    def size_bytes(self) -> int:
        return int(self.hit.ByteSize()) if self.hit is not None else len(self.text.encode(errors="replace"))


@dataclass(frozen=True)
class Quoted:
    """Something of the caller's whose text a content holds. One of the ids is set; a message has that of its thread, too."""

    fact_id: str = ""
    document_id: str = ""
    thread_id: str = ""
    message_id: str = ""


@dataclass(frozen=True)
class ToolOutput:
    """What a tool may return instead of plain JSON."""

    content: Any
    """What the model reads: JSON."""
    summary: str = ""
    """What the person is shown: a sentence."""
    passages: tuple[Passage, ...] = ()
    """The passages whose text the content holds, in its order: what may be cited, and what goes with a deleted document."""
    cached: bool = False
    """Whether it is that of an earlier call with the same arguments. Only the cache says so."""
    quotes: tuple[Quoted, ...] = ()
    """What else of the caller's the content quotes, and with which it is forgotten."""


@dataclass(frozen=True)
class Need:
    """What a tool asks in the middle of a call."""

    kind: str
    """`sampling`: words of a model; `elicitation`: words of the user."""
    digest: str
    """SHA-256 of the question: what an answer is to."""
    content: Mapping[str, Any]
    """The question. Of sampling `system`, `messages` and `max_tokens`; of elicitation `message` and `fields`."""


@dataclass(frozen=True)
class ToolAnswer:
    """The answer to what a tool has asked."""

    digest: str
    text: str
    model: str = ""
    """Which model says so; empty where it was the user."""


@dataclass(frozen=True)
class Caller:
    """For whom tools are listed and called."""

    tenant_id: str
    subject: str = ""
    """In whose name: what one person may read is not shown to another."""
    scopes: frozenset[str] = frozenset(SCOPES)
    """What the caller may do."""


@dataclass(frozen=True)
class Call:
    """What is asked of the toolbox, and by whom."""

    tenant_id: str
    name: str
    arguments: Mapping[str, Any]
    call_id: str = ""
    """The caller's name for this call: asked again, it is the same call. May be empty for tools without effect."""
    allowed_tools: tuple[str, ...] = ()
    """What the caller may use; empty means all that the tenant may."""
    collection_ids: tuple[str, ...] = ()
    """Collections that it may read; empty means all that the subject may."""
    subject: str = ""
    """In whose name: what one person may read is not shown to another."""
    scopes: frozenset[str] = frozenset(SCOPES)
    """What the caller may do."""
    answers: tuple[ToolAnswer, ...] = ()
    """To what the tool has asked when it was called before. Of a tool without effect."""

    @property
    def caller(self) -> Caller:
        return Caller(self.tenant_id, self.subject, self.scopes)


@dataclass(frozen=True)
class ToolOutcome:
    """The result of a call, good or bad."""

    ok: bool
    duration_s: float
    output: Any = None
    """JSON."""
    error_reason: str = ""
    error_message: str = ""
    cached: bool = False
    """Whether it is that of an earlier call with the same arguments."""
    summary: str = ""
    passages: tuple[Passage, ...] = ()
    need: Need | None = None
    """What the tool asks, with which it is to be called again."""
    quotes: tuple[Quoted, ...] = ()
