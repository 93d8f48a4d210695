"""What an agent is. An agent is one file, in services/orchestrator/agents or in a folder of GROUNDWORK_AGENTS_FOLDERS; its name is
the file's, and the file has

    AGENT = Agent("Finds obligations, deadlines and risks in contracts.", prompt="…", output={…}, …)

Nothing registers it: it is there from the next start on. docs/agents.md explains each part.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from services.orchestrator.log.events import Answer, Budgets, Evidence

if TYPE_CHECKING:
    from services.orchestrator.work import Work


@dataclass(frozen=True)
class Searching:
    """How an agent searches. What is left empty is as it is without an agent."""

    top_k: int = 0
    """Passages of the evidence set. A request that names a number gets its own."""

    strategy: str = ""
    """Engines to ask: `lexical`, `dense` or `hybrid`. Empty: the retriever decides."""

    metadata: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Only passages whose metadata field has one of these values."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """How much each engine counts, `dense` and `lexical`; only their ratio matters."""


@dataclass(frozen=True)
class Found:
    """What an agent without a model makes its answer from."""

    question: str
    evidence: Sequence[Evidence]
    """The passages that were found, numbered from 1, best first."""


@dataclass(frozen=True)
class Made:
    """An answer that was made without a model."""

    text: str
    """With the number of a passage in square brackets behind each statement: `[1]`."""

    block: Mapping[str, Any] | None = None
    """Follows the agent's `output`."""


@dataclass(frozen=True)
class Agent:
    """A persona that answers questions over documents."""

    description: str
    """What it is for, in one sentence. With `agent: auto` its words decide which agent answers a message."""

    prompt: str = ""
    """What its prompt has besides the rules that hold for every answer."""

    searching: Searching = field(default_factory=Searching)

    tools: Sequence[str] = ()
    """Tools that its model may call. It searches by calling `search`, if that is among them. Without a model that calls tools the
    documents are searched once."""

    budgets: Budgets = Budgets()
    """The most that one of its runs gets, below the installation's own limits. Zero: those."""

    output: Mapping[str, Any] | None = None
    """JSON Schema of an object: its model fills it in, and the answer carries it as `block`. Not together with tools."""

    checked_first: bool = False
    """Whether its model gives its answer whole, by a schema, with the numbers of its sources and whether they carry it. It is
    checked before any of it is shown. Its tools, its work and its output go before it."""

    show: Callable[[Mapping[str, Any]], str] | None = None
    """The text that shows a block. Without: its fields as an outline."""

    without_model: Callable[[Found], Made | None] | None = None
    """Makes the answer where no model does. None, or without: the documents are quoted."""

    work: "Callable[[Work], Awaitable[Answer | None]] | None" = None
    """Its own way of working: a plain function over its run. Without it, and where it returns None: one search and one answer. Not
    together with output."""

    artefacts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Kinds of artefacts that it makes, besides those that all clients know: a JSON Schema each."""

    called_for_by: Sequence[str] = ()
    """Regular expressions of messages that call for it, where no model decides. Letter case does not count."""

    name: str = ""
    """That of its file."""

    def named(self, name: str) -> "Agent":
        return replace(self, name=name)
