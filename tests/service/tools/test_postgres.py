"""PostgreSQL as a database that agents ask: a real server, attacked as `tests/unit/tools/test_sql_safety.py` attacks SQLite."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.tools.adapters.sql.postgres_database import PostgresDatabase
from services.tools.errors import ToolError
from services.tools.sql.models import DatabaseReader, Limits
from tests.service.tools.postgres import PASSWORD, Server, missing, running_server
from tests.unit.tools.databases import Asking, asking
from tests.unit.tools.sql_attacks import ATTACKS, PAYLOADS, SECRETS, payloads
from tests.unit.tools.test_sql_safety import GUARDED, TABLES, outcome

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
ROLES = f"""
CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}';
CREATE ROLE writer LOGIN PASSWORD '{PASSWORD}';
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO writer;
COMMENT ON TABLE orders IS 'What customers have bought';
COMMENT ON COLUMN orders.total IS 'in euros';
CREATE SCHEMA internal; CREATE TABLE internal.wages (id int, word text); INSERT INTO internal.wages VALUES (1, 'hidden-word');
GRANT USAGE ON SCHEMA internal TO reader; GRANT SELECT ON internal.wages TO reader;
CREATE TABLE events (id int, at timestamptz, amount numeric(12,2), tags text[]) PARTITION BY RANGE (id);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (1000000);
INSERT INTO events SELECT i, '2026-01-01', i / 3.0, ARRAY['a', 'b'] FROM generate_series(1, 20000) AS i;
GRANT SELECT ON events, events_1 TO reader;
ANALYZE;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="gw-pg-") as folder, running_server(Path(folder)) as running:
        running.sql("CREATE DATABASE shop")
        running.sql(TABLES + ROLES, "shop")
        yield running


@pytest.fixture
async def shop(server: Server) -> AsyncIterator[Asking]:
    guarded = {"url": server.url(), "timeout_s": 2.0, **GUARDED}
    async with asking({"shop": guarded}, {"shop": PASSWORD}) as asked:
        yield asked


def contents(server: Server) -> str:
    tables = ("customers", "orders", "secrets", "internal.wages")
    return "".join(server.sql(f"SELECT * FROM {table} ORDER BY 1", "shop") for table in tables) + server.sql(
        "SELECT relname FROM pg_class ORDER BY 1", "shop"
    )


async def test_no_attack_writes_or_reads_what_is_foreign(shop: Asking, server: Server) -> None:
    before = await asyncio.to_thread(contents, server)
    for sql in [*ATTACKS, "SELECT * FROM internal.wages", "SELECT word FROM wages", *payloads(PAYLOADS)]:
        told = await outcome(shop, sql)
        assert not any(secret in told for secret in SECRETS), sql
    assert await asyncio.to_thread(contents, server) == before


async def test_rows_are_those_of_the_subject_and_masks_hold(shop: Asking) -> None:
    bob = shop.as_("bob")
    assert await shop.rows("SELECT note, total FROM orders") == [["ann note", "10"]]
    assert await bob.rows('SELECT o.note FROM public."orders" o') == [["bob-foreign-note"]]
    assert await shop.rows("SELECT * FROM customers") == [["1", "Ada", "[masked]", "ann"]]
    assert await shop.rows("SELECT c FROM customers c") == [["[1, Ada, [masked], ann]"]]
    assert await shop.rows("SELECT count(*) FROM customers WHERE email LIKE 'ada%'") == [["0"]]
    assert await shop.rows("WITH mine AS (SELECT * FROM orders) SELECT m.note FROM mine AS m") == [["ann note"]]


async def test_an_error_does_not_quote_rows_of_others(shop: Asking) -> None:
    with pytest.raises(ToolError, match="ann note") as own:
        await shop.query("SELECT id FROM orders WHERE CAST(note AS int) = 1")
    assert "foreign" not in str(own.value)


async def test_tables_are_described_with_comments_and_without_parts(server: Server) -> None:
    async with asking({"shop": {"url": server.url()}}, {"shop": PASSWORD}) as shop:
        text = (await shop.describe()).content["tables"]
        assert "table public.orders, about 2 rows: What customers have bought" in text
        assert "total real; in euros" in text
        assert "customer_id integer; → customers.id" in text
        assert "'Ada', 'Bo'" in text
        assert "events_1" not in text
        assert "wages" not in text
        [[day, amount, tags]] = await shop.rows("SELECT at::date, amount, tags FROM events WHERE id = 5")
        assert (day, amount, tags) == ("2026-01-01", "1.67", "[a, b]")


async def test_rows_cost_time_and_size_are_bounded(server: Server) -> None:
    bounded = {"url": server.url(), "rows_max": 10, "timeout_s": 20, "cost_max": 100_000}
    async with asking({"shop": bounded}, {"shop": PASSWORD}) as shop:
        cut = await shop.query("SELECT id FROM events ORDER BY id")
        assert cut.content["row_count"] == 10
        with pytest.raises(ToolError, match="read too much"):
            await shop.query("SELECT count(*) FROM events a, events b WHERE a.amount < b.amount")
    async with asking({"shop": {**bounded, "cost_max": 1e12, "timeout_s": 0.5}}, {"shop": PASSWORD}) as shop:
        with pytest.raises(ToolError, match=r"longer than 0\.5 s"):
            await shop.query("SELECT count(*) FROM events a, events b WHERE a.amount < b.amount")
    async with asking({"shop": {**bounded, "cost_max": 1e12}}, {"shop": PASSWORD}) as shop:
        with pytest.raises(ToolError, match="larger than 1 MB"):
            await shop.query("SELECT string_agg(a.at::text || a.at::text || a.amount::text, '') FROM events a")


async def test_a_user_who_may_write_is_not_used_and_a_wrong_password_is_said_without_it(server: Server) -> None:
    for user, why in (("writer", "may write"), ("postgres", "may write")):
        async with asking({"shop": {"url": server.url(user)}}, {"shop": PASSWORD}) as shop:
            with pytest.raises(ToolError, match=why):
                await shop.query("SELECT 1")
    async with asking({"shop": {"url": server.url()}}, {"shop": "wrong-hunter2"}) as shop:
        with pytest.raises(ToolError, match="does not let us in") as refused:
            await shop.query("SELECT 1")
        assert "hunter2" not in str(refused.value)
        assert "127.0.0.1" not in str(refused.value)


async def test_the_session_refuses_what_the_parser_would_let_through(server: Server) -> None:
    database = PostgresDatabase(server.url(), PASSWORD, ["public"])
    tables = await database.tables()
    limits: Any = Limits(10, 1.0, 1e9)
    for sql in (
        "DELETE FROM orders", "SELECT 1; DELETE FROM orders", "WITH d AS (DELETE FROM orders RETURNING 1) SELECT * FROM d",
        "SELECT 1) q; DELETE FROM orders; SELECT * FROM (SELECT 1", "SELECT pg_read_file('/etc/passwd')", "SELECT pg_sleep(9)",
        "SELECT set_config('transaction_read_only', 'off', false)", "CREATE TEMP TABLE t (a int)", "SELECT * FROM pg_authid",
    ):  # fmt: skip
        with pytest.raises(ToolError):
            await database.select(sql, tables, DatabaseReader("acme", "ann"), limits)
