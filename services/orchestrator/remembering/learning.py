"""Learns from turns, off the path of answers.

A model reads what a person said of themself and compares it with the nearest facts, in one call by a schema. Without a model, and
when it fails, the memory service reads by rules.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import structlog

from kit.errors import GroundworkError
from kit.llm import ChatMessage, LanguageModel, ModelUnavailable, Operation, Request
from kit.llm.completions import complete_text
from services.orchestrator.prompts import rules
from services.orchestrator.remembering.models import FactChange, KnownFact, LearntTurn
from services.orchestrator.remembering.ports import Facts
from services.orchestrator.without_model.intents import Route, read_intent

_log = structlog.get_logger()
_NEAREST = 8
_TEXT_CHARACTERS = 4_000
_FACTS_TOKENS, _SUMMARY_TOKENS = 600, 350
_REPLY_CHARACTERS_MAX = 20_000
_KINDS = ("profile", "preference", "plan", "relation", "instruction")
_CHANGES = ("add", "update", "supersede", "nothing")
_CHANGE = {
    "type": "object",
    "properties": {
        "said": {"type": "string"},
        "text": {"type": "string"},
        "kind": {"type": "string", "enum": list(_KINDS)},
        "change": {"type": "string", "enum": list(_CHANGES)},
        "fact": {"type": "integer"},
        "until": {"type": "string"},
    },
    "required": ["said", "text", "kind", "change", "fact", "until"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": _CHANGE, "maxItems": 8}},
    "required": ["facts"],
    "additionalProperties": False,
}


class FactsMissing(ModelUnavailable):
    """The model that reads facts has not said anything that can be read."""

    reason = "LLM_FACTS_MISSING"


class Learning:
    """Learns from turns in the name of who said them."""

    def __init__(self, facts: Facts, model: LanguageModel) -> None:
        self._facts = facts
        self._model = model

    async def learn(self, turn: LearntTurn) -> None:
        """Learns from the turn, once however often it is called. Raises Unavailable when the memory service does not answer."""
        changes = await self._read(turn)
        learnt = await self._facts.learn(turn, changes)
        if not (learnt.summary_is_due and learnt.known and turn.by_model and self._has(Operation.SUMMARISE)):
            return
        try:
            summary = await self._complete(Operation.SUMMARISE, rules.SUMMARY, _listed(learnt.known), _SUMMARY_TOKENS)
        except GroundworkError as error:  # the newest facts are listed instead, and the next turn tries again
            _log.warning("summary_not_written", reason=error.reason)
            return
        if summary.strip():
            await self._facts.keep_summary(summary.strip(), learnt.known_version)

    async def _read(self, turn: LearntTurn) -> Sequence[FactChange] | None:
        """What a model reads out of the turn; None where none does."""
        if not (turn.by_model and self._has(Operation.FACTS)):
            return None
        if read_intent(turn.text).route in (Route.TALK, Route.MATH, Route.TIME):
            return ()
        if not await self._facts.may_learn():  # then no model reads the message
            return ()
        known = await self._facts.nearest(turn.text[:_TEXT_CHARACTERS], _NEAREST)
        asked = (
            f"Today is {turn.at.date().isoformat()}.\n\nKnown facts:\n{_listed(known) or '(none)'}\n\n"
            f"Message of the user:\n{turn.text[:_TEXT_CHARACTERS]}"
        )
        try:
            return read_changes(await self._complete(Operation.FACTS, rules.FACTS, asked, _FACTS_TOKENS, SCHEMA), known)
        except GroundworkError as error:
            _log.warning("facts_read_by_rules", reason=error.reason)
            return None

    def _has(self, operation: Operation) -> bool:
        return bool(self._model.info(operation).model)

    async def _complete(
        self, operation: Operation, system: str, asked: str, tokens: int, schema: Mapping[str, Any] | None = None
    ) -> str:
        messages = [ChatMessage("system", system), ChatMessage("user", asked)]
        room = tokens + self._model.info(operation).reasoning_tokens
        request = Request(messages, room, operation=operation, schema=schema)
        return await complete_text(self._model, request, max_characters=_REPLY_CHARACTERS_MAX)


def read_changes(text: str, known: Sequence[KnownFact]) -> list[FactChange]:
    """The changes that a model has written. Raises FactsMissing for what is no such object."""
    try:
        items = json.loads(text[text.index("{") : text.rindex("}") + 1])["facts"]
        changes = [_change(item, known) for item in items]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FactsMissing("the model that reads facts has not followed its schema") from error
    return [change for change in changes if change is not None]


def _change(item: Mapping[str, Any], known: Sequence[KnownFact]) -> FactChange | None:
    change, text, said = item["change"], str(item["text"]).strip(), str(item["said"]).strip()
    if change not in _CHANGES or change == "nothing" or not text or not said:
        return None
    number = int(item.get("fact") or 0)
    replaced = known[number - 1].fact_id if 0 < number <= len(known) else ""
    kind = item["kind"] if item["kind"] in _KINDS else "profile"
    return FactChange(change if replaced else "add", text, kind, said, replaced, _day(item.get("until")))


def _day(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _listed(known: Sequence[KnownFact]) -> str:
    return "\n".join(f"{number}. ({fact.kind}) {fact.text}" for number, fact in enumerate(known, start=1))
