"""Which tools a run may use, and which of them its model is shown. Schemas are part of the prompt: those of twenty tools fill the
context of a small model, so that only as many are shown as leave room for the rest, the most useful first."""

from collections.abc import Sequence
from dataclasses import dataclass

from kit.errors import GroundworkError
from kit.llm import LanguageModel, Operation, estimate_tokens, tools_text
from services.orchestrator.answering.drafting import degraded
from services.orchestrator.log.events import Degradation, Thinking
from services.orchestrator.models import RunRequest, Tool
from services.orchestrator.ports import Tools
from services.orchestrator.steps.run import Run
from services.orchestrator.toolloop.conversation import spec_of

_SHARE_OF_CONTEXT = 0.5
"""Of what the answer leaves of the model's context: the rest is for the thread, the question and what tools say."""
_FIRST = ("search", "math_eval", "time_now", "fetch_docs", "temporal_normalize", "query_local_kb", "rag_list")
"""Shown before others, in this order, where not all fit: finding, reading and what a model is bad at."""
_LAST = ("rerank", "dedup_diversify", "compose_context", "router_select", "query_plan", "multi_query_rewrite")
"""Shown when all others fit: they refine a search, which `search` does well enough without them, while nothing stands in for an
e-mail or a tool of the operator's own."""


@dataclass(frozen=True)
class Toolbox:
    """The tools of a run, as they were when it began."""

    offered: Sequence[Tool] = ()
    """Those that the run may use."""

    withheld: Sequence[str] = ()
    """Names of tools that the tenant has and this run may not use."""

    left_out: Sequence[str] = ()
    """Names of tools that the run may use and that its model is not shown, since they do not fit."""

    @property
    def shown(self) -> Sequence[Tool]:
        """What its model is shown."""
        return [tool for tool in self.offered if tool.name not in self.left_out]

    def event(self) -> Thinking:
        """Tells of it."""
        names = ", ".join(tool.name for tool in self.shown)
        text = f"Tools: {names}." if names else "No tools."
        if not self.left_out:
            return Thinking("tools", text)
        message = (
            f"The model's context has no room for {', '.join(self.left_out)}. Name the tools that are needed, or use a model "
            "with a larger context."
        )
        return Thinking("tools", text, Degradation("tools", "CONTEXT_TOO_SMALL", message))


class Toolboxes:
    """Puts the tools of runs together."""

    def __init__(self, tools: Tools, model: LanguageModel) -> None:
        self._tools = tools
        self._model = model

    async def listed(self, run: Run, request: RunRequest, *, for_model: bool) -> Toolbox:
        """The tools that the request allows; none, said so, when the tools service does not answer."""
        if request.tools is not None and not request.tools.names:
            return Toolbox()
        try:
            known = await self._tools.offered()
        except GroundworkError as error:
            await run.say(degraded("tools", "tools", error, "Going on without tools."))
            return Toolbox()
        names = [tool.name for tool in known] if request.tools is None else request.tools.names
        offered = tuple(tool for tool in known if tool.name in names)
        withheld = tuple(tool.name for tool in known if tool.name not in names)
        wanted = _FIRST if request.tools is None else tuple(names)
        left_out = await self._left_out(run, offered, wanted) if for_model else ()
        return Toolbox(offered, withheld, left_out)

    async def _left_out(self, run: Run, offered: Sequence[Tool], first: Sequence[str]) -> Sequence[str]:
        """Names of those that do not fit the model's context beside the others, those named `first` being shown before others."""
        await self._model.count_tokens(
            [""], Operation.ANSWER
        )  # the context of a server is known once it has been asked
        info = self._model.info(Operation.ANSWER)
        answer_tokens = run.budgets.budgets.answer_tokens + info.reasoning_tokens
        room = (info.context_tokens - min(answer_tokens, info.context_tokens // 2)) * _SHARE_OF_CONTEXT
        texts = [tools_text([spec_of(tool)]) for tool in offered]
        costs: Sequence[int] = [estimate_tokens(text) for text in texts]
        if sum(costs) > room:
            costs = await self._model.count_tokens(texts, Operation.ANSWER)
        rank = {name: len(first) + 1 for name in _LAST} | {name: place for place, name in enumerate(first)}
        left_out: list[str] = []
        for tool, cost in sorted(zip(offered, costs, strict=True), key=lambda each: rank.get(each[0].name, len(first))):
            if cost > room:
                left_out.append(tool.name)
            else:
                room -= cost
        return tuple(left_out)
