"""Which agent the rules choose for messages whose agent is known, without a model and without a running system."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.tables import Table
from services.orchestrator.models import Turn
from services.orchestrator.modes.agents import discover_agents
from services.orchestrator.modes.routing import RuleRouter

MESSAGES = Path(__file__).parent.parent / "data" / "agents" / "routing.json"


@dataclass(frozen=True)
class Routed:
    """A message, the agent that it calls for, and the agent that was chosen."""

    message: str
    language: str
    agent: str
    chosen: str

    @property
    def is_right(self) -> bool:
        return self.agent == self.chosen


def route_all(path: Path = MESSAGES) -> Sequence[Routed]:
    """Each message with what its user had asked before it on the thread."""
    rules = RuleRouter(discover_agents())
    return [
        Routed(each["message"], each["language"], each["agent"], rules.choose(each["message"], history).name)
        for each in json.loads(path.read_text())
        for history in [list(_turns(each["before"]))]
    ]


def _turns(asked: Sequence[str]) -> Iterator[Turn]:
    for text in asked:
        yield Turn("user", text)
        yield Turn("assistant", "…")


def render_routed(routed: Sequence[Routed], *, with_wrong: bool = False) -> str:
    """The share of right choices: of all messages, by agent, and by language."""
    groups = [(name, each) for each in routed for name in ("all", each.agent, each.language)]
    count = Counter(name for name, _ in groups)
    right = Counter(name for name, each in groups if each.is_right)
    rows = [(name, str(count[name]), str(right[name]), f"{right[name] / count[name]:.3f}") for name in count]
    wrong = [f"{each.agent}, not {each.chosen}: {each.message}" for each in routed if not each.is_right]
    return "\n".join(
        [Table(("messages", "count", "right agent", "share"), rows).render(), *(wrong if with_wrong else ()), ""]
    )
