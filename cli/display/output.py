"""What people see in the terminal. Progress and remarks go to stderr, results to stdout, so that pipes get results only."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cli.client.gateway import Json
from cli.client.ingestion import FileState, Ingestion
from cli.display import artefacts
from cli.display.claims import claim_lines, support_lines
from cli.display.terminal import escape
from kit.vocabulary.passages import ORIGIN_FIELDS
from kit.vocabulary.run_fold import RunFold

QUOTE_CHARACTERS_MAX = 240
LISTED_MAX = 50
"""Failures, and warnings, that are shown below the summary."""
PROGRESS_INTERVAL_S = 5.0
"""Between two lines of progress where there is no terminal."""
FOLDED_CHARACTERS_MIN = 32
"""A column is not folded to less than this: an id."""
UNLIMITED_CHARACTERS = 1_000_000
"""Width of what is not a terminal: programs that read lines want each row on one."""


class _Screen(Console):
    """Lets a broken pipe end the command in the one place where it ends."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - rich calls this while it handles BrokenPipeError


class Output:
    """stdout and stderr."""

    def __init__(self, *, as_json: bool, json_lines: bool = False) -> None:
        self.as_json = as_json
        self._indent = None if json_lines else 2
        self.out = _Screen(file=sys.stdout, highlight=False, soft_wrap=True)
        self.err = _Screen(file=sys.stderr, highlight=False, soft_wrap=True)

    def json(self, value: Any) -> None:
        """One JSON document on stdout; with `json_lines` on one line."""
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=self._indent) + "\n")
        sys.stdout.flush()

    def progress_bar(self) -> Progress:
        """For ingestion; on stderr, and only there where somebody looks."""
        return Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.err,
            disable=self.as_json or not self.err.is_terminal,
        )

    def table(self, columns: list[str], rows: list[list[str]], *, whole: Collection[str] = ()) -> None:
        """Aligned columns without borders. Those in `whole` are never folded, the others only where a terminal ends."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold", no_wrap=column in whole)
        for row in rows:
            table.add_row(*(escape(cell) for cell in row))
        width = max(self.out.width, _least_width(columns, rows, whole)) if sys.stdout.isatty() else UNLIMITED_CHARACTERS
        console = _Screen(file=sys.stdout, highlight=False, soft_wrap=True, width=width)
        if sys.stdout.isatty():
            console.print(table)
            return
        with console.capture() as captured:
            console.print(table)
        # One long name would end every row in as many blanks, which a pager shows as empty lines.
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().split("\n")[:-1]))

    def remarks(self, lines: Sequence[str]) -> None:
        """What is good to know beside the result, below it."""
        for line in lines:
            self.err.print(f"[dim]{escape(line)}[/dim]")

    def ingestion(self, ingestion: Ingestion, *, waited: bool) -> None:
        """The summary: how many are searchable, and each that is not, with its reason."""
        if self.as_json:
            self.json(_ingestion_json(ingestion))
            return
        failed = [file for file in ingestion.files if file.failed]
        done = len(ingestion.files) - len(failed)
        self.out.print(f"{done} {'ready' if waited else 'uploaded'}, {len(failed)} failed")
        lines = [f"[red]failed[/red] {escape(file.shown_path)}: {escape(' '.join(_why(file)))}" for file in failed]
        self._listed(lines)
        warned = [(file, warning) for file in ingestion.files if not file.failed for warning in file.warnings]
        self._listed([f"[yellow]warning[/yellow] {escape(file.shown_path)}: {escape(text)}" for file, text in warned])

    def _listed(self, lines: Sequence[str]) -> None:
        for line in lines[:LISTED_MAX]:
            self.out.print(f"  {line}")
        if len(lines) > LISTED_MAX:
            self.out.print(f"  … and {len(lines) - LISTED_MAX} more; --json lists all")

    def grounds(self, run: RunFold) -> None:
        """Below the answer: its citations, what was degraded, how it ended."""
        self.sources(run.answer or {})
        for degradation in run.degraded:
            self.err.print(f"[yellow]degraded[/yellow] {escape(degradation['part'])}: {escape(degradation['message'])}")
        if run.status in {"failed", "timeout", "cancelled"}:
            why = f": {run.error['message']} ({run.error['reason']})" if run.error else ""
            self.err.print(f"[red]The run ended as {run.status}[/red]{escape(why)}")

    def artefacts(self, run: RunFold) -> None:
        """What an agent has made besides its text."""
        for artefact in run.artefacts.values():
            for part in artefacts.shown(artefact):
                self.out.print(part)

    def sources(self, answer: Json) -> None:
        """The passages that an answer cites and what they say of it; of a refusal those that come closest."""
        for citation in answer.get("citations", ()):
            self.out.print(citation_line(citation))
        if closest := answer.get("closest", ()):
            self.out.print("Closest passages:")
        for passage in closest:
            self.out.print(citation_line(passage))
        for line in claim_lines(answer):
            self.out.print(line)
        for conflict in answer.get("conflicts", ()):
            self.out.print(f"[yellow]The sources disagree:[/yellow] {escape(_shortened(conflict['what']))}")
            for side in conflict["sides"]:
                self.out.print(f"  {escape(_side(side))}")
        self.remarks(verdict_lines(answer))

    def hits(self, answer: Json, *, explain: bool) -> None:
        """Search results, best first."""
        for rank, hit in enumerate(answer["hits"], start=1):
            score = hit.get("score")
            shown = f"{score:.4f}" if isinstance(score, float) else "-"
            self.out.print(f"[bold]{rank}. {escape(_where(hit))}[/bold]  score {shown}")
            self.out.print(f"   {escape(_shortened(hit['text']))}")
            if explain and hit.get("explain"):
                self.out.print(f"   [dim]{escape(_explanation(hit['explain']))}[/dim]")
        if not answer["hits"]:
            self.out.print("Nothing found.")
        if explain:
            self._plan(answer)
        for degradation in answer.get("degraded", ()):
            self.err.print(f"[yellow]degraded[/yellow] {escape(degradation['part'])}: {escape(degradation['message'])}")

    def _plan(self, answer: Json) -> None:
        """What was decided before the search, and what was left out."""
        if plan := answer.get("plan"):
            cache = answer.get("cache") or "unknown"
            self.out.print(f"[dim]{plan['strategy']}, {plan['fusion']}: {escape(plan['reason'])}; cache: {cache}[/dim]")
            self.out.print(f"[dim]rerank {escape(plan['rerank_reason'])}[/dim]")
        if dropped := answer.get("dropped"):
            self.out.print(f"[dim]left out: {escape(_counted(dropped))}[/dim]")


def _why(file: FileState) -> tuple[str, str]:
    reason, message = file.why()
    return message, f"({reason})"


class ProgressLines:
    """Progress of an ingestion where there is no terminal: a line every few seconds, on stderr."""

    def __init__(self, output: Output, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._told_at = clock()

    def update(self, ingestion: Ingestion) -> None:
        """Something changed."""
        if self._output.as_json or self._output.err.is_terminal:
            return
        done = sum(file.settled for file in ingestion.files)
        now = self._clock()
        if done < len(ingestion.files) and now - self._told_at < PROGRESS_INTERVAL_S:
            return
        self._told_at = now
        sent = sum(file.document is not None or file.error is not None for file in ingestion.files)
        failed = sum(file.failed for file in ingestion.files)
        total = len(ingestion.files)
        self._output.err.print(f"{sent} of {total} uploaded, {done - failed} ready, {failed} failed")


def bar_state(ingestion: Ingestion) -> dict[str, Any]:
    """What a progress bar of these files shows."""
    failed = sum(file.failed for file in ingestion.files)
    return {
        "completed": sum(file.share_done for file in ingestion.files),
        "note": f"[red]{failed} failed[/red]" if failed else "",
    }


def _counted(dropped: list[Json]) -> str:
    """`3 top_k, 1 duplicate`."""
    counts = Counter(each["stage"] for each in dropped)
    return ", ".join(f"{count} {stage}" for stage, count in counts.most_common())


_CONFIDENCE = {
    "likely": "Likely answers your question",
    "uncertain": "May answer your question",
    "unlikely": "Probably does not answer your question",
}


def verdict_lines(answer: Json) -> list[str]:
    """Statements about an answer: what was checked, and how likely it answers. A refusal that claims nothing has none."""
    if answer.get("closest") or not (answer.get("citations") or answer.get("verification")):
        return []
    sure = answer.get("answer_confidence")
    likely = _CONFIDENCE.get(str(answer.get("answer_status")), "")
    return [*support_lines(answer), *([f"{likely} ({sure:.0%})."] if likely and sure is not None else [])]


def _side(side: Json) -> str:
    """`62 euros: travel-policy-2024.md, 2024 [2]`."""
    date = f", {side['date']}" if side.get("date") else ""
    return f"{side['value']}: {side['document_name']}{date} [{side['citation']}]"


def citation_line(citation: Json) -> str:
    """`[1] handbook.pdf, page 3: “…”`, with rich's markup."""
    text, start, end = citation["text"], citation.get("quote_start") or 0, citation.get("quote_end") or 0
    quote = text[start:end] if end > start else text
    return f"[bold]\\[{citation['number']}] {escape(_where(citation))}[/bold]: “{escape(_shortened(quote))}”"


