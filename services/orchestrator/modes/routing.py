"""Chooses the agent that answers a message: the one that is named; else a model with one word; else rules."""

import asyncio
import re
from collections.abc import Sequence

from kit.errors import GroundworkError
from kit.language.terms import tokens
from kit.llm import ChatMessage, LanguageModel, Operation, Request
from kit.llm.completions import complete_text
from services.orchestrator.answering.citations import without_marks
from services.orchestrator.log.events import AgentChosen
from services.orchestrator.models import RunRequest, Turn
from services.orchestrator.modes.agents import AUTO, Agents
from services.orchestrator.prompts import rules

EXPLICIT, MODEL, RULES, DEFAULT = "explicit", "model", "classified", "default"
MOST_TOKENS = 10
_MODEL_TIMEOUT_S = 6.0
_TURNS = 6
_TURN_CHARS = 300
_LEAST_WORDS_IN_COMMON = 2
"""One word that a message shares with a description says little: "risk" also stands in questions about facts."""
_MOST_FOLLOW_UP_WORDS = 9
_POLITE = r"ok(?:ay)?|and|now|please|yes|sure|great|thanks?|thank you|und|bitte|ja|et|oui|y|sí|por favor"
_ASKING = (
    r"(?:can|could|would) (?:you|i|we) (?:please )?"
    r"|(?:give|make|show|get|do|ask|write|draw|create|generate|try|i want|i'd like)\b(?: (?:me|us))? ?"
    r"|(?:how|what) about |gib mir |mach |noch |encore |donne-moi |dame |haz "
)
_COUNTS = r"another|one|some|two|three|four|five|ten|\d+|a few|the same|that|it|this|them"
_ANEW = (
    r"more|again|once more|another(?: one)?|one more|next(?: one)?|continue|go on|the same|same(?: again)?|redo|repeat|retry"
    r"|shorter|longer|simpler|harder|easier|bigger|smaller|differently|more detail(?:ed|s)?|in more detail"
    r"|eins|einmal|weiter|mehr|kürzer|länger|schwieriger|leichter|nochmal|noch mal"
    r"|ещ[её](?: раз| один\w*| одна)?|снова|дальше|короче|подробнее|сложнее|проще|עוד|שוב|קצר|ארוך|קשה|פשוט"
    r"|une autre|une fois|plus court|otra vez|otro|otra|más"
)
_FOLLOW_UP = re.compile(rf"\W*(?:(?:{_POLITE})\b\W*)*(?:{_ASKING})*(?:(?:{_COUNTS})\b ?)*(?:{_ANEW})\b", re.IGNORECASE)
_ASKS_A_FACT = re.compile(
    r"\W*(who|when|where|why|which|how(?! about)|is there|what (does|is the|did|was)"
    r"|wer|wann|wo|warum|welche[rs]?|wie|кто|когда|где|почему|какой|какая|какие|сколько|מי|מתי|איפה|למה|איזה)\b",
    re.IGNORECASE,
)
"""How a question begins that may speak of the charts, tables and quizzes of the documents, and wants none made."""


class RuleRouter:
    """Chooses by the patterns of agents, and by the words that a message shares with their descriptions. A follow-up ("one more",
    "again") goes to the agent that the message before it called for."""

    def __init__(self, agents: Agents) -> None:
        self._default = agents.default.name
        self._patterns = {
            agent.name: [re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in agent.called_for_by]
            for agent in agents.all
        }
        words = {agent.name: _stems(f"{agent.name.replace('_', ' ')} {agent.description}") for agent in agents.all}
        common = words.pop(self._default)
        self._words = {name: own - common for name, own in words.items()}

    def choose(self, message: str, history: Sequence[Turn]) -> AgentChosen:
        """The choice; the default where nothing speaks for another."""
        asked = [turn.text for turn in history if turn.role == "user"]
        for text in (message, *reversed(asked)):
            if (name := self._called_for(text)) is not None:
                return AgentChosen(name, RULES) if name != self._default else AgentChosen(name, DEFAULT)
            if not is_follow_up(text):
                break
        return AgentChosen(self._default, DEFAULT)

    def _called_for(self, text: str) -> str | None:
        """The agent whose pattern stands first in the text, else the one that shares most words with it."""
        if _ASKS_A_FACT.match(text):
            return self._shares_words_with(text)
        places = {
            name: min(found.start() for found in matches)
            for name, patterns in self._patterns.items()
            if (matches := [match for pattern in patterns if (match := pattern.search(text)) is not None])
        }
        if places:
            return min(places, key=lambda name: places[name])
        return self._shares_words_with(text)

    def _shares_words_with(self, text: str) -> str | None:
        stems = set() if is_follow_up(text) else _stems(text)
        shared = {name: len(stems & own) for name, own in self._words.items()}
        best = max(shared, key=lambda name: shared[name], default="")
        return best if best and shared[best] >= _LEAST_WORDS_IN_COMMON else None


def is_follow_up(text: str) -> bool:
    """Whether the message says nothing but that the last thing is wanted once more, or in another way."""
    return len(text.split()) <= _MOST_FOLLOW_UP_WORDS and _FOLLOW_UP.match(text) is not None


class Router:
    """Chooses the agent for a message."""

    def __init__(self, agents: Agents, model: LanguageModel) -> None:
        self._agents = agents
        self._model = model
        self._rules = RuleRouter(agents)

    async def choose(self, request: RunRequest, history: Sequence[Turn], *, may_ask: bool) -> AgentChosen:
        """The choice, with how it was made: `explicit`, `model`, `classified` or `default`."""
        if request.agent not in ("", AUTO):
            return AgentChosen(request.agent, EXPLICIT)
        can_ask = may_ask and len(self._agents.all) > 1 and bool(self._model.info(Operation.PLAN).model)
        if can_ask and (name := await self._by_model(request.question, history)) is not None:
            return AgentChosen(name, MODEL)
        return self._rules.choose(request.question, history)

    async def _by_model(self, message: str, history: Sequence[Turn]) -> str | None:
        """The agent that the model names; None where it fails, takes too long, or names none."""
        agents = "\n".join(f"{agent.name}: {agent.description}" for agent in self._agents.all)
        turns = "\n".join(
            f"{turn.role}: {' '.join(without_marks(turn.text).split())[:_TURN_CHARS]}" for turn in history[-_TURNS:]
        )
        asked = f"Conversation so far:\n{turns or '(none)'}\n\nMessage: {message}\n\nAgent:"
        messages = [ChatMessage("system", rules.route(agents)), ChatMessage("user", asked)]
        request = Request(messages, MOST_TOKENS, operation=Operation.PLAN, temperature=0.0)
        try:
            async with asyncio.timeout(_MODEL_TIMEOUT_S):
                said = await complete_text(self._model, request)
        except (GroundworkError, TimeoutError):
            return None
        named = [word for word in re.findall(r"[a-z][a-z0-9_]*", said.lower()) if self._agents.get(word)]
        return named[0] if named else None


def _stems(text: str) -> set[str]:
    return {token.stem for token in tokens(text) if not token.is_stopword}
