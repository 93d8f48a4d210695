"""Writes the files that are made from the code: docs/settings.md, docs/errors.md, docs/languages.md, docs/openapi.json, the tables
in docs/tools.md and docs/architecture.md, and what each user of NATS may do, for the chart. With --check it only
fails when what is committed differs."""

import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from pydantic import SecretStr
from pydantic_settings import BaseSettings

from kit.language.data import LANGUAGES
from kit.process.settings import ServiceSettings
from kit.state import DAY_S, Bucket, ObjectBucket, Queue, Store, Stream
from ops.nats_users import authorization_by_environment
from ops.state import STORES
from scripts.error_reasons import errors_page
from services.gateway.api import create_api
from services.gateway.settings import GatewaySettings
from services.ingest.settings import IngestSettings
from services.memory.settings import MemorySettings
from services.orchestrator.settings import OrchestratorSettings
from services.reranker.settings import RerankerSettings
from services.retriever.settings import RetrieverSettings
from services.standalone.settings import StandaloneSettings
from services.tools import toolbox
from services.tools.models import Tool
from services.tools.settings import ToolsSettings
from services.tools.sources.discovery import discover

ROOT = Path(__file__).resolve().parent.parent
NATS_USERS = "deploy/helm/groundwork/files/nats-users.conf"
SERVICES: dict[str, type[BaseSettings]] = {
    "gateway": GatewaySettings,
    "orchestrator": OrchestratorSettings,
    "retriever": RetrieverSettings,
    "reranker": RerankerSettings,
    "ingest": IngestSettings,
    "memory": MemorySettings,
    "tools": ToolsSettings,
    "standalone": StandaloneSettings,
}
_KINDS = {Bucket: "bucket", ObjectBucket: "object store", Stream: "stream", Queue: "queue"}
_INTRODUCTION = """# Settings

Generated from the services' `settings.py` by `make gen`. Every setting is an environment variable. `make run` passes what is set in
the shell on to all services, and chooses addresses, ports and secrets itself.
"""

_LANGUAGES = """# Languages

Generated from `kit/language/languages/` by `make gen`. Each of these languages has one file, and a test checks that it is complete.
Without a language model, Groundwork uses these words to read a question, to tell follow-ups, small talk and requests from
questions, to find times in words ("since March 2024") and to refuse in the language of the question. Search and embeddings cover
more languages, and a model answers in those that it knows.

"""


def settings_page() -> str:
    """A table per service, and one for what all of them have."""
    sections = [_INTRODUCTION, _section("every service", ServiceSettings, skip=set())]
    common = set(ServiceSettings.model_fields)
    sections += [_section(name, kind, skip=common) for name, kind in SERVICES.items()]
    return "\n".join(sections)


def _section(name: str, kind: type[BaseSettings], skip: set[str]) -> str:
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for field_name, field in kind.model_fields.items():
        if field_name not in skip:
            meaning = " ".join((field.description or "").split()).replace("|", "\\|")
            rows.append(f"| `GROUNDWORK_{field_name.upper()}` | {_default(field)} | {meaning} |")
    return f"## {name}\n\n" + "\n".join(rows) + "\n"


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value in (None, "", ()) or str(value) == "":
        return "none"
    return f"`{getattr(value, 'value', value)}`"


def openapi_document() -> str:
    """The gateway's OpenAPI document, as it serves it at /openapi.json."""
    settings = GatewaySettings(auth_public_keys="unused", auth_signing_key=SecretStr("unused"))
    document = create_api(Mock(settings=settings)).openapi()
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def tools_page(page: str) -> str:
    """The page with its table made anew."""
    rows = ["| tool | what the model reads | effect | approval | set up by |", "|---|---|---|---|---|"]
    rows += [_tool_row(tool) for tool in discover(toolbox).values() if not tool.policy.other_name_of]
    table = "\n".join(["<!-- tools -->", *rows, "<!-- /tools -->"])
    return re.sub(r"<!-- tools -->.*?<!-- /tools -->", lambda _: table, page, flags=re.DOTALL)


def _tool_row(tool: Tool) -> str:
    module = sys.modules[tool.function.__module__]
    approval = "a person" if tool.policy.needs_approval else ""
    set_up = "the operator" if hasattr(module, "is_available") else ""
    set_up = "a connection" if hasattr(module, "CONNECTION") else set_up
    return f"| `{tool.name}` | {tool.description.replace('|', '&#124;')} | {tool.policy.effect.value} | {approval} | {set_up} |"


def state_page(page: str) -> str:
    """The page with the table of what the services keep made anew."""
    rows = [
        "| store | holds | used by | an entry is kept | the watch knows | if it is lost |",
        "|---|---|---|---|---|---|",
    ]
    rows += [_store_row(store) for store in STORES]
    table = "\n".join(["<!-- state -->", *rows, "<!-- /state -->"])
    return re.sub(r"<!-- state -->.*?<!-- /state -->", lambda _: table, page, flags=re.DOTALL)


def _store_row(store: Store) -> str:
    kind = _KINDS[type(store)]
    kept = store.kept_for or (_lifetime(store.kept_for_s) if store.kept_for_s else "until it is removed")
    return (
        f"| {kind} `{store.name}` | {store.holds} | {_users(store)} | {kept} | {store.watch.value} | {store.if_lost} |"
    )


def _users(store: Store) -> str:
    """Who uses it, as users of NATS."""
    if isinstance(store, Queue):
        filled = f"; filled by {', '.join(store.filled_by)}" if store.filled_by else ""
        return f"worked on by {', '.join(store.written_by)}{filled}"
    read = f"; read by {', '.join(store.read_by)}" if store.read_by else ""
    return f"{', '.join(store.written_by)}{read}"


def _lifetime(seconds: float) -> str:
    days = round(seconds / DAY_S)
    return f"{days} day{'s' * (days > 1)}" if days else f"{seconds:g} s"


def languages_page() -> str:
    """A row per supported language: what its file has."""
    fields = ("stop_words", "function_words", "pronouns", "small_talk", "requests")
    titles = [
        "language",
        "code",
        *(each.replace("_", " ") for each in fields),
        "what is said when nothing is near the question",
        "what is said when no answer is sure",
    ]
    rows = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for each in LANGUAGES.values():
        counts = (str(len(getattr(each, field))) for field in fields)
        rows.append(f"| {each.name} | `{each.code}` | {' | '.join(counts)} | {each.refusal} | {each.unsure} |")
    return "\n".join([_LANGUAGES, *rows, ""])


def nats_users_file() -> str:
    """The users of NATS and what each may do, for the servers of a cluster."""
    return f"# Made from ops/nats_users.py by make gen.\n{authorization_by_environment()}"


def main(*, check: bool) -> int:
    texts = {
        "docs/settings.md": settings_page(),
        "docs/errors.md": errors_page(),
        "docs/languages.md": languages_page(),
        "docs/openapi.json": openapi_document(),
        "docs/tools.md": tools_page(_read(ROOT / "docs/tools.md") or ""),
        "docs/architecture.md": state_page(_read(ROOT / "docs/architecture.md") or ""),
        NATS_USERS: nats_users_file(),
    }
    stale = [name for name, text in texts.items() if _read(ROOT / name) != text]
    if check and stale:
        print(f"out of date: {', '.join(stale)}: run make gen and commit them", file=sys.stderr)
        return 1
    for name in stale:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(texts[name])
    return 0


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
