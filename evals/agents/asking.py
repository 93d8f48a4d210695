"""One question through the public API, by `qa` or by `agent` with an effort; what its events tell."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from cli.client.asking import ask as follow
from cli.client.gateway import Gateway, Json
from kit.vocabulary.run_fold import RunFold

QA = "qa"
EFFORTS = ("auto", "low", "medium", "high")


@dataclass(frozen=True)
class Asked:
    """A question, and how it is served."""

    question: str
    collection_id: str
    served: str
    """`qa`, or an effort."""

    def start(self) -> tuple[str, Json]:
        body: Json = {"question": self.question, "collection_ids": [self.collection_id]}
        return ("/v1/qa", body) if self.served == QA else ("/v1/agent", {**body, "effort": self.served})


@dataclass(frozen=True)
class Outcome:
    """What came of a question."""

    documents: tuple[str, ...]
    """Names of the documents in the evidence, without their ending, each once."""
    searches: int
    rounds: int
    seconds: float
    status: str
    ending: str
    effort: str
    coverage: float
    cited: int
    """Documents that the answer cites."""
    text: str
    tokens: int
    is_supported: bool
    """Whether every claim of the answer is carried by its citations."""
    citation_precision: float | None
    citation_recall: float | None
    citation_coverage: float | None
    """None where nothing was checked, as of a refusal."""
    messages: tuple[str, ...] = ()
    """`channel/id` of the messages in the evidence."""
    cited_messages: tuple[str, ...] = ()
    says_conflict: bool = False
    cost_usd: float = 0.0
    calls_ok: tuple[bool, ...] = ()
    """Of each call of a tool whether it ended well, within its time."""


async def ask(gateway: Gateway, asked: Asked) -> Outcome:
    """Asks and waits for the end. Raises what the gateway raises."""
    run, evidence, searches, rounds, effort = RunFold(), [], 0, 0, ""
    began = time.perf_counter()
    async for event in follow(gateway, asked):
        run.add(event.kind, event.data)
        if event.kind == "retrieval":
            evidence = event.data["evidence"]
            searches += event.data["searches"] if event.data["round"] else 1
            rounds += 1
        elif event.kind == "plan" and event.data["effort"]:
            effort = event.data["effort"]
    seconds = time.perf_counter() - began
    result = run.result()
    names = dict.fromkeys(each["document_name"].rpartition(".")[0] for each in evidence)
    usage = result["usage"]
    checked = result["verification"] or {}
    return Outcome(
        tuple(names),
        searches,
        rounds,
        seconds,
        result["status"],
        result["ending"],
        effort,
        (result["coverage"] or {}).get("share") or 0.0,
        len({each["document_name"] for each in result["citations"]}),
        result["answer"],
        usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0),
        result["support_status"] == "supported",
        checked.get("citation_precision"),
        checked.get("citation_recall"),
        checked.get("citation_coverage"),
        _messages(evidence),
        _messages(result["citations"]),
        bool(result["conflicts"]) or result["ending"] == "conflict",
        usage.get("cost_usd") or 0.0,
        tuple(bool(each["ok"]) for each in run.calls.values()),
    )


def _messages(passages: Sequence[Json]) -> tuple[str, ...]:
    """Those of the passages that are messages of a chat."""
    origins = [each.get("origin") or {} for each in passages]
    return tuple(f"{each['channel']}/{each['message_id']}" for each in origins if each.get("message_id"))
