"""What an agent that works in its own way is given: its run, and the hands that it works with. It reads as a plain program: what it
does under a key is done once, in whichever process."""

import hashlib
import json
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from cachetools import TTLCache

from kit.errors import GroundworkError
from services.orchestrator.agent import Agent, Searching
from services.orchestrator.answering.blocks import fill_in, write_text
from services.orchestrator.answering.draft import Draft
from services.orchestrator.answering.drafting import Drafter, Question, degraded, restarted
from services.orchestrator.answering.generation import Listener
from services.orchestrator.artefacts.kinds import problem_with
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import Answer, Artefact, Evidence, Plan, Retrieval, Thinking
from services.orchestrator.models import ReadableDocument, RunRecord, SearchQuery, Turn
from services.orchestrator.modes.drafts import answer_of, checked
from services.orchestrator.modes.threads import forgotten_documents
from services.orchestrator.naming import described, may_name, most_found, named_in
from services.orchestrator.ports import Library, RunSources, Searcher, SentenceScorer
from services.orchestrator.prompts import rules
from services.orchestrator.steps.run import Run, resolved
from services.orchestrator.verification.checks import Checks
from services.orchestrator.without_model.followups import search_queries, stand_alone

_USUAL_TOP_K = 8
_KEPT_CHARS, _KEPT_FOR_S = 8_000_000, 3600
"""Of texts that models have written, in each process."""
_NAMED = 5
"""Documents that an event lists by name."""
MOST_DOCUMENTS = 500
"""That one run reads whole."""
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Hands:
    """What the work of agents is done with; the same for all runs."""

    searcher: Searcher
    sources: RunSources
    drafter: Drafter
    scorer: SentenceScorer
    checks: Checks
    library: Library
    kept: MutableMapping[str, str] = field(default_factory=lambda: TTLCache(_KEPT_CHARS, _KEPT_FOR_S, getsizeof=len))
    """Texts that a model has written, by what it was asked: the same request over the same revisions asks it once an hour. Not
    those of models that users bring."""


@dataclass(frozen=True)
class _Listed:
    """The documents that a run works on."""

    documents: Sequence[ReadableDocument]

    def event(self) -> Thinking:
        count = len(self.documents)
        return Thinking("work", f"Reading {count} document{'s' if count != 1 else ''} whole.")


@dataclass(frozen=True)
class _ResolvedDocuments:
    """The documents of many that the message names."""

    documents: Sequence[ReadableDocument]

    def event(self) -> Thinking:
        names = ", ".join(each.name for each in self.documents[:_NAMED])
        return Thinking("work", f"Reading {names} alone." if names else "Reading all documents.")


def _tell_read(found: Retrieval) -> Thinking:
    names = list(dict.fromkeys(each.document_name for each in found.evidence))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return Thinking(
        "work", f"Reading {len(found.evidence)} passages of {', '.join(names[:_NAMED]) or 'nothing'}{more}."
    )


