"""Claims about what the assistant has done ("I have sent it", "the note is kept"): they are compared with the effects of the run,
never with documents. The words are in actions.json, by language and kind of action."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from services.orchestrator.log.events import EffectClass, ToolCall, ToolResult
from services.orchestrator.log.state import Progress
from services.orchestrator.steps.effects import IN_DOUBT
from services.orchestrator.verification.verdicts import Verdict

WORDS_FILE = Path(__file__).with_name("actions.json")
ANY = ""
"""The kind of an action that is not named."""
_LONGEST_PASSIVE_WORDS = 12
"""A longer sentence that says that something was sent or kept tells of more than the assistant."""


@dataclass(frozen=True)
class Effect:
    """A call that changed something outside of the run, or may have."""

    tool: str
    is_certain: bool = True
    """False: nobody knows whether it took effect."""

    @property
    def kind(self) -> str:
        """Of the words that the tool's name is made of; ANY where they say nothing."""
        words = set(re.split(r"[^a-z]+", self.tool.lower()))
        return next((kind for kind, names in _data()["tools"].items() if words & set(names)), ANY)


def effects_of(progress: Progress) -> Sequence[Effect]:
    """What the run has done so far."""
    found = []
    for step, intent in progress.intents.items():
        result = progress.results.get(step)
        if intent.state.effect is EffectClass.NONE or result is None or not isinstance(intent.payload, ToolCall):
            continue
        if isinstance(result.payload, ToolResult) and (result.payload.ok or result.payload.error_reason == IN_DOUBT):
            found.append(Effect(intent.payload.name, is_certain=result.payload.ok))
    return found


def happened(kind: str, effects: Sequence[Effect]) -> Verdict:
    """Whether the run has an effect of that kind. A tool whose name says nothing may have had any."""
    fitting = [each for each in effects if kind in (ANY, each.kind) or each.kind == ANY]
    if any(each.is_certain for each in fitting):
        return Verdict.SUPPORTED
    return Verdict.NOT_FOUND if fitting else Verdict.CONTRADICTED


@dataclass(frozen=True)
class ClaimedAction:
    """What the assistant says it has done."""

    kind: str
    is_certain: bool
    """False: the sentence may as well tell of what a document says. Then it is an action only if no document carries it."""
    is_of_document: bool = False
    """Whether it cites a document and speaks of a thing alone ("The shop is closed on Sundays. [1]"): then it is an action only if
    the run has an effect of that kind."""


def claimed_action(sentence: str, *, is_cited: bool) -> ClaimedAction | None:
    """What the sentence says that the assistant has done; None where it says no such thing."""
    is_short = len(sentence.split()) <= _LONGEST_PASSIVE_WORDS
    for kind, own, passive in _patterns():
        if own.match(sentence):
            return ClaimedAction(kind, is_certain=not is_cited)
        if is_short and passive.match(sentence):
            return ClaimedAction(kind, is_certain=False, is_of_document=is_cited and not _done().match(sentence))
    return ClaimedAction(ANY, is_certain=False) if _done().match(sentence) else None


@cache
def _data() -> Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]:
    read: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]] = json.loads(WORDS_FILE.read_text("utf-8"))
    return read


@cache
def _done() -> re.Pattern[str]:
    """An announcement that all is done: "Done.", "Erledigt: …"."""
    words = "|".join(word for own in _data()["languages"].values() for word in own["done"])
    return re.compile(rf"\W*(?:{words})(?:\s*[:,.!。！—–-]|\s*$)", re.IGNORECASE)


@cache
def _patterns() -> Sequence[tuple[str, re.Pattern[str], re.Pattern[str]]]:
    """Of each language and kind of action: who speaks of themselves, and of what was done to a thing."""
    opening = _done().pattern
    found = []
    for own in _data()["languages"].values():
        for kind in _data()["tools"]:
            verbs = "|".join(own[kind])
            subject, thing = "|".join(own["i"]), "|".join(own["thing"])
            begins = rf"(?:{opening})?\W*"
            active = re.compile(rf"{begins}(?:{subject})(?:{verbs})", re.IGNORECASE)
            passive = re.compile(rf"{begins}(?:{thing})(?:{verbs})", re.IGNORECASE)
            found.append((kind, active, passive))
    return found
