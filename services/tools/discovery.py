"""Finds the tools: every module of the toolbox is one. Nothing is registered anywhere.

A tool module `name.py` has `SCHEMA` (the shape of OpenAI function calling), a plain or async function `name`, and may have
`CACHEABLE` (bool, default False) and `POLICY` (services.tools.models.Policy). A coroutine function with a parameter `context` is
given a ToolContext.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from services.tools.errors import BrokenTool
from services.tools.models import Policy, Tool


def discover(toolbox: ModuleType) -> dict[str, Tool]:
    """Tools by name, sorted. Raises BrokenTool, naming the module and what is wrong with it."""
    names = sorted(module.name for module in pkgutil.iter_modules(toolbox.__path__))
    return {name: _load(importlib.import_module(f"{toolbox.__name__}.{name}"), name) for name in names}


def _load(module: ModuleType, name: str) -> Tool:
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
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        function=function,
        wants_context=_wants_context(module.__name__, function),
        cacheable=bool(getattr(module, "CACHEABLE", False)),
        policy=getattr(module, "POLICY", Policy()),
    )


def _wants_context(module: str, function: Callable[..., Any]) -> bool:
    if "context" not in inspect.signature(function).parameters:
        return False
    if not inspect.iscoroutinefunction(function):
        raise BrokenTool(
            f"{module}: only a coroutine function can be given a context; a plain one runs in another process"
        )
    return True
