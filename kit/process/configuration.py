"""Reading a process's settings, and saying what is wrong with them: one line for each variable, no traceback."""

import re
import sys
from typing import Any, TypeVar, get_args

from pydantic import SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsError

from kit.validation import expectation

EX_CONFIG = 78
"""Exit code of a process that refuses its settings (sysexits.h). Starting it again as it is would change nothing."""

SettingsT = TypeVar("SettingsT", bound=BaseSettings)

_VALUE_CHARACTERS_MAX = 200


def read_settings(settings_class: type[SettingsT]) -> SettingsT:
    """The settings from the environment. When they are not valid: a line for each wrong one on stderr, and exit code 78."""
    try:
        return settings_class()
    except ValidationError as error:
        lines = setting_problems(error, settings_class)
    except SettingsError as error:
        lines = [_unreadable(error, settings_class)]
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.exit(EX_CONFIG)


def setting_problems(error: ValidationError, settings_class: type[BaseSettings]) -> list[str]:
    """What is wrong, one line for each variable: its name, its value unless that is secret, and what is expected."""
    lines: dict[str, str] = {}
    for problem in error.errors(include_url=False):
        name = str(problem["loc"][0]) if problem["loc"] else ""
        variable = f"{settings_class.model_config.get('env_prefix', '')}{name}".upper() if name else "A setting"
        lines.setdefault(variable, _line(variable, name, problem, settings_class))
    return list(lines.values())


def _unreadable(error: SettingsError, settings_class: type[BaseSettings]) -> str:
    """A setting that is written as JSON, and is none: pydantic names the field and nothing else."""
    name = re.search(r'field "(\w+)"', str(error))
    variable = f"{settings_class.model_config.get('env_prefix', '')}{name[1] if name else ''}".upper()
    return f"{variable} is not valid: it must be JSON"


def _line(variable: str, name: str, problem: Any, settings_class: type[BaseSettings]) -> str:
    if problem["type"] == "missing":
        return f"{variable} is not set, and there is no default"
    field = settings_class.model_fields.get(name)
    if field is None:  # the input is that of the whole model, secrets included
        return f"{variable} is not valid: {expectation(problem)}"
    if _is_secret(field.annotation):  # pydantic counts a secret's characters as items
        return f"{variable} is not valid: {re.sub('items?', 'characters', expectation(problem))}"
    if isinstance(problem["input"], dict):  # a secret may stand in a field where it does not belong
        return f"{variable} is not valid: {expectation(problem)}"
    return f"{variable}={_value(problem['input'])} is not valid: {expectation(problem)}"


def _value(value: object) -> str:
    """As it was set; quoted when it is empty or when it would not stay one readable word."""
    text = str(value)
    shown = text[:_VALUE_CHARACTERS_MAX] + ("…" if len(text) > _VALUE_CHARACTERS_MAX else "")
    return shown if text and text.isprintable() and " " not in text else repr(shown)


def _is_secret(annotation: Any) -> bool:
    return annotation is SecretStr or any(_is_secret(part) for part in get_args(annotation))
