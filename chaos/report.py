"""The verdict as a page of Markdown."""

from collections import Counter

from chaos.campaign import Plan
from chaos.faults import ALL_FAULTS
from chaos.verdict import Verdict
from evals.tables import Table


def render(plan: Plan, verdict: Verdict) -> str:
    """Figures first, then every violation, then what was done."""
    figures = Table(
        ("figure", "count"),
        [
            ("attempted (uploads, replacements, deletions)", str(verdict.sent)),
            ("acknowledged", str(verdict.acknowledged)),
            ("answers begun", str(verdict.questions)),
            ("faults", str(len(verdict.done))),
            ("lost", str(len(verdict.lost))),
            ("doubled", str(len(verdict.doubled))),
            ("stale", str(len(verdict.stale))),
            ("broken answers", str(len(verdict.broken))),
            ("documents that did not become ready", str(len(verdict.unsettled))),
            ("lost with a damaged file, and named", str(len(verdict.named))),
        ],
    )
    kinds = Counter(each.split(" for ")[0].split(" of ")[0] for each in verdict.done)
    violations = [*verdict.lost, *verdict.doubled, *verdict.stale, *verdict.broken, *verdict.unsettled]
    blocks = [
        "# Chaos",
        f"Seed {plan.seed}, {plan.rounds} rounds. Repeat it with `make chaos ARGS='{_options(plan)}'`.",
        figures.render(),
        *(["## Violations", "\n".join(f"* {each}" for each in violations)] if violations else []),
        *(["## Lost and named", "\n".join(f"* {each}" for each in verdict.named)] if verdict.named else []),
        "## Faults",
        "\n".join(f"* {what}: {count}" for what, count in sorted(kinds.items())),
    ]
    if verdict.left_out:
        left_out = ", ".join(f"{kind} {count} times" for kind, count in sorted(verdict.left_out.items()))
        blocks.append(f"Not possible here or at that moment: {left_out}.")
    return "\n\n".join(block for block in blocks if block) + "\n"


def _options(plan: Plan) -> str:
    """With which the same things are done in the same order."""
    options = f"--seed {plan.seed} --rounds {plan.rounds} --calm-s {plan.calm_s:g}"
    return options if plan.faults == tuple(ALL_FAULTS) else f"{options} --faults {' '.join(plan.faults)}"
