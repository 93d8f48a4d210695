"""What the tests measured: kept from run to run in measured.json, and shown as the page docs/cluster-report.md."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.cluster.cluster import Json, command

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "cluster-report.md"
KEPT = Path(__file__).with_name("measured.json")
"""Committed with the page, so that a part which another machine has measured stays."""
HEAD = """# Seen running on a cluster

Written by `make test-cluster ARGS=--long` ([tests](../tests/cluster)): what was done to an installation of
`values-small.yaml` on a real cluster, and what came of it. Each part says when it was measured; it is replaced when its test
passes again.
"""


@dataclass
class Section:
    """Of one test."""

    title: str
    about: str
    figures: dict[str, str] = field(default_factory=dict)

    def figure(self, name: str, value: object) -> None:
        """A line of the section. Numbers with a fraction have one digit of it."""
        self.figures[name] = f"{value:.1f}" if isinstance(value, float) else str(value)


@dataclass
class Report:
    """Sections by title, in the order in which they were first written."""

    conditions: Mapping[str, str]
    sections: dict[str, Json] = field(default_factory=dict)

    @classmethod
    def opened(cls, conditions: Mapping[str, str]) -> "Report":
        sections = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
        return cls(conditions, sections)

    @contextmanager
    def section(self, title: str, about: str) -> Iterator[Section]:
        """Entered when the block ends without a failure."""
        section = Section(title, about)
        yield section
        self.sections[title] = {
            "about": about,
            "figures": section.figures,
            "on": f"{datetime.now(UTC):%Y-%m-%d}",
            "revision": _revision(),
        }

    def write(self) -> None:
        KEPT.write_text(json.dumps(self.sections, indent=1, ensure_ascii=False) + "\n", "utf-8")
        PAGE.write_text(self.page(), "utf-8")

    def page(self) -> str:
        where = "; ".join(f"{name} {value}" for name, value in self.conditions.items())
        blocks = [HEAD, f"Last run on: {where}."]
        for title, section in self.sections.items():
            rows = "\n".join(f"| {name} | {value} |" for name, value in section["figures"].items())
            measured = f"{section['on']}, revision {section['revision']}"
            blocks.append(f"## {title}\n\n{section['about']} ({measured})\n\n| figure | value |\n|---|---|\n{rows}")
        return "\n\n".join(block.strip() for block in blocks) + "\n"


def _revision() -> str:
    try:
        return command("git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD").strip()
    except (AssertionError, subprocess.SubprocessError, FileNotFoundError):
        return "unknown"
