"""Makes the cases that scripts/fit_answerability.py fits on: the signals of the best sentence for the questions of
`evals/answering/replay.py`, and whether what is quoted holds the answer.

    python -m scripts.answerability_cases --squad dev-v2.0.json.gz --xquad ir_xquad_de cases.jsonl
"""

import argparse
import asyncio
import json
import math
import sys
from pathlib import Path
from typing import Any

from evals.answering.replay import Asked, Collection, Model, folded, squad, tables, tested_paragraphs, xquad
from kit.language.questions import read_question
from services.orchestrator.without_model import ExtractiveSettings
from services.orchestrator.without_model.answering import score_candidates
from services.orchestrator.without_model.features import gather
from services.orchestrator.without_model.scoring import prefilter, rank
from services.orchestrator.without_model.selection import select
from services.orchestrator.without_model.signals import read_signals

_BY_WORDS_EVERY = 3
"""Every third case is made by words alone, too, for trees of their own."""


def case(asked: Asked, collection: Collection, model: Model | None) -> dict[str, Any] | None:
    """The signals of the best unit, and whether the selected text holds an answer; without a model by words alone, as when the
    model server is away."""
    question, settings = read_question(asked.question), ExtractiveSettings(scorer_timeout_s=60)
    evidence = gather(question, collection.search(asked.question, asked.without))
    candidates = prefilter(evidence, settings)
    if not candidates:
        return None
    semantics, _ = asyncio.run(score_candidates(question, candidates, model, settings))
    ranked = rank(candidates, semantics, settings)
    chosen = select(question, evidence, ranked, settings)
    text = folded(" ".join(each.candidate.unit.text for each in chosen))
    signals = [None if math.isnan(each) else round(each, 5) for each in read_signals(question, evidence, ranked)]
    right = any(folded(answer) in text for answer in asked.answers)
    return {"half": asked.half, "kind": asked.kind, "signals": signals, "right": right}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--model", choices=("multilingual", "english"), default="multilingual")
    parser.add_argument("--squad", type=Path)
    parser.add_argument(
        "--xquad", type=Path, action="append", default=[], help="a folder; the last is asked across languages"
    )
    parser.add_argument("--table", type=Path, action="append", default=[], help="a text file of rows")
    parser.add_argument("--count", type=int, default=500, help="questions of each sort and half")
    options = parser.parse_args()
    model = Model(options.model)
    sources = [squad(options.squad, options.count, model)] if options.squad else []
    tested = tested_paragraphs(options.squad) if options.squad else frozenset()
    sources += [xquad(options.xquad, options.count, model, tested)] if options.xquad else []
    sources += [tables(options.table, model)] if options.table else []
    with options.output.open("w", encoding="utf-8") as file:
        for source in sources:
            for number, (asked, collection) in enumerate(source):
                for scorer in (model, None) if number % _BY_WORDS_EVERY == 0 else (model,):
                    if made := case(asked, collection, scorer):
                        file.write(json.dumps(made) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
