"""Named queries of the operator's: they are run by their name or, where no model writes SQL, when a question asks for one."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from sqlglot import exp

from services.tools.sql.configuration import NamedQuery, ParameterType
from services.tools.sql.models import Dialect, SqlRefused
from services.tools.sql.statements import checked, parse_named, placeholders, with_values


def filled(name: str, query: NamedQuery, given: Mapping[str, Any], dialect: Dialect) -> exp.Query:
    """The statement with the parameters in it. Raises SqlRefused."""
    missing = [each for each in query.parameters if given.get(each) in (None, "")]
    unknown = [each for each in given if each not in query.parameters]
    if missing or unknown:
        wanted = ", ".join(f"{each} ({kind})" for each, kind in query.parameters.items()) or "none"
        raise SqlRefused(f"the query {name} takes these parameters: {wanted}")
    values = {each: _value(each, kind, given[each]) for each, kind in query.parameters.items()}
    return checked(with_values(parse_named(query.sql, dialect), values), dialect)


def asked_for(question: str, queries: Mapping[str, NamedQuery]) -> tuple[str, dict[str, str]] | None:
    """The first query that the question asks for, with the parameters that it names."""
    for name, query in queries.items():
        for pattern in query.asked_by:
            found = re.search(pattern, question, re.IGNORECASE)
            if found is not None:
                return name, {key: value.strip(" ?.!") for key, value in found.groupdict().items() if value}
    return None


def check(name: str, query: NamedQuery, dialect: Dialect) -> None:
    """Raises ValueError for a query that can never run."""
    try:
        found = parse_named(query.sql, dialect)
        if unknown := placeholders(found) - set(query.parameters):
            raise ValueError(f"the query {name} uses :{min(unknown)}, which is not among its parameters")
        checked(with_values(found, dict.fromkeys(query.parameters, "")), dialect)
    except SqlRefused as error:
        raise ValueError(f"the query {name}: {error}") from error


def _value(name: str, kind: ParameterType, value: Any) -> Any:
    try:
        match kind:
            case "integer":
                return int(value)
            case "number":
                return float(value)
            case "date":
                return date.fromisoformat(str(value)).isoformat()
            case _:
                return str(value)
    except ValueError as error:
        raise SqlRefused(f"{name}: {value!r:.60} is no {kind}") from error
