"""`make eval ARGS=sql`: execution accuracy over Chinook and Northwind. Each question is asked in a chat of a running system, with
the tools describe_db and query_db; it counts as answered where the last rows that were read are those of the right statement.

A scripted model writes the statements: rightly, and wrongly first, so that it must see the error. EVAL_OPENAI_BASE_URL,
EVAL_OPENAI_MODEL and EVAL_OPENAI_API_KEY name a real one instead.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cli.client.gateway import Gateway
from evals.claims.answers import Endpoint
from evals.errors import EvaluationError
from evals.sql.questions import DATABASES, DatabaseQuestion, load_questions
from evals.system import running_system
from kit.testing.openai import Reply, scripted_model

UNDER_THRESHOLD, FAILED = 1, 2
RIGHT, WRONG_FIRST = "right at once", "wrong at first"
_DATA = Path("../shared/data/sql_chinook_northwind")
_TOOLS = ["describe_db", "query_db"]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when the share is under the threshold, 2 when it could not be measured."""
    parser = argparse.ArgumentParser(prog="make eval ARGS=sql", description=__doc__)
    parser.add_argument("--data", type=Path, default=_DATA, help="folder of the databases (default %(default)s)")
    parser.add_argument("--fail-under", type=float, default=0.0, help="least share of right rows")
    parser.add_argument("--questions", type=int, default=0, help="so many of each database; 0: all")
    options = parser.parse_args(arguments)
    try:
        questions = _some(load_questions(options.data), options.questions)
        shares = asyncio.run(_measured(questions, options.data))
    except EvaluationError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    return UNDER_THRESHOLD if min(shares) < options.fail_under else 0


def _some(questions: Sequence[DatabaseQuestion], most: int) -> list[DatabaseQuestion]:
    by_name = [[each for each in questions if each.database == name] for name in DATABASES]
    return [each for some in by_name for each in (some[:most] if most else some)]


async def _measured(questions: Sequence[DatabaseQuestion], folder: Path) -> list[float]:
    endpoint = Endpoint.from_environment()
    async with scripted_model(Reply()) as server:
        model = endpoint or Endpoint(server.base_url, "scripted")
        shares = []
        by_text = {each.text: each for each in questions}
        with running_system(settings=_settings(model, folder)) as system:
            async with Gateway.open(system.url) as gateway:
                for writes in [model.model] if endpoint else [RIGHT, WRONG_FIRST]:
                    server.reply_to = partial(_reply, by_text, wrong_first=writes == WRONG_FIRST)
                    right = [each.database for each in questions if await _is_right(gateway, each)]
                    shares.append(_say(writes, questions, right))
        return shares


def _settings(model: Endpoint, folder: Path) -> Mapping[str, str]:
    databases = {name: {"url": f"sqlite:{(folder / f'{name}.sqlite').resolve()}"} for name in DATABASES}
    return {
        "GROUNDWORK_TOOLS_DATABASES": json.dumps(databases),
        "GROUNDWORK_LLM_BASE_URL": model.base_url,
        "GROUNDWORK_LLM_MODEL": model.model,
        "GROUNDWORK_LLM_API_KEY": model.api_key,
        "GROUNDWORK_CHAT_REASONING_STEPS": "5",
    }


def _reply(by_text: Mapping[str, DatabaseQuestion], asked: Mapping[str, Any], *, wrong_first: bool) -> Reply:
    """Reads the tables, writes the statement, and answers."""
    messages = asked["messages"]
    said = "\n".join(str(each.get("content") or "") for each in messages if each["role"] == "user")
    question = next((each for text, each in by_text.items() if text in said), None)
    results = [str(each.get("content") or "") for each in messages if each["role"] == "tool"]
    if question is None or not asked.get("tools"):
        return Reply(["The rows stand in [1]."])
    if not results:
        return _call("describe_db", {"question": question.text, "database": question.database})
    if len(results) == 1 and wrong_first:
        return _query(question, question.mistaken)
    if len(results) == (2 if wrong_first else 1):
        return _query(question, question.sql)
    return Reply(["The database says so [1]."])


def _query(question: DatabaseQuestion, sql: str) -> Reply:
    return _call("query_db", {"question": question.text, "database": question.database, "sql": sql})


def _call(name: str, arguments: Mapping[str, Any]) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Reply([{"tool_calls": [{"index": 0, "id": "c1", "function": function}]}], finish_reason="tool_calls")


async def _is_right(gateway: Gateway, question: DatabaseQuestion) -> bool:
    message = f"{question.text} (database {question.database})"
    body = {"message": message, "tools": _TOOLS, "verify": "off"}
    answer = await gateway.request("POST", "/v1/chat", json=body, headers={"accept": "application/json"})
    read = [each["text"] for each in answer["citations"]]
    return bool(read) and _normal(_rows(read[-1])) == _normal(question.rows)


def _rows(text: str) -> list[list[str]]:
    """The cells of a passage of query_db."""
    if "\n(1 row)" in text:
        line = text.partition("\n(1 row)")[0].rpartition("\n")[2].removesuffix(".")
        return [[cell.partition(": ")[2] for cell in line.split("; ")]]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [line[2:-2].split(" | ") for line in lines[2:]]


def _normal(rows: Sequence[Sequence[str]]) -> Counter[tuple[str, ...]]:
    """Rows without their order, and numbers without what rounding makes of them."""
    return Counter(tuple(sorted(map(_number, row))) for row in rows)


def _number(cell: str) -> str:
    try:
        return f"{float(cell):.2f}"
    except ValueError:
        return cell.strip()


def _say(writes: str, questions: Sequence[DatabaseQuestion], right: Sequence[str]) -> float:
    for name in DATABASES:
        asked = sum(each.database == name for each in questions)
        sys.stdout.write(f"{writes:20} {name:10} {right.count(name)} of {asked} questions with the right rows\n")
    return len(right) / len(questions)


if __name__ == "__main__":
    sys.exit(main())
