"""What may not be read or done: statements of attackers, against SQLite; `tests/service/tools/test_postgres.py` has PostgreSQL."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.tools.adapters.sql.sqlite_database import SqliteDatabase
from services.tools.errors import ToolError
from services.tools.sql.models import DatabaseReader, Limits
from tests.unit.tools.databases import Asking, asking
from tests.unit.tools.sql_attacks import ATTACKS, PAYLOADS, SECRETS, payloads

TABLES = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT, manager TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), note TEXT, manager TEXT, total REAL);
CREATE TABLE secrets (id INTEGER PRIMARY KEY, word TEXT);
CREATE VIEW all_orders AS SELECT * FROM orders;
INSERT INTO customers VALUES (1, 'Ada', 'ada@masked.example', 'ann'), (2, 'Bo', 'bo@masked.example', 'bob');
INSERT INTO orders VALUES (1, 1, 'ann note', 'ann', 10), (2, 2, 'bob-foreign-note', 'bob', 20);
INSERT INTO secrets VALUES (1, 'hidden-word');
"""
GUARDED: dict[str, Any] = {
    "tables": ["customers", "orders"],
    "masked": ["customers.email"],
    "rows": {
        "orders": "manager = :subject",
        "customers": "id IN (SELECT customer_id FROM orders WHERE manager = :subject)",
    },
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(TABLES)
    connection.close()
    return path


@pytest.fixture
async def shop(file: Path) -> AsyncIterator[Asking]:
    async with asking({"shop": {"url": f"sqlite:{file}", "timeout_s": 1.0, **GUARDED}}) as asked:
        yield asked


async def outcome(shop: Asking, sql: str) -> str:
    """All that is told of a statement: what it answers, or why not."""
    try:
        output = await shop.query(sql)
    except ToolError as error:
        return f"refused: {error}"
    return f"{output.content} {output.summary} {output.passages[0].text}".replace(sql, "")


async def test_no_attack_writes_or_reads_what_is_foreign(shop: Asking, file: Path) -> None:
    before = await asyncio.to_thread(file.read_bytes)
    for sql in [*ATTACKS, *payloads(PAYLOADS)]:
        told = await outcome(shop, sql)
        assert not any(secret in told for secret in SECRETS), sql
    assert await asyncio.to_thread(file.read_bytes) == before
    assert await asyncio.to_thread(os.listdir, file.parent) == [file.name]


async def test_rows_are_those_of_the_subject_whatever_the_statement(shop: Asking) -> None:
    bob = shop.as_("bob")
    assert await shop.rows("SELECT note FROM orders") == [["ann note"]]
    assert await bob.rows("SELECT note FROM orders") == [["bob-foreign-note"]]
    assert await shop.rows("SELECT count(*), sum(total) FROM orders o JOIN customers c ON c.id = o.customer_id") == [
        ["1", "10"]
    ]
    assert await shop.rows("WITH mine AS (SELECT * FROM orders) SELECT m.note FROM mine m") == [["ann note"]]
    assert await shop.rows("SELECT (SELECT max(total) FROM orders), (SELECT count(*) FROM customers)") == [["10", "1"]]
    assert await shop.rows('SELECT note FROM main.orders UNION ALL SELECT note FROM "ORDERS"') == [["ann note"]] * 2
    assert await shop.as_("nobody").rows("SELECT count(*) FROM orders") == [["0"]]
    text = await shop.text("SELECT name FROM customers")
    assert "Only the rows that the user may see are counted: customers" in text


async def test_masked_values_are_neither_shown_nor_compared(shop: Asking) -> None:
    assert await shop.rows("SELECT email FROM customers") == [["[masked]"]]
    assert await shop.rows("SELECT * FROM customers") == [["1", "Ada", "[masked]", "ann"]]
    assert await shop.rows("SELECT count(*) FROM customers WHERE email LIKE 'ada%'") == [["0"]]
    assert await shop.rows("SELECT substr(c.email, 1, 3) FROM customers AS c ORDER BY c.email") == [["[ma"]]
    described = await shop.describe()
    assert "hidden" in described.content["tables"]
    assert "masked.example" not in str(described.content)
    assert "Ada" not in str(described.content), "values of rows that not everybody may see"


async def test_a_view_over_a_guarded_table_is_read_only_where_the_operator_names_it(file: Path) -> None:
    url = {"url": f"sqlite:{file}"}
    async with asking({"shop": {**url, "rows": GUARDED["rows"]}}) as shop:
        with pytest.raises(ToolError, match="there is no table 'all_orders'"):
            await shop.query("SELECT * FROM all_orders")
    async with asking(
        {"shop": {**url, "rows": GUARDED["rows"], "tables": ["all_orders", "orders", "customers"]}}
    ) as shop:
        assert len(await shop.rows("SELECT * FROM all_orders")) == 2


async def test_a_database_whose_hidden_column_has_another_name_now_is_not_asked(file: Path) -> None:
    async with asking({"shop": {"url": f"sqlite:{file}", "masked": ["customers.mail"]}}) as shop:
        with pytest.raises(ToolError, match=r"hides customers\.mail, which is not there") as refused:
            await shop.query("SELECT 1")
        assert refused.value.reason == "DATABASE_UNAVAILABLE"


async def test_the_session_refuses_what_the_parser_would_let_through(file: Path) -> None:
    """Read-only is the session's: tried without the parser in front."""
    database = SqliteDatabase(file)
    tables = [table for table in await database.tables() if table.name != "secrets"]
    reader, limits = DatabaseReader("acme", "ann"), Limits(10, 1.0, 1.0)
    for sql in (
        "DELETE FROM orders", "INSERT INTO orders (id) VALUES (9)", "UPDATE orders SET note = ''", "DROP TABLE orders",
        "CREATE TABLE t (a)", "ATTACH 'x.sqlite' AS x", "PRAGMA query_only = OFF", "PRAGMA user_version = 3",
        "SELECT load_extension('x')", "SELECT word FROM secrets", "SELECT sql FROM sqlite_master", "VACUUM",
        "SELECT * FROM pragma_table_info('orders')", "BEGIN IMMEDIATE", "SELECT zeroblob(100000000)",
        "SELECT randomblob(10)", "EXPLAIN DELETE FROM orders", "SELECT printf('%1000000000d', 1)",
    ):  # fmt: skip
        with pytest.raises(ToolError):
            await database.select(sql, tables, reader, limits)
