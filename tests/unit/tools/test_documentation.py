"""What docs/tools.md tells authors of tools."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from services.tools import toolbox as real_toolbox
from services.tools.errors import ToolError
from services.tools.sources.discovery import discover

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "tools.md").read_text()


def test_tool_of_the_page_is_one_dropped_in_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    package = ModuleType("toolbox_of_the_page")
    package.__path__ = [str(tmp_path)]
    (tmp_path / "working_day.py").write_text(example[1])
    monkeypatch.setitem(sys.modules, package.__name__, package)
    tool = discover(package)["working_day"]
    assert tool.cacheable
    assert tool.function("2026-11-20", 1) == {"date": "2026-11-23", "weekday": "Monday"}
    with pytest.raises(ToolError, match="is not a date"):
        tool.function("tomorrow!!", 1)


def test_page_has_every_tool() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == {
        name for name, tool in discover(real_toolbox).items() if not tool.policy.other_name_of
    }
