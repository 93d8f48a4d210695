"""The options of `python -m evals`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from evals.datasets.files import FORMATS
from evals.datasets.loading import OWN_COLLECTION
from kit.ranking.metrics import METRICS

_DESCRIPTION = """Measures the quality of retrieval through the public API. Starts the system on a data directory that is
thrown away, or uses the one that GROUNDWORK_URL names; settings of the environment (GROUNDWORK_RETRIEVER_…) hold for one that
is started. The words `reading` and `cases` in front measure how files are read instead: they need no system."""


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line; wrong words end the process with status 2."""
    parser = argparse.ArgumentParser(prog="python -m evals", description=_DESCRIPTION)
    _what(parser)
    _how(parser)
    _result(parser)
    return parser.parse_args(arguments)


def _what(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--collection",
        type=Path,
        default=OWN_COLLECTION,
        metavar="PATH",
        help="a folder in BEIR's shape (corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv, plain or .gz), or a SQuAD file; "
        "default: the small collection of this repository",
    )
    parser.add_argument("--split", default="test", help="which qrels; default: test")
    parser.add_argument(
        "--off-topic",
        type=Path,
        metavar="PATH",
        help="another collection, about something else: its questions are asked too, to see how they are told from those that the "
        "documents answer. A SQuAD file brings questions without an answer of its own",
    )
    parser.add_argument("--queries", type=int, metavar="N", help="only N queries, a fixed random sample")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="md",
        help="what documents are uploaded as; default: md, with the title as heading",
    )


def _how(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--modes",
        nargs="+",
        metavar="MODE",
        help='only these: names of standard modes, or NAME={"option": value} with options of POST /v1/search',
    )
    parser.add_argument(
        "--reference",
        metavar="MODE",
        help="the mode that others are compared with; default: default, or else the first",
    )
    parser.add_argument(
        "--top-k",
        type=int,
        default=20,
        metavar="N",
        help="passages to ask for; default 20: ten documents are among them although some have several passages",
    )
    parser.add_argument("--no-recall", action="store_true", help="leave out the second pass that recall@100 needs")
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="keep the started system's data here, so that the next evaluation need not index again",
    )
    parser.add_argument(
        "--keep", action="store_true", help="with GROUNDWORK_URL: do not delete the collection afterwards"
    )


def _result(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report", type=Path, metavar="DIR", help="also write report, plots, figures and rankings to DIR"
    )
    parser.add_argument(
        "--fail-under",
        action="append",
        default=[],
        metavar="[MODE:]METRIC=VALUE",
        help=f"exit with 1 when a mean is lower; metrics: {', '.join(METRICS)}; may be repeated",
    )