def describe_document(document: Json) -> list[list[str]]:
    """Rows of name and value."""
    report, error = document.get("report") or {}, document.get("error")
    rows = [[key, str(document.get(key) or "")] for key in ("id", "name", "collection_id", "status", "media_type")]
    rows.append(["size_bytes", str(document.get("size_bytes", ""))])
    rows += [[key, str(report[key])] for key in ("page_count", "chunk_count", "token_count") if report.get(key)]
    rows += [["warning", warning] for warning in report.get("warnings", ())]
    if document["status"] == "processing":
        rows.append(["stage", f"{document.get('stage')} ({float(document.get('progress') or 0):.0%})"])
    if error:
        rows.append(["error", f"{error['message']} ({error['reason']})"])
    rows += [[key, str(document.get(key) or "")] for key in ("created_at", "updated_at")]
    return rows


def _least_width(columns: list[str], rows: list[list[str]], whole: Collection[str]) -> int:
    """Characters a table needs; on a narrower terminal its rows run on, which leaves an id in one piece."""
    widths = [max(cell_len(cell) for cell in cells) for cells in zip(columns, *rows, strict=True)]
    needed = (
        width if column in whole else min(width, FOLDED_CHARACTERS_MIN)
        for column, width in zip(columns, widths, strict=True)
    )
    return sum(needed) + 2 * (len(columns) - 1)


