"""Finds the agents."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from kit.dropped_in import BrokenModule, modules_in
from services.orchestrator import agents as folder
from services.orchestrator.agent import Agent
from services.orchestrator.errors import BrokenAgent, InvalidRequest

AUTO = "auto"
DEFAULT_AGENT = "reasoning"
_FOLDERS = "GROUNDWORK_AGENTS_FOLDERS"
_PREFIX = "groundwork_agent_"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_STRATEGIES = ("", "lexical", "dense", "hybrid")
_ENGINES = {"dense", "lexical"}
_NAMED = "an agent's file is named in lower-case letters, digits and '_', and not auto; rename it"


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
    for pattern in agent.called_for_by:
        try:
            re.compile(pattern)
        except re.error as error:
            wrong.append((True, f"its pattern {pattern!r} is no regular expression: {error}"))
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
