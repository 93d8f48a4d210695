"""What the events of a run add up to, as clients read them: the one fold behind the gateway's JSON answers and the command line.
`console/src/run/fold.ts` is the same in the browser. Both are held to the cases in tests/data/run_folds.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
"""A JSON object."""

RUNNING, WAITING = "running", "waiting"
_ENVELOPE = frozenset({"run_id", "seq", "at"})
"""What every event carries."""
_GROUNDS: Json = {
    "citations": [],
    "support_status": None,
    "method": "",
    "answer_confidence": None,
    "answer_status": None,
    "closest": [],
    "conflicts": [],
    "block": None,
    "ending": "",
}
"""What a result has of an `answer` event besides its text, as it is before one has come."""
_UNANSWERED: Json = {"ok": None, "summary": "", "duration_ms": None, "error": None}
"""A call before its result."""


@dataclass
class RunFold:
    """One run so far. Add its events in order, each once."""

    run_id: str = ""
    thread_id: str | None = None
    status: str = ""
    """`running`, `waiting`, or how it ended; empty before the first event."""
    text: str = ""
    """The answer as streamed; an `answer` event replaces it."""
    answer: Json | None = None
    verification: Json | None = None
    """What was checked so far. While the answer is written it has `sentences` only, each with its `index`."""
    usage: Json = field(default_factory=dict)
    degraded: list[Json] = field(default_factory=list)
    calls: dict[str, Json] = field(default_factory=dict)
    """Calls of tools by their id, in order of their beginning."""
    pending: dict[str, Json] = field(default_factory=dict)
    """Approvals that nobody has decided, by their id, in order of their asking."""
    input: Json | None = None
    """The question to the user that nobody has answered."""
    waits: Json | None = None
    """What a waiting run waits for, as the `parked` event has it."""
    error: Json | None = None
    coverage: Json | None = None
    """What the evidence covers, as last measured."""
    artefacts: dict[str, Json] = field(default_factory=dict)
    """What an agent has made besides its text, by id, in order of their beginning."""
    safety: list[Json] = field(default_factory=list)
    """What was seen that is not safe."""

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        """Takes an event in. One of a kind that a newer server knows is passed over."""
        self.run_id = data["run_id"]
        if kind not in ("approval", "input"):  # a decision or an answer alone does not set the run going
            self.status, self.waits = RUNNING, None
        own = {key: value for key, value in data.items() if key not in _ENVELOPE}
        match kind:
            case "run":
                self.thread_id = own.get("thread_id")
            case "token" | "answer" | "artefact":
                self._take_content(kind, own)
            case "claim" | "verification" | "coverage" | "safety":
                self._take_judgement(kind, own)
            case "thinking" | "retrieval":
                self._note(own.get("degraded"))
            case "tool" | "tool_result" | "approval" | "input":
                self._take_step(kind, own)
            case "usage" | "error":
                setattr(self, kind, own)
            case "parked":
                self.status, self.waits = WAITING, own
            case "done":
                self.status, self.input = own["status"], None
                self.pending.clear()

    def _note(self, degraded: Json | list[Json] | None) -> None:
        noted = degraded if isinstance(degraded, list) else [degraded] if degraded else []
        self.degraded += [each for each in noted if each not in self.degraded]

    def _take_content(self, kind: str, own: Json) -> None:
        if kind == "artefact":
            self.artefacts[own["artefact_id"]] = _without_step(own)
        elif kind == "answer":
            self.answer, self.text = own, own["text"]
            self.coverage = own.get("coverage") or self.coverage
            self.verification = own.get("verification")
            self.artefacts |= {each["artefact_id"]: each for each in own.get("artefacts") or []}
        else:
            self.text = self.text[: own["offset"]] + own["text"]
            if own["offset"] == 0 and self.verification and "support_status" not in self.verification:
                self.verification = None  # it was on what another text said

    def _take_judgement(self, kind: str, own: Json) -> None:
        match kind:
            case "coverage":
                if not own.get("investigation"):  # else it is of a part of the question only
                    self.coverage = _without_step(own)
            case "safety":
                self.safety.append(_without_step(own))
            case "verification":
                self.verification = own
            case _:
                known = self.verification["sentences"] if self.verification else []
                others = [each for each in known if each.get("index") != own["index"]]
                judged = [*others, {**own["verdict"], "index": own["index"]}]
                self.verification = {"sentences": sorted(judged, key=lambda each: each.get("index", 0))}

    def _take_step(self, kind: str, own: Json) -> None:
        match kind:
            case "tool":
                self.calls[own["call_id"]] = {**own, **_UNANSWERED}
            case "tool_result" if own["call_id"] in self.calls:
                self.calls[own["call_id"]] |= own
            case "approval" if own["decision"] == "pending":
                self.pending[own["approval_id"]] = {**own, "run_id": self.run_id, "id": own["approval_id"]}
            case "approval":
                self.pending.pop(own["approval_id"], None)
            case "input":
                self.input = own if own["state"] == "pending" else None

    def result(self) -> Json:
        """What came of the run so far, as one JSON object."""
        answer = self.answer or {}
        return {
            "run_id": self.run_id,
            "thread_id": self.thread_id,
            "status": self.status,
            "answer": self.text,
            **{name: answer.get(name, empty) for name, empty in _GROUNDS.items()},
            "verification": self.verification,
            "degraded": self.degraded,
            "usage": self.usage,
            "tool_calls": list(self.calls.values()),
            "approvals": list(self.pending.values()),
            "input": self.input,
            "parked": self.waits,
            "error": self.error,
            "coverage": self.coverage,
            "artefacts": list(self.artefacts.values()),
            "safety": self.safety,
        }


def _without_step(own: Json) -> Json:
    """What an event tells, as an answer has it."""
    return {key: value for key, value in own.items() if key != "step"}
