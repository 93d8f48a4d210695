"""What became of the promises: asked of the public API once the faults are over."""

import time
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import httpx

from chaos.clients import events
from chaos.inquiries import POLL_S, SETTLE_TIMEOUT_S, answered, documents_found_by, settled
from chaos.ledger import Answer, Ledger, Promise
from chaos.system import ChaosSystem

_FORGOTTEN_AFTER_S = 60.0
"""What quotes a deleted document is erased within a minute, and may be cut off until then."""
_HEALED_AFTER_S = 150.0
"""An index that was lost is filled again by the reconciler, which looks every 20 s here and a minute after a start."""


_HOLD_DOCUMENTS = ("ACTIVE_REVISIONS", "COLLECTIONS", "DOCUMENTS", "DOCUMENT_NAMES", "FILES")
"""Places of the message store, as the system names them."""


@dataclass
class Verdict:
    """Each violation as a sentence."""

    sent: int
    acknowledged: int
    questions: int
    done: list[str] = field(default_factory=list)
    """Faults, in their order."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Faults that were not possible, by kind."""
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Answers that did not end, or whose events have gaps or came twice."""
    unsettled: list[str] = field(default_factory=list)
    """Documents that were still on their way, or had failed."""
    named: list[str] = field(default_factory=list)
    """What a damaged file of the message store took along, and the system said so: as much as it named, no more."""

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.stale or self.broken or self.unsettled)

    def excuse(self, named: Mapping[str, int]) -> None:
        """Moves to `named` what the system said is lost, by where. Nothing excuses what is stale or doubled, or a broken answer."""
        documents = {each.split(" ")[0] for each in [*self.lost, *self.unsettled]}
        if len(documents) <= sum(named.get(where, 0) for where in _HOLD_DOCUMENTS):
            self.named += [*self.lost, *self.unsettled]
            self.lost, self.unsettled = [], []


def judge(system: ChaosSystem, collection_id: str, ledger: Ledger) -> Verdict:
    """Waits until the system has come to rest, then looks each promise up."""
    verdict = Verdict(ledger.sent, ledger.acknowledged, ledger.questions)
    with httpx.Client(base_url=system.url, timeout=60.0, trust_env=False) as http:
        documents = settled(http, collection_id)
        verdict.unsettled = [f"{each['name']} is {each['status']}" for each in documents if each["status"] != "ready"]
        if system.store_was_damaged:
            ledger.note_damage({"FILES": sum(_is_file_lost(each) for each in documents)})
        names = Counter(each["name"] for each in documents)
        verdict.doubled = [f"{name} is listed {count} times" for name, count in names.items() if count > 1]
        give_up_at = time.monotonic() + _HEALED_AFTER_S
        for name, promise in ledger.promises.items():
            _look_up(http, collection_id, name, promise, verdict, give_up_at)
        give_up_at = time.monotonic() + _FORGOTTEN_AFTER_S
        # A run that is taken over behind a jump forward has used up its time, and says so.
        good = {"completed", "refused"} | ({"timeout"} if system.clock_was_set else set())
        for answer in ledger.answers:
            while (fault := _fault(http, answer, good)) and time.monotonic() < give_up_at:
                time.sleep(POLL_S)
            verdict.broken += [fault] if fault else []
    return verdict


def _is_file_lost(document: dict[str, Any]) -> bool:
    """Whether the document itself says that its file is damaged, which is found when it is read."""
    return document["status"] == "failed" and (document["error"] or {}).get("reason") == "FILE_LOST"


def _look_up(
    http: httpx.Client, collection_id: str, name: str, promise: Promise, verdict: Verdict, give_up_at: float
) -> None:
    found = _found(http, collection_id, promise)
    while None not in promise.may_hold and not found and time.monotonic() < give_up_at:
        time.sleep(POLL_S)  # an index may still be being filled
        found = _found(http, collection_id, promise)
    if not found and None not in promise.may_hold:
        verdict.lost.append(f"{name} was acknowledged and is not found")
    for word, count in found.items():
        if word not in promise.may_hold:
            verdict.stale.append(f"{name} is found by {word}, which was replaced or deleted")
        elif count > 1:
            verdict.doubled.append(f"{name} is found {count} times by {word}")
    if len(found) > 1:
        verdict.doubled.append(f"{name} is found in {len(found)} versions")


def _found(http: httpx.Client, collection_id: str, promise: Promise) -> dict[str, int]:
    """Words of the document that a search finds, and in how many documents."""
    counts = {word: len(documents_found_by(http, collection_id, word)) for word in promise.words}
    return {word: count for word, count in counts.items() if count}


def _fault(http: httpx.Client, answer: Answer, good: Set[str]) -> str | None:
    """What is wrong with an answer, if anything is."""
    numbers = [seq for seq, _ in answer.seen]
    if numbers != list(range(1, len(numbers) + 1)):
        return f"run {answer.run_id}: events came as {numbers}"
    try:
        run = _ended(http, answer)
        if run["forgotten_at"]:
            return None  # with a document that it quoted
        if run["status"] not in good:
            return f"run {answer.run_id} ended as {run['status']}: {run['error']}"
        replayed = [seq for seq, _, _ in events(http, "GET", f"/v1/runs/{answer.run_id}/events?after=0")]
    except httpx.HTTPStatusError as error:
        return f"run {answer.run_id} cannot be read: {error}"
    is_whole = answer.went_on_live or len(replayed) >= len(numbers)
    if replayed != list(range(1, len(replayed) + 1)) or not is_whole:
        return f"run {answer.run_id}: {len(numbers)} events came, and a replay gives {replayed}"
    return None


def _ended(http: httpx.Client, answer: Answer) -> dict[str, Any]:
    """The run, once it has ended; one that was cancelled for a deleted document, once it is forgotten too."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while True:
        run: dict[str, Any] = answered(http, "GET", f"/v1/runs/{answer.run_id}")
        is_settled = run["forgotten_at"] or run["status"] not in ("running", "waiting", "cancelled")
        if is_settled or time.monotonic() > deadline:
            return run
        time.sleep(POLL_S)
