"""`python -m evals`: measures the quality of retrieval through the public API. `make eval ARGS=…` passes options on."""

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cli.client.gateway import Gateway
from cli.errors import CliError
from evals.agents import __main__ as agents
from evals.artefacts import __main__ as artefacts
from evals.claims import __main__ as claims
from evals.conflicts import __main__ as conflicts
from evals.datasets.loading import load_collection, sample_queries, with_off_topic
from evals.errors import EvaluationError
from evals.memory import __main__ as memory
from evals.retrieval.evaluation import Evaluation, Plan, evaluate
from evals.retrieval.gate import Threshold, misses, parse_threshold
from evals.retrieval.modes import DEFAULT, parse_mode, standard_modes
from evals.retrieval.options import parse_options
from evals.retrieval.report import Circumstances, render
from evals.retrieval.saving import PAGE, save
from evals.sql import __main__ as sql
from evals.system import running_system

UNDER_THRESHOLD, FAILED, INTERRUPTED = 1, 2, 130
_OTHERS = {
    "agents": agents.main,
    "artefacts": artefacts.main,
    "claims": claims.main,
    "conflicts": conflicts.main,
    "memory": memory.main,
    "sql": sql.main,
}
"""What else is measured, by the first word."""

GROUNDWORK_URL = "GROUNDWORK_URL"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when a threshold is not reached, 2 when it could not be measured."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] in (["reading"], ["cases"], ["ocr"]):
        from evals.reading.__main__ import main as measure_reading  # noqa: PLC0415 - needs what ingestion needs, and no system

        return measure_reading(words)
    if words[:1] == ["safety"]:
        from evals.safety.__main__ import main as measure_safety  # noqa: PLC0415 - needs what the orchestrator needs, and no system

        return measure_safety(words[1:])
    if words and words[0] in _OTHERS:
        return _OTHERS[words[0]](words[1:])
    options = parse_options(arguments)
    try:
        plan, thresholds = _plan(options), [parse_threshold(text) for text in options.fail_under]
        reference = _reference(plan, options.reference)
        evaluation, system = _evaluate(plan, options)
    except (EvaluationError, CliError) as error:
        _say(str(error))
        return FAILED
    except KeyboardInterrupt:
        _say("interrupted: nothing was measured to the end, nothing is written")
        return INTERRUPTED
    return _finish(evaluation, Circumstances(system, _commit(), reference), thresholds, options.report)


def _finish(
    evaluation: Evaluation, circumstances: Circumstances, thresholds: Sequence[Threshold], folder: Path | None
) -> int:
    sys.stdout.write(render(evaluation, circumstances))
    if folder:
        for sentence in save(evaluation, circumstances, folder):
            _say(sentence)
        _say(f"wrote {folder / PAGE}")
    missed = misses(thresholds, {each.mode: each for each in evaluation.scores})
    for sentence in missed:
        _say(f"FAILED: {sentence}")
    return UNDER_THRESHOLD if missed else 0


def _reference(plan: Plan, wanted: str | None) -> str:
    names = [mode.name for mode in plan.modes]
    if wanted and wanted not in names:
        raise EvaluationError(f"--reference {wanted!r} is not one of the modes that are measured: {', '.join(names)}")
    return wanted or (DEFAULT if DEFAULT in names else names[0])


def _plan(options: argparse.Namespace) -> Plan:
    collection = load_collection(options.collection, options.split)
    if options.off_topic:
        collection = with_off_topic(collection, load_collection(options.off_topic, options.split))
    modes = [parse_mode(text) for text in options.modes] if options.modes else standard_modes()
    names = [mode.name for mode in modes]
    return Plan(
        collection=sample_queries(collection, options.queries) if options.queries else collection,
        modes=modes,
        top_k=options.top_k,
        file_format=options.format,
        deep=not options.no_recall,
        reference=options.reference or (DEFAULT if DEFAULT in names else names[0]),
    )


def _evaluate(plan: Plan, options: argparse.Namespace) -> tuple[Evaluation, str]:
    with _system(options.data_dir) as (url, system):
        try:
            # A system that was started for this is thrown away, or kept on purpose: only a borrowed one is tidied up.
            keep = options.keep or GROUNDWORK_URL not in os.environ
            return asyncio.run(_through(url, plan, keep=keep)), system
        except BaseExceptionGroup as group:  # task groups wrap what went wrong in one of their tasks
            raise _first(group) from group


async def _through(url: str, plan: Plan, *, keep: bool) -> Evaluation:
    collection_id = "eval-" + "".join(each if each.isalnum() else "-" for each in plan.collection.name.lower())[:50]
    async with Gateway.open(url) as gateway:
        evaluation = await evaluate(gateway, plan, collection_id, _say)
        if not keep:
            await gateway.request("DELETE", f"/v1/collections/{collection_id}")
        return evaluation


@contextlib.contextmanager
def _system(data_dir: Path | None) -> Iterator[tuple[str, str]]:
    """Address and description of the system under test: the one that GROUNDWORK_URL names, or one started for this."""
    if url := os.environ.get(GROUNDWORK_URL):
        yield url, url
        return
    os.environ.setdefault("GROUNDWORK_MODELS_DIR", ".models")
    _say("starting the system")
    with running_system(data_dir) as system:
        settings = sorted(each for each in os.environ.items() if each[0].startswith("GROUNDWORK_RE"))
        changed = ", ".join(f"{name}={value}" for name, value in settings)
        yield system.url, f"started with {changed or 'the default settings'}"


def _commit() -> str:
    git = ["git", "describe", "--always", "--dirty"]
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    return "unknown"


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


if __name__ == "__main__":
    sys.exit(main())
