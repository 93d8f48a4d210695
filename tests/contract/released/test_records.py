"""Records that earlier releases stored, as they were recorded then: this version reads them, and what it does not know of the
records of a newer one is still there after it has changed them."""

import json
from pathlib import Path
from typing import Any

import pytest

from ops.state import STORES
from tests.contract.released.kinds import Kind, kinds
from tests.contract.released.recording import versions

KINDS = {kind.file_name: kind for kind in kinds()}
RECORDED = [path for folder in versions() for path in sorted(folder.iterdir()) if path.name in KINDS]
NEWER_FIELD = b"\xfa\x7f\x02hi"
"""Field 2047 of a message."""
NEWER = {"of_a_newer_version": {"colour": ["red", 1, None]}}
HOW = "describe it in tests/contract/released/kinds.py and run scripts/record-release --records"


def changed_kinds(*, are_messages: bool) -> list[Kind]:
    return [kind for kind in KINDS.values() if kind.change and (kind.message is not None) == are_messages]


def fields_kept(before: Any, after: Any) -> bool:
    """Whether `after` has all that `before` has, as deep as it goes."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(name in after and fields_kept(value, after[name]) for name, value in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(fields_kept, before, after))
    return bool(before == after)


def test_everything_that_is_stored_is_recorded() -> None:
    unknown = {each.name for each in STORES if not each.not_ours} - {kind.store.name for kind in KINDS.values()}
    assert not unknown, f"nothing is known here of what {sorted(unknown)} holds: {HOW}, or say why not in its state.py"


def test_every_kind_of_record_of_the_last_release_is_there() -> None:
    missing = KINDS.keys() - {path.name for path in versions()[-1].iterdir()}
    assert not missing, f"{sorted(missing)} is not in {versions()[-1].name}: {HOW}"


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_an_earlier_release_stored_is_read_whole(path: Path) -> None:
    kind, data = KINDS[path.name], path.read_bytes()
    read = kind.again(data)
    if kind.message is not None:
        assert kind.message.FromString(read) == kind.message.FromString(data)
    elif kind.is_text:
        assert read == data
    else:
        assert fields_kept(json.loads(data), json.loads(read))


@pytest.mark.parametrize("kind", changed_kinds(are_messages=False), ids=lambda kind: kind.file_name)
def test_field_of_a_newer_version_survives_a_change(kind: Kind) -> None:
    assert kind.change is not None
    changed = json.loads(kind.change(json.dumps(json.loads(kind.write()) | NEWER).encode()))
    assert changed["of_a_newer_version"] == NEWER["of_a_newer_version"]


@pytest.mark.parametrize("kind", changed_kinds(are_messages=False), ids=lambda kind: kind.file_name)
def test_word_of_a_newer_version_survives_a_change(kind: Kind) -> None:
    assert kind.change is not None
    changed = json.loads(kind.change(json.dumps(json.loads(kind.write()) | kind.newer_words).encode()))
    assert {name: changed[name] for name in kind.newer_words} == kind.newer_words


@pytest.mark.parametrize("kind", changed_kinds(are_messages=True), ids=lambda kind: kind.file_name)
def test_field_of_a_newer_versions_message_survives_a_change(kind: Kind) -> None:
    assert kind.change is not None
    assert NEWER_FIELD in kind.change(kind.write() + NEWER_FIELD)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.file_name)
def test_field_of_a_newer_version_is_no_reason_not_to_read_a_record(kind: Kind) -> None:
    if kind.is_text:
        return
    if kind.message is not None:
        assert kind.again(kind.write() + NEWER_FIELD)
        return
    record = json.loads(kind.write())
    newer: Any = [each | NEWER for each in record] if isinstance(record, list) else record | NEWER
    assert fields_kept(record, json.loads(kind.again(json.dumps(newer).encode())))
