"""Databases as a caller of one running service asks them, SQLite and PostgreSQL: tables linked among a hundred, named queries,
masks, rows by subject, and statements of attackers. `tests/unit/tools/test_sql_safety.py` has more of them, in the same process."""

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf import json_format

from kit.access.principal import QUERY, Principal
from tests.service.tools.calling import Tools, running_tools
from tests.service.tools.postgres import PASSWORD, Server, missing, running_server
from tests.service.tools.test_postgres import ROLES, contents
from tests.unit.tools.sql_attacks import ATTACKS, PAYLOADS, SECRETS, payloads
from tests.unit.tools.test_sql_safety import GUARDED
from tests.unit.tools.test_sql_safety import TABLES as SHOP

pytestmark = pytest.mark.asyncio(loop_scope="module")

POSTGRES = "shop-postgres"
ANN, BOB = (Principal("acme", name, frozenset({QUERY})) for name in ("ann", "bob"))
EVERY_NTH = 100
"""Of the lists of others, which the unit tests try whole."""
QUERIES = {
    "orders_above": {
        "description": "Orders above a total.",
        "sql": "SELECT id, total FROM orders WHERE total > :least",
        "parameters": {"least": "number"},
        "asked_by": [r"orders above (?P<least>\d+)"],
    }
}


def _hundred_tables() -> str:
    """Tables of a company, two of which are about berths and their fees."""
    made = [
        f"CREATE TABLE {area}_{what} (id INTEGER PRIMARY KEY, {what}_name TEXT, amount REAL);"
        for area in ("sales", "stock", "staff", "payroll", "fleet", "legal", "audit", "travel", "press", "kitchen")
        for what in ("entry", "line", "batch", "review", "vendor", "ledger", "ticket", "visit", "draft", "summary")
    ]
    return "\n".join(
        [
            *made[:98],
            "CREATE TABLE harbour_berths (id INTEGER PRIMARY KEY, berth_name TEXT, length_m REAL);",
            "CREATE TABLE mooring_fees (berth_id INTEGER REFERENCES harbour_berths (id), fee_per_night REAL);",
            "INSERT INTO harbour_berths VALUES (1, 'North quay', 12), (2, 'South quay', 30);",
            "INSERT INTO mooring_fees VALUES (1, 40), (2, 90);",
        ]
    )


@pytest.fixture(scope="module")
def shop_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("databases") / "shop.sqlite"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server | None]:
    """None where Debian's package is not installed."""
    if missing():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="gw-pg-") as folder, running_server(Path(folder)) as running:
        running.sql("CREATE DATABASE shop")
        running.sql(SHOP + ROLES, "shop")
        yield running


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def tools(request: pytest.FixtureRequest, shop_file: Path, postgres: Server | None) -> AsyncIterator[Tools]:
    company = shop_file.with_name("company.sqlite")
    nats_url = next(request.getfixturevalue("_accounts"))
    for path, script in ((shop_file, SHOP), (company, _hundred_tables())):
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.close()
    databases: dict[str, Any] = {
        "shop": {"url": f"sqlite:{shop_file}", "timeout_s": 1.0, "queries": QUERIES, **GUARDED},
        "company": {"url": f"sqlite:{company}"},
    }
    if postgres is not None:
        databases[POSTGRES] = {"url": postgres.url(), "timeout_s": 2.0, "queries": QUERIES, **GUARDED}
    passwords = {POSTGRES: PASSWORD} if postgres is not None else {}
    async with running_tools(
        nats_url, tools_databases=databases, tools_database_passwords=passwords, tools_calls_at_once=8
    ) as running:
        yield running


# PostgreSQL is a package of the system; SQLite is tested everywhere.
@pytest.fixture(
    params=["shop", pytest.param(POSTGRES, marks=pytest.mark.skipif(bool(missing()), reason=missing()))], scope="module"
)
def shop(request: pytest.FixtureRequest) -> str:
    """The name of a database."""
    return str(request.param)


async def asked(tools: Tools, principal: Principal = ANN, tool: str = "query_db", **arguments: Any) -> str:
    """All that is told of a call: what it answers, or why not."""
    return json_format.MessageToJson(
        await tools.result(tool, principal=principal, **arguments), ensure_ascii=False, indent=None
    )


async def test_tables_are_linked_among_a_hundred_and_answered(tools: Tools) -> None:
    question = "What does a berth in the harbour cost per night?"
    described = await tools.call("describe_db", database="company", question=question)
    assert all(name in described["tables"] for name in ("harbour_berths", "mooring_fees")), described["tables"]
    assert len(described["other_tables"]) > 50
    sql = (
        "SELECT b.berth_name, f.fee_per_night FROM harbour_berths b JOIN mooring_fees f ON f.berth_id = b.id "
        "WHERE f.fee_per_night > 50"
    )
    answer = await asked(tools, database="company", question=question, sql=sql)
    assert ("South quay" in answer, "North quay" in answer) == (True, False), answer
    wrong = await asked(tools, database="company", question=question, sql="SELECT fee FROM mooring_fees")
    assert "no such column: fee" in wrong, wrong


async def test_named_query_needs_no_model_and_rows_are_the_subjects(tools: Tools, shop: str) -> None:
    for principal, own, foreign in ((ANN, "10", "20"), (BOB, "20", "10")):
        rows = await asked(tools, principal, database=shop, question="Which orders above 5 are there?")
        assert (f"total: {own}" in rows, f"total: {foreign}" in rows) == (True, False), rows
    masked = await asked(tools, database=shop, question="?", sql="SELECT * FROM customers")
    assert [each in masked for each in ("Ada", "masked.example", "Bo")] == [True, False, False], masked
    unasked = await tools.result("query_db", database=shop, question="How is the weather?")
    assert (unasked.error_reason, "orders_above" in unasked.error_message) == ("SQL_MISSING", True)


async def test_attacks_from_outside_write_nothing_and_read_nothing_foreign(
    tools: Tools, shop: str, shop_file: Path, postgres: Server | None
) -> None:
    read = partial(contents, postgres) if shop == POSTGRES and postgres else shop_file.read_bytes
    before = await asyncio.to_thread(read)
    statements = [each for each in [*ATTACKS, *list(payloads(PAYLOADS))[::EVERY_NTH]] if 0 < len(each) <= 4000]
    told = [(each, await asked(tools, database=shop, question="?", sql=each)) for each in statements]
    leaks = [each for each, said in told if any(secret in said.replace(each, "") for secret in SECRETS)]
    assert not leaks
    assert await asyncio.to_thread(read) == before
