"""The tools of a run: which it may use, and which of them its model is shown. Schemas are part of the prompt, and those of twenty
tools fill the context of a small model: see toolloop/tool_choice.py."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kit.errors import GroundworkError
from kit.llm import LanguageModel
from kit.vocabulary.memory_modes import AGENTIC, OFF
from services.orchestrator.answering.drafting import degraded
from services.orchestrator.log.events import Degradation, Thinking
from services.orchestrator.models import RunRequest, Tool, Turn
from services.orchestrator.ports import SentenceScorer, Tools
from services.orchestrator.steps.run import Run
from services.orchestrator.toolloop.tool_choice import describe, rank_tools, tools_called_for, tools_left_out

_MEMORY_SEARCH = "memory_search"
"""The tool by which a model looks up what is remembered: shown where the request leaves that to it."""


@dataclass(frozen=True)
class Toolbox:
    """The tools of a run, as they were when it began."""

    offered: Sequence[Tool] = ()
    """Those that the run may use. Those that are left out have no schema."""

    withheld: Sequence[str] = ()
    """Names of tools that the tenant has and this run may not use."""

    left_out: Sequence[str] = ()
    """Names of tools that the run may use and that its model is not shown, since they do not fit."""

    ranking: Sequence[str] = ()
    """Names of the tools that the model is shown, best first."""

    needed: Sequence[str] = ()
    """Names of the tools that the message calls for, or that the request names."""

    by_words: bool = False
    """Whether the tools were chosen by words alone, since the model server did not answer."""

    @property
    def shown(self) -> Sequence[Tool]:
        """What its model is shown, by name: prompts that begin alike are read faster."""
        return [tool for tool in self.offered if tool.name not in self.left_out]

    def event(self) -> Thinking:
        """Tells of it."""
        names = ", ".join(tool.name for tool in self.shown)
        text = f"Tools: {names}." if names else "No tools."
        if self.left_out:
            text += f" Not shown to the model, whose context has no room: {', '.join(self.left_out)}."
        return Thinking("tools", text, self._degradation())

    def _degradation(self) -> Degradation | None:
        if missing := [name for name in self.needed if name in self.left_out]:
            names = ", ".join(missing)
            message = (
                f"The model's context has no room for {names}. Name fewer tools, or use a model with a larger context."
            )
            return Degradation("tools", "CONTEXT_TOO_SMALL", message)
        if self.by_words:
            message = "The model server does not answer: the tools that fit were chosen by words alone."
            return Degradation("tools", "CHOSEN_BY_WORDS", message)
        return None


class Toolboxes:
    """Puts the tools of runs together."""

    def __init__(self, tools: Tools, model: LanguageModel, scorer: SentenceScorer) -> None:
        self._tools = tools
        self._model = model
        self._scorer = scorer

    async def listed(self, run: Run, request: RunRequest, history: Sequence[Turn], *, for_model: bool) -> Toolbox:
        """The tools that the request allows; none, said so, when the tools service does not answer."""
        if request.tools is not None and not request.tools.names:
            return Toolbox()
        try:
            known = await self._tools.offered()
        except GroundworkError as error:
            await run.say(degraded("tools", "tools", error, "Going on without tools."))
            return Toolbox()
        names = _offered(known, request) if request.tools is None else request.tools.names
        offered = [tool for tool in known if tool.is_named(names)]
        box = Toolbox(offered, [tool.name for tool in known if not tool.is_named(names)])
        return await self._chosen(run, request, history, box) if for_model else box

    async def _chosen(self, run: Run, request: RunRequest, history: Sequence[Turn], box: Toolbox) -> Toolbox:
        """The toolbox with what its model is shown."""
        named = request.tools.names if request.tools is not None else ()
        message = request.question
        asked_for = [tool.name for name in named for tool in box.offered if tool.is_named([name])]
        needed = list(dict.fromkeys([*tools_called_for(box.offered, message), *asked_for]))
        answer_tokens = run.budgets.budgets.answer_tokens
        ranked, by_words = list(box.offered), False
        if await tools_left_out(ranked, needed, self._model, answer_tokens):
            meanings = await self._meanings(box.offered, message)
            before = next((turn.text for turn in reversed(history) if turn.role == "user"), "")
            first = [*needed, *tools_called_for(box.offered, before)]
            ranked, by_words = rank_tools(box.offered, message, first, meanings), meanings is None
        left_out = await tools_left_out(ranked, needed, self._model, answer_tokens)
        ranking = [tool.name for tool in ranked if tool.name not in left_out]
        recorded = [_recorded(tool, is_shown=tool.name not in left_out) for tool in box.offered]
        return replace(box, offered=recorded, left_out=left_out, ranking=ranking, needed=needed, by_words=by_words)

    async def _meanings(self, tools: Sequence[Tool], message: str) -> Sequence[float] | None:
        """How near each tool's description is to the message; None when the model server does not answer."""
        try:
            return await self._scorer.score(message, [describe(tool) for tool in tools])
        except GroundworkError:
            return None


def _offered(known: Sequence[Tool], request: RunRequest) -> Sequence[str]:
    """Names of the tools for a run that names none itself."""
    called_for = tools_called_for(known, request.question)
    wanted = {*called_for, *((_MEMORY_SEARCH,) if request.memory == AGENTIC else ())}
    if request.memory == OFF:
        wanted.discard(_MEMORY_SEARCH)
    return [tool.name for tool in known if not tool.on_request or tool.name in wanted]


def _recorded(tool: Tool, *, is_shown: bool) -> Tool:
    """The tool as the run's log keeps it: without what is not needed once the tools are chosen."""
    tool = replace(tool, called_for_by=())
    return tool if is_shown else replace(tool, description="", parameters={})
