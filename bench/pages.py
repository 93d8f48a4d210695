"""A page of figures that is renewed in part: what a run did not measure keeps its figures and says of which version they are."""

import re

from bench.conditions import MODEL
from evals.tables import Table

_FIGURES, _CONDITIONS = "Figures", "Conditions"
_EARLIER = "Measured in an earlier run"


def renewed(old: str, new: str) -> str:
    """`new` with what only `old` has: its sections, and its lines of the table of figures. Both as report.render makes them."""
    preamble, fresh = _sections(new)
    _, known = _sections(old)
    sections = {title: fresh.get(title) or _dated(text, known[_CONDITIONS]) for title, text in known.items()} | fresh
    sections[_FIGURES] = _figures(known[_FIGURES], fresh[_FIGURES])
    return "\n\n".join([preamble, *(f"## {title}\n\n{text}" for title, text in sections.items())]) + "\n"


def _sections(page: str) -> tuple[str, dict[str, str]]:
    """What stands above the first heading, and the text below each, by heading."""
    preamble, *parts = re.split(r"^## ", page, flags=re.MULTILINE)
    divided = (part.partition("\n") for part in parts)
    return preamble.strip(), {title.strip(): text.strip() for title, _, text in divided}


def _dated(section: str, conditions: str) -> str:
    if _EARLIER in section:
        return section
    said = dict(re.findall(r"^\* ([^:]*): (.*)$", conditions, flags=re.MULTILINE))
    measured_with = f"commit {said['commit']}, {said[MODEL]}, {said['processor']}"
    return f"{section}\n\n{_EARLIER}: {said['date']}, {measured_with}."


def _figures(old: str, new: str) -> str:
    header, rows = _rows(new)
    _, known = _rows(old)
    merged = {name: rows.get(name, row) for name, row in known.items()} | rows
    return Table(header, list(merged.values())).render()


def _rows(table: str) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The header, and the rows by their first cell."""
    header, _, *lines = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table.splitlines()]
    return header, {line[0]: line for line in lines}
