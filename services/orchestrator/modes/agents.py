"""Finds the agents and chooses the one that answers a message."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from kit.dropped_in import BrokenModule, modules_in
from kit.language.terms import tokens
from services.orchestrator import agents as folder
from services.orchestrator.agent import Agent
from services.orchestrator.errors import BrokenAgent, InvalidRequest
from services.orchestrator.log.events import AgentChosen
from services.orchestrator.models import RunRequest

AUTO = "auto"
DEFAULT_AGENT = "reasoning"
_FOLDERS = "GROUNDWORK_AGENTS_FOLDERS"
_PREFIX = "groundwork_agent_"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_STRATEGIES = ("", "lexical", "dense", "hybrid")
_ENGINES = {"dense", "lexical"}
_NAMED = "an agent's file is named in lower-case letters, digits and '_', and not auto; rename it"
_LEAST_WORDS_IN_COMMON = 2
"""One word that a message shares with a description says little: "risk" also stands in questions about facts."""


class Agents:
    """The agents that are offered, by name."""

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        self._agents = dict(sorted(agents.items()))

    @property
    def all(self) -> Sequence[Agent]:
        return list(self._agents.values())

    @property
    def default(self) -> Agent:
        return self._agents[DEFAULT_AGENT]

    def get(self, name: str) -> Agent | None:
        return self._agents.get(name)

    def check(self, name: str) -> None:
        """Raises InvalidRequest for a name that no agent has."""
        if name not in ("", AUTO, *self._agents):
            known = ", ".join(self._agents)
            raise InvalidRequest(f"agent {name[:80]!r} does not exist; use {AUTO}, or one of {known}", field="agent")


class Router(Protocol):
    """Chooses the agent for a message."""

    async def choose(self, request: RunRequest) -> AgentChosen:
        """The choice, with how it was made: `explicit`, `classified` or `default`."""
        ...


class WordRouter:
    """Chooses by the words that a message shares with the descriptions and the names of agents."""

    def __init__(self, agents: Agents) -> None:
        self._default = agents.default.name
        words = {agent.name: _stems(f"{agent.name.replace('_', ' ')} {agent.description}") for agent in agents.all}
        common = words.pop(self._default)
        self._words = {name: own - common for name, own in words.items()}

    async def choose(self, request: RunRequest) -> AgentChosen:
        if request.agent not in ("", AUTO):
            return AgentChosen(request.agent, "explicit")
        asked = _stems(request.question) if self._words else set()
        shared = {name: len(asked & own) for name, own in self._words.items()}
        best = max(shared, key=lambda name: shared[name], default="")
        if best and shared[best] >= _LEAST_WORDS_IN_COMMON:
            return AgentChosen(best, "classified")
        return AgentChosen(self._default, "default")


def discover_agents(folders: Sequence[Path] = ()) -> Agents:
    """The agents of the house and of the folders. Raises BrokenAgent, naming the file and what is wrong with it."""
    modules = modules_in(folder, folders, setting=_FOLDERS, prefix=_PREFIX)
    try:
        return Agents({name: _agent(load(), name) for name, load in modules})
    except BrokenModule as error:
        raise BrokenAgent(error.message) from error


def _agent(module: ModuleType, name: str) -> Agent:
    agent = getattr(module, "AGENT", None)
    if not isinstance(agent, Agent):
        raise BrokenAgent(
            f"{module.__file__}: it has no AGENT = Agent(…); write one, or begin the file's name with '_'"
        )
    if (problem := _problem(agent, name)) is not None:
        raise BrokenAgent(f"{module.__file__}: {problem}")
    return agent.named(name)


def _problem(agent: Agent, name: str) -> str | None:
    """What is wrong with the agent, as a sentence; None when nothing is."""
    schemas = {f"artefact {kind}": schema for kind, schema in agent.artefacts.items()}
    if agent.output is not None:
        schemas["output"] = agent.output
    wrong = [
        (not _NAME.fullmatch(name) or name == AUTO, _NAMED),
        (not agent.description.strip(), "its description is empty; say in one sentence what the agent is for"),
        (agent.searching.strategy not in _STRATEGIES, _asks_for(agent.searching.strategy)),
        (not set(agent.searching.weights) <= _ENGINES, "its weights name another engine than dense and lexical"),
        (agent.output is not None and bool(agent.tools), "it has tools and an output; an agent has one of the two"),
        (agent.output is not None and agent.work is not None, "it has work and an output; an agent has one of the two"),
    ]
    problems = [problem for is_wrong, problem in wrong if is_wrong]
    problems += filter(None, (_problem_of_schema(schema, what) for what, schema in schemas.items()))
    return problems[0] if problems else None


def _asks_for(strategy: str) -> str:
    return f"its strategy is {strategy!r}; use lexical, dense or hybrid, or leave it out"


def _problem_of_schema(schema: Mapping[str, Any], what: str) -> str | None:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"its {what} is no JSON Schema: {error.message}"
    return None if schema.get("type") == "object" else f'its {what} must describe an object: {{"type": "object", …}}'


def _stems(text: str) -> set[str]:
    return {token.stem for token in tokens(text) if not token.is_stopword}