def _where(passage: Json) -> str:
    page = f", page {passage['page']}" if passage.get("page") else ""
    heading = " › ".join(passage.get("heading_path") or ())
    origin = ", ".join(f"{field.replace('_', ' ')} {said}" for field, said in _origin(passage) if said not in heading)
    around = "; ".join(part for part in (heading, origin) if part)
    return f"{passage['document_name']}{page}{f' ({around})' if around else ''}"


def _origin(passage: Json) -> Iterator[tuple[str, str]]:
    """What is known of who wrote a passage, when and where: of a citation, or of a hit, which has it among its metadata."""
    known = passage.get("origin") or passage.get("metadata") or {}
    return ((field, known[field]) for field in ORIGIN_FIELDS if known.get(field))


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= QUOTE_CHARACTERS_MAX else words[: QUOTE_CHARACTERS_MAX - 1].rstrip() + "…"


def _explanation(explain: Json) -> str:
    stages = []
    for stage in ("dense", "lexical", "fused", "rerank", "diversity"):
        rank, score = explain.get(f"{stage}_rank"), explain.get(f"{stage}_score")
        if rank is not None:
            stages.append(f"{stage} #{rank}" + (f" ({score:.4f})" if isinstance(score, float) else ""))
    return "   ".join(stages)


def _ingestion_json(ingestion: Ingestion) -> Json:
    documents = []
    for file in ingestion.files:
        document = file.document or {}
        reason, message = file.why() if file.failed else (None, None)
        documents.append(
            {
                "path": file.shown_path,
                "id": document.get("id"),
                "status": "failed" if file.failed else document.get("status"),
                "error": {"reason": reason, "message": message} if reason else None,
                "warnings": file.warnings,
            }
        )
    counts = {status: sum(each["status"] == status for each in documents) for status in ("ready", "failed")}
    return {**counts, "documents": documents}
