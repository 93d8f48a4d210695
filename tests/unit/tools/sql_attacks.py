"""Statements of attackers, in both dialects: over `customers` (email masked), `orders` (rows by `manager`) and `secrets`, which is
not listed."""

import os
from collections.abc import Iterator
from pathlib import Path

_DATA = Path(os.environ.get("TEST_DOCUMENTS_DIR", Path(__file__).resolve().parents[4] / "shared/data/docs")).parent
PAYLOADS = _DATA / "sec_ssrf_web_payloads/payloadsallthethings/SQL_Injection/Intruder"
"""Lists of others; not everywhere."""

SECRETS = ("bob-foreign-note", "masked.example", "hidden-word", "root:", "CREATE TABLE", "SCRAM-SHA", "md5")
"""Of which nothing may be told to `ann`."""

ATTACKS = (
    # writing
    "DROP TABLE orders",
    "DELETE FROM orders",
    "UPDATE orders SET note = 'x'",
    "INSERT INTO orders VALUES (9, 1, 'x', 'ann', 1)",
    "SELECT 1; DELETE FROM orders",
    "SELECT 1; -- harmless\nDROP TABLE orders",
    "WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone",
    "WITH gone AS (UPDATE orders SET note = '' RETURNING *) SELECT * FROM gone",
    "SELECT * INTO copy FROM orders",
    "CREATE TABLE copy AS SELECT * FROM orders",
    "SELECT * FROM orders FOR UPDATE",
    "EXPLAIN ANALYZE DELETE FROM orders",
    "BEGIN; DELETE FROM orders; COMMIT",
    "TRUNCATE orders",
    "ALTER TABLE orders ADD COLUMN x text",
    "GRANT ALL ON orders TO PUBLIC",
    "VACUUM",
    "COPY orders TO '/tmp/orders.txt'",
    "COPY orders FROM PROGRAM 'id'",
    "SET default_transaction_read_only = off",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SELECT nextval('orders_id_seq')",
    "DO $$ BEGIN DELETE FROM orders; END $$",
    "ATTACH DATABASE '/tmp/x.sqlite' AS x",
    "PRAGMA writable_schema = ON",
    "REPLACE INTO orders VALUES (1, 1, '', '', 0)",
    # the server's files, network and programs
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT * FROM pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT load_extension('/tmp/evil')",
    "SELECT readfile('/etc/passwd')",
    "SELECT dblink_connect('host=127.0.0.1')",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT pg_sleep(60)",
    "SELECT repeat('a', 1000000000)",
    "SELECT randomblob(1000000000)",
    # the catalog, and tables that are not listed
    "SELECT * FROM secrets",
    "SELECT * FROM public.secrets",
    "SELECT * FROM main.secrets",
    'SELECT * FROM "secrets"',
    "SELECT (SELECT word FROM secrets LIMIT 1)",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM secrets WHERE word LIKE 'h%')",
    "SELECT name FROM customers UNION SELECT word FROM secrets",
    "SELECT sql FROM sqlite_master",
    "SELECT * FROM pragma_table_info('secrets')",
    "SELECT * FROM pg_catalog.pg_authid",
    "SELECT * FROM pg_shadow",
    "SELECT * FROM information_schema.tables",
    "SELECT query_to_xml('select * from secrets', true, true, '')",
    "SELECT table_to_xml('secrets', true, true, '')",
    "SELECT 'secrets'::regclass::oid",
    "SELECT current_setting('data_directory')",
    "SELECT version()",
    "WITH secrets AS (SELECT 1) SELECT * FROM public.secrets",
    "SELECT * FROM (WITH pg_authid AS (SELECT 1) SELECT * FROM pg_authid) a, pg_authid",
    "SELECT * FROM (WITH secrets AS (SELECT 1 AS word) SELECT * FROM secrets) a, (SELECT word FROM secrets) b",
    "SELECT * FROM (WITH sqlite_master AS (SELECT 1) SELECT 1) a, sqlite_master",
    # masks and rows
    "SELECT email FROM customers",
    "SELECT c FROM customers c",
    "SELECT row_to_json(c) FROM customers c",
    "SELECT (c).email FROM customers c",
    "SELECT c.email::int FROM customers c",
    "SELECT * FROM customers c NATURAL JOIN customers d",
    "WITH customers AS (SELECT * FROM customers) SELECT email FROM customers",
    "SELECT public.customers.email FROM public.customers",
    "SELECT * FROM orders WHERE manager = 'bob'",
    "SELECT note FROM orders WHERE 1 = 1 OR manager = 'bob'",
    "SELECT note FROM orders WHERE true) OR (true",
    "SELECT * FROM orders AS o(a, b, c, d, e) WHERE d = 'bob'",
    "SELECT * FROM orders WHERE CAST(note AS int) = 1",
    "SELECT * FROM orders WHERE note::int = 1",
    "SELECT 1 / (CASE WHEN note LIKE 'bob%' THEN 0 ELSE 1 END) FROM orders",
    "SELECT * FROM orders, LATERAL (SELECT note FROM orders) x",
    "SELECT * FROM ONLY orders",
    "SELECT note FROM orders TABLESAMPLE SYSTEM (100)",
    "TABLE orders",
    "SELECT ctid, xmin, * FROM orders",
    "SELECT note FROM all_orders",
    "SELECT * FROM orders UNION ALL SELECT * FROM all_orders",
    "SELECT n.note FROM (SELECT * FROM (SELECT * FROM (orders) ) AS m) AS n",
    "SELECT /*! note FROM orders; */ note FROM orders -- ' OR 1=1",
    "SELECT 'a\\' , note FROM orders --'",
    "SELECT E'\\'' || note FROM orders",
    "SELECT $$'; DELETE FROM orders; --$$",
    "SELECT x.note FROM orders AS x JOIN orders AS y ON x.manager <> y.manager",
    "SELECT string_agg(note, ',') FROM orders",
    "SELECT group_concat(note) FROM orders",
    "SELECT" + "(" * 500 + "1" + ")" * 500,
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
)

_AROUND = ("{}", "SELECT note FROM orders WHERE id = {}", "SELECT note FROM orders WHERE note = '{}'")


def payloads(folder: Path) -> Iterator[str]:
    """The lists of a folder (`payloadsallthethings/SQL_Injection/Intruder`), alone and within statements that a careless program
    makes of them."""
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text(errors="replace").splitlines():
            if line.strip():
                yield from (around.format(line) for around in _AROUND)
