"""The passages of a run under the numbers that its answer cites: 1, 2, 3 … in the order in which they were found, each chunk
once."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kit.stores.forgetting import Source
from services.orchestrator.log.events import EffectClass, Evidence
from services.orchestrator.runs.forgetting import documents_of
from services.orchestrator.steps.effects import Call, Fate, ToolOutcome
from services.orchestrator.toolloop.task import Note


class EvidenceBook:
    """Numbers passages. The process that continues a run fills it anew from the recorded outcomes, with the same numbers."""

    def __init__(self, earlier: Sequence[Evidence] = ()) -> None:
        self._by_chunk: dict[str, Evidence] = {}
        for source in earlier:
            self.add(source)

    def add(self, source: Evidence) -> tuple[Evidence, bool]:
        """The passage with its number, and whether it says something new. Of two texts of one chunk the longer stands."""
        key = source.chunk_id or f"{source.document_id}:{source.char_start}"
        known = self._by_chunk.get(key)
        if known is not None and len(source.text) <= len(known.text):
            return known, False
        numbered = replace(source, number=known.number if known else len(self._by_chunk) + 1)
        self._by_chunk[key] = numbered
        return numbered, True

    @property
    def all(self) -> Sequence[Evidence]:
        return tuple(self._by_chunk.values())

    @property
    def numbers(self) -> Collection[int]:
        return range(1, len(self._by_chunk) + 1)


@dataclass(frozen=True)
class NotedCall:
    """A call: what its result quotes is noted before anything of it is written to the log, without what was forgotten."""

    call: Call
    note: Note

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def arguments(self) -> Any:
        return self.call.arguments

    @property
    def effect(self) -> EffectClass:
        return self.call.effect

    async def run(self, call_id: str) -> ToolOutcome:
        return await self._noted(await self.call.run(call_id))

    async def find(self, call_id: str) -> ToolOutcome | Fate:
        found = await self.call.find(call_id)
        return await self._noted(found) if isinstance(found, ToolOutcome) else found

    async def _noted(self, outcome: ToolOutcome) -> ToolOutcome:
        sources = [*documents_of(outcome.evidence), *outcome.quotes]
        if not sources:
            return outcome
        outcome = replace(outcome, quotes=())
        forgotten = await self.note(list(dict.fromkeys(sources)))
        if not forgotten:
            return outcome
        kept = tuple(each for each in outcome.evidence if Source.document(each.document_id) not in forgotten)
        # The content may quote what is forgotten in any form: the passages that are left say what may be said.
        said = f"{len(kept)} passages found." if outcome.evidence else "What was found has been deleted meanwhile."
        return replace(outcome, evidence=kept, content=None, summary=said)
