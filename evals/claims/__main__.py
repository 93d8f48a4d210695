"""`python -m evals claims`: measures how well judges tell true claims from false ones, by set, kind of claim and language."""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from evals.claims.answers import Endpoint, judge_by_answers
from evals.claims.figures import Figures, Judged, figures, without_rules
from evals.claims.judges import WORDS, answer_seconds, judge_by_model_server, judge_by_words
from evals.claims.sets import SETS, LabelledClaim, load_sets
from evals.errors import EvaluationError
from evals.system import RunningSystem, running_system
from evals.tables import Table

UNDER_THRESHOLD, FAILED = 1, 2
_DATA = Path("../shared/data")
_FITTED_ON = "The learned judge is fitted on `written`: figures of passages left out are in docs/evaluation.md."
_SENTENCES = 5
"""Of an answer whose time is measured."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when the learned judge is under a threshold, 2 when it could not be measured."""
    options = _parse(arguments)
    try:
        sets = load_sets(options.data, options.sets)
    except EvaluationError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    if left_out := [name for name in options.sets or SETS if name not in sets]:
        sys.stderr.write(f"{options.data} does not hold {', '.join(left_out)}; name the folder that does with --data\n")
    if options.claims:
        sets = {name: _sample(claims, options.claims) for name, claims in sets.items()}
    os.environ.setdefault("GROUNDWORK_MODELS_DIR", ".models")
    if options.answers:
        name, by_answers = asyncio.run(_by_answers(sets))
        sys.stdout.write(render({name: by_answers}, ()) + render_citations(by_answers))
        if endpoint := Endpoint.from_environment():
            sys.stdout.write(f"\nFor GROUNDWORK_VERIFY_FIGURES_FILE:\n{published(endpoint.model, by_answers)}\n")
        passed = [figures(judged).false_that_pass or 0.0 for judged in by_answers.values()]
        return UNDER_THRESHOLD if max(passed) > options.most_passed else 0
    with running_system() as system:
        learned, by_judge, seconds = asyncio.run(_judged(system, sets))
    sys.stdout.write(render(by_judge, seconds) + render_rules(by_judge[learned]))
    low = list(misses(by_judge[learned], options.fail_under))
    sys.stderr.writelines(f"{each}\n" for each in low)
    return UNDER_THRESHOLD if low else 0


def misses(by_set: Mapping[str, Sequence[Judged]], thresholds: Mapping[str, float]) -> Iterator[str]:
    """One sentence for each set whose balanced accuracy is under its threshold. A set that was not measured misses it."""
    for name, least in thresholds.items():
        accuracy = figures(by_set.get(name, [])).balanced_accuracy
        if accuracy is None:
            yield f"{name} was not measured, so it is not known to reach {least}"
        elif accuracy < least:
            yield f"the balanced accuracy on {name} is {accuracy:.3f}, which is under {least}"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals claims", description="Measure judges of claims.")
    parser.add_argument(
        "--data", type=Path, default=_DATA, help="the folder with the labelled sets (default %(default)s)"
    )
    parser.add_argument("--sets", nargs="*", default=[], help=f"only these: {', '.join(SETS)}")
    parser.add_argument(
        "--claims", type=int, default=0, metavar="N", help="only N claims of each set, a fixed random sample"
    )
    parser.add_argument(
        "--answers",
        action="store_true",
        help="as answers through the system, judged by the model of EVAL_OPENAI_BASE_URL, or by one that is told what is true",
    )
    parser.add_argument(
        "--most-passed", type=float, default=1.0, help="with --answers: most false claims of a set that may pass"
    )
    parser.add_argument(
        "--fail-under",
        nargs="*",
        default=[],
        type=_threshold,
        metavar="SET=SHARE",
        help="least balanced accuracy of the learned judge on a set: exit code 1 when it is lower",
    )
    options = parser.parse_args(arguments)
    options.fail_under = dict(options.fail_under)
    return options


