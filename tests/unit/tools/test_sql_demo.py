"""The demo database, asked by the tools: what comes out, and what is said where nothing does."""

from typing import Any

import pytest

from services.tools.errors import ToolError
from services.tools.sql.models import SqlFailed, SqlRefused, SqlTooCostly
from tests.unit.tools.databases import asking, rows_of

DEMO: dict[str, Any] = {"url": "demo", "description": "An invented shop."}


async def test_rows_are_answered_with_the_statement_and_can_be_cited() -> None:
    async with asking({"demo": DEMO}) as shop:
        output = await shop.query("select count(*) as n from customers")
    [passage] = output.passages
    assert "SELECT\n  COUNT(*) AS n\nFROM customers" in passage.text
    assert rows_of(passage.text) == [["15"]]
    assert passage.document_name == "Database demo"
    assert passage.hit is not None
    assert output.content["rows"]["source"]["text"] == passage.text
    assert output.summary == "1 row from the database demo: SELECT COUNT(*) AS n FROM customers"


async def test_an_empty_result_is_said() -> None:
    async with asking({"demo": DEMO}) as shop:
        output = await shop.query("SELECT name FROM customers WHERE country = 'Atlantis'")
    assert "No rows" in output.passages[0].text
    assert output.content["row_count"] == 0
    assert "No rows" in output.content["note"]


async def test_the_error_of_the_database_is_told_so_that_the_next_call_mends_it() -> None:
    async with asking({"demo": DEMO}) as shop:
        with pytest.raises(SqlFailed, match="no such column: nmae"):
            await shop.query("SELECT nmae FROM customers")
        with pytest.raises(SqlRefused, match="there is no column 'nmae'"):
            await shop.query('SELECT "nmae" FROM customers')
        with pytest.raises(SqlRefused, match=r"there is no table 'costumer'.*customers"):
            await shop.query("SELECT * FROM costumer")
        with pytest.raises(SqlRefused, match="cannot be read as SQL of SQLite"):
            await shop.query("SELECT FROM WHERE")
        assert await shop.rows("SELECT name FROM customers WHERE customer_id = 1") == [["Ada Nowak"]]


async def test_rows_cells_and_time_are_bounded() -> None:
    async with asking({"demo": {**DEMO, "rows_max": 10, "timeout_s": 0.2}}) as shop:
        cut = await shop.query("SELECT order_id FROM orders ORDER BY order_id")
        assert len(rows_of(cut.passages[0].text)) == 10
        assert "there are more" in cut.passages[0].text
        assert "more rows" in cut.content["note"]
        with pytest.raises(SqlTooCostly, match=r"took longer than 0\.2 s"):
            await shop.query(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n, orders"
            )


async def test_tables_are_described_with_keys_and_values() -> None:
    async with asking({"demo": DEMO}) as shop:
        described = await shop.describe(question="Which products sell best?")
    text = described.content["tables"]
    assert "customer_id INTEGER; → customers.customer_id" in text
    assert "'stationery'" in text
    assert described.content["dialect"] == "SQLite"
    assert described.summary == "4 of 4 tables of the database demo."


async def test_queries_of_the_operator_are_run_by_name_or_by_a_question() -> None:
    queries = {
        "orders_of": {
            "description": "Orders of a customer",
            "sql": "SELECT count(*) FROM orders JOIN customers USING (customer_id) WHERE name LIKE :name || '%'",
            "parameters": {"name": "text"},
            "asked_by": [r"orders (?:of|from) (?P<name>\w+)"],
        }
    }
    async with asking({"demo": {**DEMO, "queries": queries}}) as shop:
        [[number]] = await shop.rows("", query="orders_of", parameters={"name": "Ada"})
        assert int(number) > 0
        assert await shop.rows("", question="How many orders of Ada are there?") == [[number]]
        assert await shop.rows("", query="orders_of", parameters={"name": "' OR 1=1 --"}) == [["0"]]
        with pytest.raises(SqlRefused, match=r"takes these parameters: name \(text\)"):
            await shop.query(query="orders_of")
        with pytest.raises(ToolError, match=r"language model writes.*orders_of: Orders of a customer") as missing:
            await shop.query(question="What is the weather?")
        assert missing.value.reason == "SQL_MISSING"
        assert "orders_of" in (await shop.describe()).content["queries"]


async def test_a_tenant_asks_its_own_databases_by_name() -> None:
    async with asking({"demo": DEMO, "other": {**DEMO, "tenants": ["globex"]}}) as shop:
        assert await shop.rows("SELECT 1") == [["1"]]
        with pytest.raises(ToolError, match="there is no database 'other'; there are: demo"):
            await shop.query("SELECT 1", database="other")
        theirs = shop.as_("bob", "globex")
        with pytest.raises(ToolError, match="say which database; there are: demo, other"):
            await theirs.query("SELECT 1")
        assert await theirs.rows("SELECT 2", database="other") == [["2"]]
        assert set((await theirs.describe()).content["databases"]) == {"demo", "other"}
