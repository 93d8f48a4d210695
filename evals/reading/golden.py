"""Golden pages and sheets, and how near ingestion comes to what a person reads in them (`NAME.golden`): files of our own in
`evals/data/reading/pages`, and public documents that lie elsewhere. Golden texts of those are in `evals/data/reading/documents`
and name them."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from evals.reading.files import Unread, read_file
from evals.reading.measures import Nearness, Page, nearness, page_of_document, page_of_golden

PAGES = Path(__file__).parents[1] / "data" / "reading" / "pages"
DOCUMENTS = Path(__file__).parents[1] / "data" / "reading" / "documents"
_SUFFIX = ".golden"
_NOTHING = Page((), (), ())
LEAST = {"text": 0.97, "cells": 0.95, "headings": 0.95, "order": 0.99}
"""Means below which the evaluation fails: a little under what it gives today."""


def measured_pages(folder: Path = PAGES) -> Iterator[tuple[str, Nearness]]:
    """Each golden page with how near its reading comes; a file that is refused has nothing."""
    for golden in sorted(folder.glob(f"*{_SUFFIX}")):
        path = golden.with_suffix("")
        yield path.name, _nearness(path, golden.read_text("utf-8"))


def measured_documents(documents: Path, folder: Path = DOCUMENTS) -> Iterator[tuple[str, Nearness]]:
    """Each golden text of a public document with how near its reading comes. `documents`: the folder that has them."""
    for golden in sorted(folder.glob(f"*{_SUFFIX}")):
        first, _, text = golden.read_text("utf-8").partition("\n")
        name = first.removeprefix("file: ")
        yield name, _nearness(documents / name, text)


def _nearness(path: Path, golden: str) -> Nearness:
    try:
        read = page_of_document(read_file(path))
    except (Unread, OSError):
        read = _NOTHING
    return nearness(read, page_of_golden(golden))


def means(pages: Sequence[tuple[str, Nearness]]) -> dict[str, float]:
    """The mean of each measure over the pages that have it."""
    found = {}
    for measure in (field.name for field in fields(Nearness)):
        values = [value for _, page in pages if (value := getattr(page, measure)) is not None]
        found[measure] = statistics.fmean(values) if values else 0.0
    return found


def golden_table(pages: Sequence[tuple[str, Nearness]]) -> Iterator[str]:
    """Lines of a table: a page a row, the means last."""
    names = [field.name for field in fields(Nearness)]
    yield f"{'page':<28}" + "".join(f"{name:>10}" for name in names)
    for name, page in pages:
        yield f"{name:<28}" + "".join(_shown(getattr(page, measure)) for measure in names)
    found = means(pages)
    yield f"{f'mean of {len(pages)}':<28}" + "".join(_shown(found[measure]) for measure in names)


def _shown(value: float | None) -> str:
    return f"{'' if value is None else f'{value:.3f}':>10}"
