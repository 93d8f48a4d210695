"""`python -m chaos`: one campaign, its verdict on the terminal and as a file. `make chaos ARGS=…` passes options on."""

import argparse
import os
import sys
import time
from pathlib import Path

from chaos.campaign import Campaign, Plan
from chaos.faults import ALL_FAULTS
from chaos.report import render
from chaos.system import ChaosSystem

REPORT = Path("build/chaos.md")


def main() -> None:
    """Ends with 1 when a promise was broken."""
    options = _options()
    os.environ.setdefault("GROUNDWORK_MODELS_DIR", ".models")
    plan = Plan(seed=options.seed, rounds=options.rounds, faults=tuple(options.faults), calm_s=options.calm_s)
    with ChaosSystem.on_empty_folder() as system:
        verdict = Campaign(system, plan, say=_say).run()
    page = render(plan, verdict)
    sys.stdout.write(page)
    options.write.parent.mkdir(parents=True, exist_ok=True)
    options.write.write_text(page, "utf-8")
    sys.exit(0 if verdict.is_clean else 1)


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the same seed does the same things in the same order")
    parser.add_argument("--rounds", type=int, default=30, help="faults, one after the other")
    parser.add_argument("--calm-s", type=float, default=2.0, help="longest time between two faults, in seconds")
    parser.add_argument(
        "--faults", nargs="*", choices=list(ALL_FAULTS), default=list(ALL_FAULTS), help="what may happen"
    )
    parser.add_argument("--write", type=Path, default=REPORT, metavar="FILE", help=f"the report; default: {REPORT}")
    return parser.parse_args()


if __name__ == "__main__":
    main()
