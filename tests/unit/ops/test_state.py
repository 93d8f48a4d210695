"""What the services declare to keep is complete, is found by `ops`, and is named in one place."""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kit.state import BellSubject, Bucket, Store
from ops import nats_users, state
from ops.nats_users import publish_subjects
from ops.state import BY_SERVICE, STORES, USERS, backup_order, watch_order

ROOT = Path(__file__).resolve().parents[3]
NAMES = {store.name for store in STORES}
DECLARATIONS = {ROOT / "kit" / "shared_state.py", *ROOT.glob("services/*/state.py")}


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_store_says_what_a_person_has_to_know(store: Store) -> None:
    assert store.holds
    assert store.if_lost
    assert store.advice
    assert store.written_by
    assert set(store.needed_by) <= NAMES - {store.name}


def test_each_service_that_declares_something_is_known() -> None:
    assert {path.parent.name for path in ROOT.glob("services/*/state.py")} == set(BY_SERVICE)
    assert len(NAMES) == len(STORES), "two stores have one name"


@pytest.mark.parametrize("service", BY_SERVICE)
def test_each_store_that_a_service_declares_is_in_its_state(service: str) -> None:
    module = importlib.import_module(f"services.{service}.state")
    assert {each for each in vars(module).values() if isinstance(each, Store | BellSubject)} == set(module.STATE)


def test_what_needs_another_is_backed_up_before_it_and_watched_after_it() -> None:
    backed_up, watched = backup_order(), watch_order()
    for store in STORES:
        for name in store.needed_by:
            needing = next(each for each in STORES if each.name == name)
            assert backed_up.index(needing) < backed_up.index(store)
            if store in watched and needing in watched:
                assert watched.index(store) < watched.index(needing)


def test_a_new_bucket_gives_rights_to_its_writers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket("FACTS", holds="facts", written_by=("memory",), read_by=("orchestrator",))
    monkeypatch.setattr(nats_users, "STORES", (*STORES, bucket))
    users = {user for user in USERS if "$KV.FACTS.>" in publish_subjects(user)}
    assert users == {"memory"}
    assert "$JS.API.DIRECT.GET.KV_FACTS.>" in publish_subjects("orchestrator")


def test_a_new_bucket_is_backed_up_and_watched_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    (names,) = (store for store in STORES if store.name == "DOCUMENT_NAMES")
    monkeypatch.setattr(state, "STORES", (*STORES, replace(names, name="DOCUMENT_ALIASES")))
    assert [each.name for each in backup_order()].index("DOCUMENT_ALIASES") > [
        each.name for each in backup_order()
    ].index("DOCUMENTS")
    assert "DOCUMENT_ALIASES" in [each.name for each in watch_order()]


def test_a_store_is_named_where_it_is_declared_and_nowhere_else() -> None:
    """Adapters, ops and commands take the name from the declaration. Docstrings may name it."""
    pattern = re.compile(rf"^(?:KV_|OBJ_)?(?:{'|'.join(sorted(NAMES))})$|^\$(?:KV|O)\.")
    found = {
        (str(path.relative_to(ROOT)), text)
        for folder in ("kit", "services", "ops", "cli")
        for path in (ROOT / folder).rglob("*.py")
        if path not in {*DECLARATIONS, ROOT / "kit" / "state.py"} and "jetstream" not in path.parts
        for text in strings(path)
        if pattern.match(text)
    }
    assert not found, "take the name from the service's state.py"


def strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
