"""Curated records of projects that an operator gives: read from a file, checked at start, the same for all tenants."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

EXAMPLE_FILE = Path(__file__).with_name("example_projects.json")
"""Groundwork and its parts, as an example of such a file."""
RECORDS_MAX = 1000
"""As many as are embedded within a minute on a laptop; what is larger belongs into a collection of documents."""
FILE_BYTES_MAX = 16 * 1024 * 1024
_PROBLEMS_SHOWN = 5
_NEAR_SIMILARITY = 0.5
_NEAR_MAX = 5

_ShortText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
NEEDS_RECORDS = "name a file of records in GROUNDWORK_TOOLS_RECORDS_FILE"
PROJECT_WORDS = (
    r"\bproje[ck]t|\bprojet|\bproyecto|\bprogett|\bprojeto|\bproje(?:ler)?\b",
    r"\bпроект|\bпроєкт",
    r"项目|專案|プロジェクト|프로젝트|مشروع|مشاريع",
)
"""Of messages that call for the tools of the projects."""


class RecordsUnreadable(ValueError):
    """The file cannot be served. The message names the record and the field."""


class Record(BaseModel):
    """A project. Fields that are not known here are refused, so that a misspelt one is noticed; what fits nowhere goes into
    `details`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[
        str,
        BeforeValidator(lambda value: str(value) if type(value) is int else value),
        StringConstraints(strip_whitespace=True, min_length=1, max_length=100),
    ]
    """Unique, whatever its case. A number may be written as one."""
    name: _ShortText
    summary: str = Field(default="", max_length=1000)
    """A sentence or two."""
    description: str = Field(default="", max_length=4000)
    technologies: tuple[_ShortText, ...] = Field(default=(), max_length=50)
    links: tuple[Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=500)], ...] = Field(
        default=(), max_length=20
    )
    year: int | None = Field(default=None, ge=1900, le=2200)
    role: str = Field(default="", max_length=200)
    details: Mapping[_ShortText, str | int | float | bool] = Field(default_factory=dict, max_length=50)

    @property
    def text(self) -> str:
        """What is embedded and reranked: the telling parts first, since a model reads only so much."""
        return "\n".join(
            part for part in (self.name, self.summary, ", ".join(self.technologies), self.description) if part
        )

    def brief(self) -> dict[str, Any]:
        """What a list shows of it, as JSON."""
        return self.model_dump(
            mode="json", include={"id", "name", "summary", "technologies", "year", "role"}, exclude_defaults=True
        )


class Records:
    """Records by id, in the file's order."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self.all = tuple(records)
        self._by_id = {record.id.casefold(): record for record in records}

    def get(self, record_id: str) -> Record | None:
        return self._by_id.get(record_id.strip().casefold())

    def near(self, asked: str) -> list[Record]:
        """Records whose id or name is spelt much like `asked`, the most alike first; else the first few."""
        by_name = {record.name.casefold(): record for record in self.all} | self._by_id
        close = get_close_matches(asked.strip().casefold(), by_name, _NEAR_MAX, _NEAR_SIMILARITY)
        return list({by_name[name].id: by_name[name] for name in close}.values()) or list(self.all[:_NEAR_MAX])


def load_records(path: Path | None) -> Records:
    """The records of a JSON array or of JSON lines; the example's without a path. Raises RecordsUnreadable."""
    path = path or EXAMPLE_FILE
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise RecordsUnreadable(
                f"{path.name} is larger than {FILE_BYTES_MAX // 1024**2} MiB; ingest it as documents"
            )
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordsUnreadable(f"{path} cannot be read as UTF-8 text: {error}") from error
    records, problems = [], []
    for where, item in _items(text):
        try:
            records.append(Record.model_validate(item))
        except ValidationError as error:
            problems += [f"{where}{_named(item)}: {problem}" for problem in _said(error)]
    problems = problems or _repeated(records)
    if len(records) > RECORDS_MAX:
        problems = [f"there are {len(records)} records, and at most {RECORDS_MAX} are served"]
    if problems:
        more = f"; and {len(problems) - _PROBLEMS_SHOWN} more" if len(problems) > _PROBLEMS_SHOWN else ""
        raise RecordsUnreadable("; ".join(problems[:_PROBLEMS_SHOWN]) + more)
    return Records(records)


def _items(text: str) -> Iterator[tuple[str, Any]]:
    """What the file holds, each item with where it stands."""
    if text.lstrip().startswith("["):
        for number, item in enumerate(_parsed(text, "the file"), start=1):
            yield f"record {number}", item
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield f"line {number}", _parsed(line, f"line {number}")


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise RecordsUnreadable(
            f"{where} is not JSON ({error}); write a JSON array of records, or one record as JSON on each line"
        ) from error


def _named(item: Any) -> str:
    return f" (id {item['id']!r:.50})" if isinstance(item, dict) and "id" in item else ""


def _said(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(str(step) for step in problem["loc"])
        yield f"{place}: {problem['msg']}" if place else problem["msg"]


def _repeated(records: Sequence[Record]) -> list[str]:
    seen: set[str] = set()
    problems = []
    for number, record in enumerate(records, start=1):
        if record.id.casefold() in seen:
            problems.append(f"record {number} (id {record.id!r}): another record has this id")
        seen.add(record.id.casefold())
    return problems
