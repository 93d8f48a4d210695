"""Sealed values: readable by who has the key, where they were put, and by nobody else."""

import json
from pathlib import Path

import pytest

from kit.access.keys import KeySource, new_key, parse_signing_key
from kit.access.sealing import CannotOpen, Sealer


def sealer(key: dict[str, object]) -> Sealer:
    return Sealer(KeySource(parse_signing_key, value=json.dumps(key), setting="TEST"))


def test_another_replica_with_the_same_signing_key_opens_it() -> None:
    key = new_key("orchestrator")
    sealed = sealer(key).seal(b"sk-secret", "acme.r1")
    assert b"sk-secret" not in sealed
    assert sealer(key).open(sealed, "acme.r1") == b"sk-secret"


def test_two_seals_of_one_value_differ() -> None:
    one = sealer(new_key("orchestrator"))
    assert one.seal(b"x", "p") != one.seal(b"x", "p")


def test_elsewhere_changed_or_with_another_key_it_cannot_be_opened() -> None:
    key = new_key("orchestrator")
    one = sealer(key)
    sealed = one.seal(b"sk-secret", "acme.r1")
    changed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for broken, place in ((sealed, "acme.r2"), (changed, "acme.r1"), (sealed[:20], "acme.r1"), (b"", "acme.r1")):
        with pytest.raises(CannotOpen):
            one.open(broken, place)
    for other in (new_key("orchestrator"), {**new_key("orchestrator"), "kid": key["kid"]}):
        with pytest.raises(CannotOpen):
            sealer(other).open(sealed, "acme.r1")


def test_after_a_rotation_what_was_sealed_before_is_still_opened(tmp_path: Path) -> None:
    file, now = tmp_path / "key.json", [0.0]
    file.write_text(json.dumps(new_key("orchestrator")))
    one = Sealer(KeySource(parse_signing_key, path=file, setting="TEST", clock=lambda: now[0]))
    sealed = one.seal(b"sk-secret", "p")
    file.with_suffix(".new").write_text(json.dumps(new_key("orchestrator")))
    file.with_suffix(".new").replace(file)
    now[0] = 10.0
    assert one.open(sealed, "p") == b"sk-secret"
    assert one.open(one.seal(b"new", "p"), "p") == b"new"
