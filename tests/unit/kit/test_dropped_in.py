import importlib
from pathlib import Path

import pytest

from kit.dropped_in import BrokenModule, modules_in


def test_modules_of_sub_packages_are_found_by_their_own_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = tmp_path / "kinds_of_things"
    for path in (
        "__init__.py",
        "near.py",
        "_helper.py",
        "web/__init__.py",
        "web/far.py",
        "_web/__init__.py",
        "_web/no.py",
    ):
        (kinds / path).parent.mkdir(parents=True, exist_ok=True)
        (kinds / path).write_text(f"HERE = {path!r}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    package = importlib.import_module("kinds_of_things")
    assert {name: load().HERE for name, load in modules_in(package)} == {"near": "near.py", "far": "web/far.py"}

    (kinds / "far.py").write_text("HERE = 'far.py'\n")
    with pytest.raises(BrokenModule, match="two modules are called far"):
        list(modules_in(package))
