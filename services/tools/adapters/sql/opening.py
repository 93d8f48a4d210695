"""The databases of the settings, each with its engine."""

import asyncio
import sqlite3
import tempfile
from contextlib import AsyncExitStack, closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from services.tools import sql
from services.tools.adapters.sql.postgres_database import PostgresDatabase
from services.tools.adapters.sql.sqlite_database import SqliteDatabase
from services.tools.settings import ToolsSettings
from services.tools.sql.configuration import DEMO, DatabaseSettings
from services.tools.sql.databases import AskedDatabase, Databases
from services.tools.sql.models import Dialect
from services.tools.sql.ports import Database

DEMO_FILE = Path(sql.__file__).with_name("demo.sql")


def open_databases(settings: ToolsSettings, stack: AsyncExitStack) -> Databases:
    """Connects to none of them yet, and reads files: not for the event loop. The demo's file goes with `stack`."""
    passwords = settings.tools_database_passwords
    return Databases(
        [
            AskedDatabase(name, each, _open(each, passwords.get(name), stack))
            for name, each in settings.tools_databases.items()
        ]
    )


def _open(settings: DatabaseSettings, password: SecretStr | None, stack: AsyncExitStack) -> Database:
    if settings.url == DEMO:
        folder = tempfile.TemporaryDirectory(prefix="groundwork-demo-")
        stack.push_async_callback(asyncio.to_thread, folder.cleanup)
        return SqliteDatabase(make_demo(Path(folder.name)))
    if settings.dialect is Dialect.POSTGRES:
        return PostgresDatabase(settings.url, password.get_secret_value() if password else "", settings.schemas)
    return SqliteDatabase(Path(unquote(urlsplit(settings.url).path)))


def make_demo(folder: Path) -> Path:
    """The demo database as a file in the folder."""
    path = folder / "demo.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DEMO_FILE.read_text(encoding="utf-8"))
    return path