def _threshold(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    try:
        return name, float(share)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not SET=SHARE, as written=0.8 is") from None


def _sample(claims: Sequence[LabelledClaim], count: int) -> list[LabelledClaim]:
    return random.Random(1).sample(claims, min(count, len(claims)))


async def _by_answers(sets: Mapping[str, Sequence[LabelledClaim]]) -> tuple[str, dict[str, list[Judged]]]:
    """The judge's name, and by set what the answers say."""
    endpoint, name = Endpoint.from_environment(), ""
    judged: dict[str, list[Judged]] = {}
    for each, claims in sets.items():
        name, judged[each] = await judge_by_answers(claims, endpoint)
        sys.stderr.write(f"judged {each}\n")
    return name, judged


async def _judged(
    system: RunningSystem, sets: Mapping[str, Sequence[LabelledClaim]]
) -> tuple[str, dict[str, dict[str, list[Judged]]], list[float]]:
    """Name of the learned judge; by judge and set what it says; and the seconds that it takes for an answer."""
    by_words = {name: judge_by_words(claims) for name, claims in sets.items()}
    learned: dict[str, list[Judged]] = {}
    judge = ""
    for name, claims in sets.items():
        judge, learned[name] = await judge_by_model_server(system, claims)
        sys.stderr.write(f"judged {name}\n")
    seconds = await answer_seconds(system, [claim for claims in sets.values() for claim in claims[:100]], _SENTENCES)
    return judge, {WORDS: by_words, judge: learned}, seconds


def published(model: str, by_set: Mapping[str, Sequence[Judged]]) -> str:
    """The figures of a model over all sets, as the setting wants them."""
    over_all = [each for judged in by_set.values() for each in judged]
    found = figures(over_all)
    shares = {"false_passed": found.false_that_pass or 0.0, "true_failed": found.true_that_fail or 0.0}
    rounded = {name: round(share, 3) for name, share in shares.items()}
    return json.dumps({f"model/{model}": {**rounded, "claims": len(over_all)}})


def render(by_judge: Mapping[str, Mapping[str, Sequence[Judged]]], seconds: Sequence[float]) -> str:
    """The report."""
    sets = list(next(iter(by_judge.values())))
    parts = ["# Claims\n", f"{_FITTED_ON}\n", _table(by_judge, "set", sets, lambda name, judged: judged[name])]
    for name in sets:
        for title, facet in (("kind", _kind), ("language", _language)):
            values = list(dict.fromkeys(facet(each) for each in next(iter(by_judge.values()))[name]))
            if len(values) > 1:
                parts += [f"\n## {name}, by {title}\n", _table(by_judge, title, values, _by(name, facet))]
    if seconds:
        parts.append(f"\nAn answer of {_SENTENCES} sentences takes {1000 * statistics.median(seconds):.0f} ms (p50).")
    return "\n".join([*parts, ""])


def render_rules(by_set: Mapping[str, Sequence[Judged]]) -> str:
    """What each exact rule does: how often it speaks against a claim, and the figures without it."""
    names = list(dict.fromkeys(name for judged in by_set.values() for each in judged for name in each.rules))
    columns = (
        "set",
        "rules",
        "against false",
        "against true",
        "false that pass",
        "true that fail",
        "balanced accuracy",
    )
    rows = []
    for name, judged in by_set.items():
        for left_out in ((), *((each,) for each in names), tuple(names)):
            found = figures(without_rules(judged, left_out))
            label = "all" if not left_out else f"without {left_out[0]}" if len(left_out) == 1 else "none"
            rows.append((name, label, *_against(judged, left_out or names), *_cells(found)[1:4]))
    return f"\n## The exact rules of the learned judge\n\n{Table(columns, rows).render()}\n" if names else ""


def _against(judged: Sequence[Judged], names: Sequence[str]) -> tuple[str, str]:
    """How many false and true claims one of these rules speaks against."""
    against = [each.claim.is_true for each in judged if {*each.rules} & {*names}]
    return str(against.count(False)), str(against.count(True))


def render_citations(by_set: Mapping[str, Sequence[Judged]]) -> str:
    """How well the answers cite, by set: means over the answers of true and of false claims."""
    columns = ("set", "claims that are", "answers", "citation recall", "citation precision", "citation coverage")
    rows = []
    for name, judged in by_set.items():
        for is_true in (True, False):
            found = [each.citations for each in judged if each.citations and each.claim.is_true is is_true]
            shares = [(each.recall, each.precision, each.coverage) for each in found]
            means = [f"{statistics.mean(column):.3f}" for column in zip(*shares, strict=True)] or ["–"] * 3
            rows.append((name, "true" if is_true else "false", str(len(found)), *means))
    return f"\n## Citations of the answers\n\n{Table(columns, rows).render()}\n"


def _table(
    by_judge: Mapping[str, Mapping[str, Sequence[Judged]]],
    title: str,
    rows: Sequence[str],
    select: Callable[[str, Mapping[str, Sequence[Judged]]], Sequence[Judged]],
) -> str:
    columns = (title, "judge", "claims", "false that pass", "true that fail", "balanced accuracy", "calibration error")
    cells = [(row, judge, *_cells(figures(select(row, judged)))) for row in rows for judge, judged in by_judge.items()]
    return Table(columns, cells).render()


def _cells(measured: Figures) -> tuple[str, ...]:
    shares = (measured.false_that_pass, measured.true_that_fail, measured.balanced_accuracy, measured.calibration_error)
    return str(measured.claims), *("–" if share is None else f"{share:.3f}" for share in shares)


def _by(name: str, facet: Callable[[Judged], str]) -> Callable[[str, Mapping[str, Sequence[Judged]]], Sequence[Judged]]:
    return lambda value, judged: [each for each in judged[name] if facet(each) == value]


def _kind(judged: Judged) -> str:
    return f"{judged.claim.kind} ({'true' if judged.claim.is_true else 'false'})"


def _language(judged: Judged) -> str:
    return judged.claim.language


if __name__ == "__main__":
    sys.exit(main())