def _evenly(items: Sequence[_Item], most: int) -> Sequence[_Item]:
    """At most so many, spread over all of them in their order."""
    if len(items) <= most:
        return items
    return [items[at * len(items) // most] for at in range(most)]


@dataclass(frozen=True)
class Work:
    """The work of an agent on one message."""

    run: Run
    """Steps that are done once (`once`), visible events (`say`), budgets."""

    record: RunRecord
    agent: Agent
    history: Sequence[Turn]
    """What was said before on the thread, oldest first."""

    hands: Hands

    @property
    def message(self) -> str:
        """The user's words."""
        return self.record.request.question

    @property
    def scorer(self) -> SentenceScorer:
        """Says how near texts are in meaning."""
        return self.hands.scorer

    @property
    def has_model(self) -> bool:
        """Whether a language model may be asked now: there is one, and the run's budgets allow it."""
        if not self.hands.drafter.model_name:
            return False
        try:
            self.run.budgets.require_time()
            self.run.budgets.require_model()
        except BudgetSpent:
            return False
        return True

    async def tell(self, text: str) -> None:
        """Says how far the work has come."""
        await self.run.say(Thinking("work", text))

    async def search(
        self, queries: Sequence[str] = (), *, searching: Searching | None = None, key: str = "retrieve"
    ) -> Retrieval:
        """The passages for these searches, for the message where there are none; found once. Raises Unavailable."""
        searching = searching or self.agent.searching
        asked = list(queries) or search_queries(self.message, self.history)
        plan = await self.run.once(f"{key}/plan", partial(resolved, Plan(searching.strategy or "hybrid", asked)), Plan)
        return await self.run.once(key, partial(self._found, plan.queries, searching), Retrieval)

    async def passages(self, topic: str = "", *, has_topic: bool = True) -> Retrieval:
        """The passages about the topic, about the message where none is given. Without a topic, and where nothing is found of it:
        passages of the documents themselves, evenly from each, in reading order. Raises Unavailable."""
        found = await self.search([topic] if topic else ()) if has_topic else Retrieval(())
        if found.evidence:
            return found
        documents = await self.documents()
        return await self.run.once("read", partial(self._read_evenly, documents), Retrieval, show=_tell_read)

    async def _read_evenly(self, documents: Sequence[ReadableDocument]) -> Retrieval:
        most = self.record.request.top_k or self.agent.searching.top_k or _USUAL_TOP_K
        chosen = _evenly(documents, most)
        each_has = most // len(chosen) if chosen else 0
        found = [hit for each in chosen for hit in _evenly(await self.read(each.document_id), each_has)]
        return Retrieval(tuple(replace(hit, number=number) for number, hit in enumerate(found, start=1)))

    async def _found(self, queries: Sequence[str], searching: Searching) -> Retrieval:
        request = self.record.request
        named = await self._named() if may_name(self.message) and not request.document_ids else ()
        query = SearchQuery(
            queries,
            request.collection_ids,
            request.document_ids or [each.document_id for each in named],
            request.top_k or searching.top_k or _USUAL_TOP_K,
            searching.strategy,
            searching.metadata,
            weights=searching.weights,
        )
        found = await self.hands.searcher.search(query)
        return replace(found, evidence=await self.allowed(found.evidence))

    async def allowed(self, evidence: Sequence[Evidence]) -> Sequence[Evidence]:
        """The passages that may be written into the run's log, numbered anew: without those of documents that were deleted
        meanwhile. Ask before any of their text is recorded or shown."""
        forgotten = await forgotten_documents(self.run, self.record, self.hands.sources, evidence)
        kept = [hit for hit in evidence if hit.document_id not in forgotten]
        return tuple(replace(hit, number=number) for number, hit in enumerate(kept, start=1))

    async def documents(self, most: int = MOST_DOCUMENTS) -> Sequence[ReadableDocument]:
        """The documents that the message is about: those of the request, or those that its words name ("handbook.pdf", "the article
        on ducks"), or all of its collections. Raises Unavailable."""
        request = self.record.request

        async def listed() -> _Listed:
            return _Listed(await self.hands.library.documents(request.collection_ids, request.document_ids, most))

        shown = await self.run.once("documents", listed, _Listed, show=_Listed.event)
        named, about = named_in(self.message, shown.documents), described(self.message)
        if request.document_ids or len(shown.documents) < 2 or not (named or about):
            return shown.documents
        chosen = await self.run.once(
            "meant",
            partial(self._resolve_documents, shown.documents, named, about),
            _ResolvedDocuments,
            show=_ResolvedDocuments.event,
        )
        return chosen.documents or shown.documents

    async def _named(self) -> Sequence[ReadableDocument]:
        """The documents whose names stand in the message."""
        documents = await self.hands.library.documents(self.record.request.collection_ids, (), MOST_DOCUMENTS)
        return named_in(self.message, documents)

    async def _resolve_documents(
        self, documents: Sequence[ReadableDocument], named: Sequence[ReadableDocument], about: str
    ) -> _ResolvedDocuments:
        """Those that are named, or the one that is about this; none where no document stands out."""
        if named:
            return _ResolvedDocuments(named)
        request = self.record.request
        query = SearchQuery([about], request.collection_ids, (), _USUAL_TOP_K)
        found = most_found((await self.hands.searcher.search(query)).evidence, about)
        return _ResolvedDocuments([each for each in documents if each.document_id == found])

    async def read(self, document_id: str) -> Sequence[Evidence]:
        """All chunks of a document in reading order; none of one that was deleted. Raises Unavailable."""
        return await self.allowed(await self.hands.library.chunks(document_id))

    async def write(self, evidence: Sequence[Evidence], *, prompt: str, max_tokens: int) -> str:
        """A text that the model writes from the passages, with their numbers as marks: those of other passages are left out. Call
        it in a step. Raises ModelUnavailable, ModelRejected."""
        generator = self.hands.drafter.generator
        assert generator is not None, "ask has_model first"
        asked = self._fingerprint(evidence, prompt, max_tokens)
        if self.record.request.model_credentials is None and (kept := self.hands.kept.get(asked)) is not None:
            return kept
        text = await write_text(
            generator,
            self.message,
            evidence,
            system=rules.with_prompt(rules.SUMMARISE, prompt),
            max_tokens=self.run.budgets.affordable_tokens(max_tokens),
            listener=Listener(restarted=lambda restart: self.run.say(restarted(restart))),
        )
        if self.record.request.model_credentials is None:
            self.hands.kept[asked] = text
        return text

    def _fingerprint(self, evidence: Sequence[Evidence], prompt: str, max_tokens: int) -> str:
        """Digest of what a model is asked: chunks have other ids in each revision. What one tenant or model says is no other's."""
        read = [(each.number, each.chunk_id, each.text) for each in evidence]
        asked = [
            self.record.key.tenant_id,
            self.hands.drafter.model_name,
            self.message,
            prompt,
            max_tokens,
            read,
        ]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()

    async def fill_in(
        self, schema: Mapping[str, Any], evidence: Sequence[Evidence], *, prompt: str = "", max_tokens: int = 0
    ) -> Mapping[str, Any]:
        """An object that the model fills in from the passages, by grammar where its server has one; what does not follow the
        schema is sent back once with what is wrong with it. Call it in a step. Raises NoBlock, ModelUnavailable, ModelRejected."""
        generator = self.hands.drafter.generator
        assert generator is not None, "ask has_model first"
        return await fill_in(
            generator,
            schema,
            self.message,
            self.history,
            evidence,
            system=rules.with_prompt(rules.BLOCK, prompt or self.agent.prompt),
            max_tokens=self.run.budgets.affordable_tokens(max_tokens or self.run.budgets.budgets.answer_tokens),
            listener=Listener(restarted=lambda restart: self.run.say(restarted(restart))),
        )

    async def publish(self, artefact: Artefact, *, key: str = "") -> None:
        """Shows an artefact, once: it is streamed, and stands in the answer and in the thread. One of the same id replaces it; give
        each its own `key` then. Raises ValueError for one that does not follow the schema of its kind."""
        if wrong := problem_with(artefact, self.agent.artefacts):
            raise ValueError(f"artefact {artefact.artefact_id}: {wrong}")
        step = f"artefact/{key or artefact.artefact_id}"
        await self.run.once(step, partial(resolved, artefact), Artefact, of_steps=True)

    async def answer(self, text: str, evidence: Sequence[Evidence], *, method: str, key: str = "draft") -> Answer:
        """The text as the run's answer: each sentence is checked against the passages that it cites by `[1]`. `method` is MODEL or
        EXTRACTIVE."""
        drafter = self.hands.drafter if self.has_model else self.hands.drafter.without_model()
        question = Question(
            self.message,
            self.history,
            evidence,
            self.run.budgets.budgets.answer_tokens,
            stands_alone=stand_alone(self.message, self.history),
            check=self.hands.checks.of(self.run, self.record, evidence),
        )
        draft = await self.run.once(
            key, partial(drafter.judge, text, question, self.run.journal), Draft, show=checked, is_last_resort=True
        )
        return replace(answer_of(draft, evidence), method=method)

    async def degrade(self, part: str, error: GroundworkError, text: str) -> None:
        """Says what is done in a lesser way, and why."""
        await self.run.say(degraded("work", part, error, text))
