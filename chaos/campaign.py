"""A campaign: clients at work, one fault after the other, and the verdict."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from chaos.clients import Asker, Client, Writer
from chaos.faults import ALL_FAULTS, WEIGHTS
from chaos.ledger import Ledger
from chaos.system import ChaosSystem
from chaos.verdict import Verdict, judge

COLLECTION_ID = "chaos"
_READY_TIMEOUT_S = 180.0
_POLL_S = 0.1


@dataclass(frozen=True)
class Plan:
    """What is going to happen: the same seed chooses the same faults, documents and pauses."""

    seed: int
    rounds: int
    faults: tuple[str, ...] = tuple(ALL_FAULTS)
    writers: int = 3
    askers: int = 2
    calm_s: float = 2.0
    """Longest time between two faults, in seconds."""
    pause_s: float = 0.2
    """Longest time between two writes of a writer. A short one builds up a queue that a busy machine works on for long."""


class Campaign:
    """Carries out a plan on a system that has not been started."""

    def __init__(self, system: ChaosSystem, plan: Plan, *, say: Callable[[str], None]) -> None:
        self._system = system
        self._plan = plan
        self._say = say
        self._rng = random.Random(plan.seed)

    def run(self) -> Verdict:
        self._system.start()
        httpx.post(f"{self._system.url}/v1/collections", json={"id": COLLECTION_ID}, timeout=30.0).raise_for_status()
        ledger, done, left_out = Ledger(), list[str](), Counter[str]()
        clients = self._clients(ledger)
        for client in clients:
            client.start()
        try:
            for number in range(self._plan.rounds):
                time.sleep(self._rng.uniform(0.0, self._plan.calm_s))
                self._fault(number, done, left_out)
                self._until_ready()
                ledger.note_damage(self._system.named_damage())
        finally:
            for client in clients:
                client.stop()
        self._say(f"looking up {len(ledger.promises)} documents and {len(ledger.answers)} answers")
        verdict = judge(self._system, COLLECTION_ID, ledger)
        verdict.excuse(ledger.named)
        verdict.done, verdict.left_out = done, left_out
        self._system.stop()
        return verdict

    def _clients(self, ledger: Ledger) -> list[Client]:
        plan, url = self._plan, self._system.url
        return [
            *(Writer(url, COLLECTION_ID, n, plan.seed, ledger, plan.pause_s) for n in range(plan.writers)),
            *(Asker(url, COLLECTION_ID, plan.writers + n, plan.seed, ledger) for n in range(plan.askers)),
        ]

    def _fault(self, number: int, done: list[str], left_out: Counter[str]) -> None:
        kind = self._rng.choices(self._plan.faults, [WEIGHTS[name] for name in self._plan.faults])[0]
        what = ALL_FAULTS[kind](self._system, self._rng)
        if what:
            done.append(what)
            self._say(f"{number + 1}/{self._plan.rounds} {what}")
        else:
            left_out[kind] += 1

    def _until_ready(self) -> None:
        """A fault meets a system that has mended the one before. Raises TimeoutError."""
        give_up_at = time.monotonic() + _READY_TIMEOUT_S
        while not self._system.is_ready():
            if time.monotonic() > give_up_at:
                raise TimeoutError(
                    f"the system was not ready again within {_READY_TIMEOUT_S:.0f} s; it said:\n"
                    + self._system.terminal.read_text("utf-8", "replace")[-3000:]
                )
            time.sleep(_POLL_S)
