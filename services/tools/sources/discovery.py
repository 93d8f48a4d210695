"""Finds the tools: every module of the toolbox's packages is one, and every module in the folders of GROUNDWORK_TOOLS_FOLDERS.
Nothing is registered anywhere.

A tool module `name.py` has

    SCHEMA                  the shape of OpenAI function calling
    name(…)                 a coroutine function, or a plain one, which runs in another process. It returns what JSON can hold, or a
                            ToolOutput. A coroutine function with a parameter `context` is given a ToolContext

and may have

    POLICY                  a services.tools.models.Policy
    CACHEABLE               whether what it returned may be used again for the same arguments; not with an effect (default False).
                            What holds passages of documents is never kept
    is_available(settings)  whether it is set up, by the ToolsSettings. One that is not is not offered
    summarise(content)      what came out, as a sentence for the person; for a function that returns plain JSON
    NEEDS                   what to set up where it is not: a sentence for the operator, or a function of the settings that says it
    CONNECTION              the service that its caller must have connected. Without that it is not offered

A file whose name begins with an underscore is no tool.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from kit.dropped_in import BrokenModule, modules_in
from services.tools.calling.folders import PREFIX
from services.tools.errors import BrokenTool
from services.tools.models import INTENTS, Effect, FunctionTool, Policy
from services.tools.settings import ToolsSettings

_NEEDS_UNSAID = "ask the operator to set it up"


def discover(
    toolbox: ModuleType, settings: ToolsSettings | None = None, folders: Sequence[Path] = ()
) -> dict[str, FunctionTool]:
    """Tools by name, sorted. Without settings all are taken for set up. Raises BrokenTool, naming the module and what is wrong with
    it."""
    modules = modules_in(toolbox, folders, setting="GROUNDWORK_TOOLS_FOLDERS", prefix=PREFIX)
    try:
        found = {name: _tool(load(), name, settings) for name, load in modules}
    except BrokenModule as error:
        raise BrokenTool(error.message) from error
    return dict(sorted(found.items()))


def _tool(module: ModuleType, name: str, settings: ToolsSettings | None) -> FunctionTool:
    try:
        function_schema = module.SCHEMA["function"]
        parameters = function_schema["parameters"]
        declared, description = function_schema["name"], function_schema["description"]
        Draft202012Validator.check_schema(parameters)
    except (AttributeError, KeyError, TypeError) as error:
        raise BrokenTool(f"{module.__name__}: SCHEMA is not an OpenAI function schema ({error!r})") from error
    except SchemaError as error:
        raise BrokenTool(f"{module.__name__}: its parameters are not a JSON Schema: {error.message}") from error
    function = getattr(module, name, None)
    if declared != name or not callable(function):
        raise BrokenTool(f"{module.__name__}: the schema and a function of the module must both be named {name!r}")
    tool = FunctionTool(
        name=name,
        description=description,
        parameters=parameters,
        function=function,
        cacheable=bool(getattr(module, "CACHEABLE", False)),
        policy=getattr(module, "POLICY", Policy()),
        wants_context="context" in inspect.signature(function).parameters,
        missing=_missing(module, settings),
        summarise=getattr(module, "summarise", None),
        connection=getattr(module, "CONNECTION", ""),
    )
    _check(module.__name__, tool)
    return tool


def _check(module: str, tool: FunctionTool) -> None:
    if tool.wants_context and not inspect.iscoroutinefunction(tool.function):
        raise BrokenTool(
            f"{module}: only a coroutine function can be given a context; a plain one runs in another process"
        )
    if tool.wants_context and "context" in tool.parameters.get("properties", {}):
        raise BrokenTool(
            f"{module}: no argument may be called context, which is the name of what a tool is given besides"
        )
    if tool.cacheable and tool.policy.effect is not Effect.NONE:
        raise BrokenTool(f"{module}: what has an effect cannot be CACHEABLE: it would be done once for all that ask")
    _check_choice(module, tool)


def _check_choice(module: str, tool: FunctionTool) -> None:
    """What the orchestrator chooses tools by."""
    for pattern in tool.policy.called_for_by:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BrokenTool(f"{module}: called_for_by: {pattern!r:.80} is no regular expression: {error}") from error
    does = tool.policy.without_model
    if does is not None and does.intent not in INTENTS:
        raise BrokenTool(f"{module}: without_model: the intent must be one of {', '.join(INTENTS)}")
    if does is not None and does.argument and does.argument not in tool.parameters.get("properties", {}):
        raise BrokenTool(f"{module}: without_model: it has no argument {does.argument!r:.80}")


def _missing(module: ModuleType, settings: ToolsSettings | None) -> str:
    is_available: Callable[[Any], bool] | None = getattr(module, "is_available", None)
    if settings is None or is_available is None or is_available(settings):
        return ""
    needs = getattr(module, "NEEDS", _NEEDS_UNSAID)
    return str(needs(settings) if callable(needs) else needs)
