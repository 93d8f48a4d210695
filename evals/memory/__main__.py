"""`python -m evals memory`: measures whether what was said in long conversations is found again, on the dialogues of LoCoMo.

Each turn is put into the index of memories as it was said, with the end of the turn before it in the session as its context: as the
memory service puts messages. The context is never returned. A question counts as found where all turns that hold its evidence are
among the ten that come back; no neighbour of a turn counts for it. Beside it the same by words (BM25) and by vectors alone.
"""

import argparse
import asyncio
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from groundwork.retriever.v1 import retriever_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2_grpc as rpc

from evals.errors import EvaluationError
from evals.memory.changes import render_changes
from evals.memory.rules import render_rules
from evals.system import RunningSystem, running_system
from kit.access.principal import Principal, use_principal
from kit.rpc.channel import open_channel

UNDER_THRESHOLD, FAILED = 1, 2
_DATA = Path("../shared/data/memory_locomo_half/locomo_first5.json.gz")
_TOP_K = 10
_PER_PUT = 64
_CONTEXT_CHARACTERS = 300
"""As many as the memory service takes of the message before."""
_TIMEOUT_S = 600.0
_CATEGORIES = {1: "several turns", 2: "time", 3: "with what is known", 4: "one turn"}
"""Those whose questions have an answer; 5 are questions that nothing answers."""
_WAYS = {"both": pb.STRATEGY_UNSPECIFIED, "words": pb.STRATEGY_LEXICAL, "vectors": pb.STRATEGY_DENSE}


@dataclass(frozen=True)
class Asked:
    """A question, and the share of its evidence that each way of searching found."""

    category: int
    found: dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when the share is under the threshold, 2 when it could not be measured."""
    options = _parse(arguments)
    try:
        dialogues = _load(options.data)
        with running_system() as system:
            asked = asyncio.run(_measured(system, dialogues[: options.dialogues or None]))
    except EvaluationError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    sys.stdout.write(render(asked))
    questions = [str(question["question"]) for dialogue in dialogues for question in dialogue["qa"]]
    sys.stdout.write(f"\n{render_rules(questions)}\n{render_changes()}")
    return UNDER_THRESHOLD if _share(asked, "both") < options.fail_under else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals memory", description="Measure what is found again.")
    parser.add_argument("--data", type=Path, default=_DATA, help="the dialogues (default %(default)s)")
    parser.add_argument("--dialogues", type=int, default=0, metavar="N", help="only the first N dialogues")
    parser.add_argument("--fail-under", type=float, default=0.0, help="least share of questions (default %(default)s)")
    return parser.parse_args(arguments)


def _load(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        raise EvaluationError(f"{path} is not there; name the dialogues with --data")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        dialogues: list[dict[str, Any]] = json.load(file)
    return dialogues


async def _measured(system: RunningSystem, dialogues: Sequence[dict[str, Any]]) -> list[Asked]:
    address = system.services()["retriever"]["address"]
    async with open_channel(address, system.signer) as channel:
        stub = rpc.RetrieverServiceStub(channel)
        asked: list[Asked] = []
        for number, dialogue in enumerate(dialogues):
            with use_principal(Principal("local", f"locomo-{number}")):
                await _remember(stub, dialogue["conversation"])
                answerable = [
                    each for each in dialogue["qa"] if each["category"] in _CATEGORIES and each.get("evidence")
                ]
                asked += [await _ask(stub, question) for question in answerable]
        return asked


async def _remember(stub: rpc.RetrieverServiceStub, conversation: dict[str, Any]) -> None:
    sessions = [value for value in conversation.values() if isinstance(value, list)]
    memories = [
        pb.Memory(
            item_id=f"t/{turn['dia_id']}",
            text=_said(turn),
            source="message",
            group="t",
            context=_said(before)[-_CONTEXT_CHARACTERS:] if before else "",
        )
        for session in sessions
        for before, turn in pairwise([None, *session])
    ]
    for start in range(0, len(memories), _PER_PUT):
        request = pb.PutMemoriesRequest(memories=memories[start : start + _PER_PUT])
        await stub.PutMemories(request, timeout=_TIMEOUT_S)


def _said(turn: dict[str, Any]) -> str:
    picture = f" ({turn['blip_caption']})" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{picture}"


async def _ask(stub: rpc.RetrieverServiceStub, question: dict[str, Any]) -> Asked:
    wanted = {each.strip() for evidence in question["evidence"] for each in evidence.replace(";", " ").split()}
    found = {}
    for way, strategy in _WAYS.items():
        request = pb.SearchMemoriesRequest(query_text=str(question["question"]), top_k=_TOP_K, strategy=strategy)
        answer = await stub.SearchMemories(request, timeout=_TIMEOUT_S)
        ids = {each.memory.item_id.partition("/")[2] for each in answer.found}
        found[way] = len(wanted & ids) / len(wanted)
    return Asked(question["category"], found)


def render(asked: Sequence[Asked]) -> str:
    """A table: by category the share of questions with all of their evidence found, and in brackets with some."""
    by_category: dict[str, list[Asked]] = defaultdict(list)
    for each in asked:
        by_category[_CATEGORIES[each.category]].append(each)
    lines = ["| questions | count | both | BM25 alone | vectors alone |", "|---|---|---|---|---|"]
    for name, group in [*sorted(by_category.items()), ("all", list(asked))]:
        cells = " | ".join(f"{_share(group, way):.3f} ({_some(group, way):.3f})" for way in _WAYS)
        lines.append(f"| {name} | {len(group)} | {cells} |")
    return "\n".join(lines) + "\n"


def _share(asked: Sequence[Asked], way: str) -> float:
    return sum(each.found[way] == 1.0 for each in asked) / max(1, len(asked))


def _some(asked: Sequence[Asked], way: str) -> float:
    return sum(each.found[way] > 0 for each in asked) / max(1, len(asked))


if __name__ == "__main__":
    sys.exit(main())
