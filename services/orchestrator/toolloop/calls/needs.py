"""What a tool asks in the middle of a call. A model answers once a person has allowed it (sampling), or the user does
(elicitation); the run waits for either. Then the tool, which changes nothing, is called again with the answer."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from kit import deadline
from kit.llm import (
    ChatMessage,
    LanguageModel,
    ModelRejected,
    ModelUnavailable,
    Operation,
    Request,
    Restart,
    Retraction,
    TextDelta,
)
from services.orchestrator.log.events import Thinking
from services.orchestrator.models import Tool
from services.orchestrator.steps.approvals import ApprovalRequest
from services.orchestrator.steps.effects import Call, ToolAnswer, ToolNeed, ToolOutcome
from services.orchestrator.steps.run import Run
from services.orchestrator.toolloop.task import LoopLimits

_log = structlog.get_logger()
SAMPLING, ELICITATION = "sampling", "elicitation"
_ASKED_MAX = 3
"""Questions of one call."""
_MODEL_TIMEOUT_S = 60.0
_CHARACTERS_MAX = 20_000
_ROLES = ("user", "assistant")


@dataclass(frozen=True)
class _Written:
    """What the model has written for a tool."""

    text: str
    model: str


class Needs:
    """Answers the questions of the calls of one run."""

    def __init__(self, run: Run, model: LanguageModel, limits: LoopLimits) -> None:
        self._run = run
        self._model = model
        self._limits = limits

    async def met(
        self,
        key: str,
        tool: Tool,
        outcome: ToolOutcome,
        make: Callable[[Sequence[ToolAnswer]], Call],
        time_s: Callable[[], float | None],
    ) -> ToolOutcome:
        """The outcome of the call once the tool asks no more. Raises Parked, and BudgetSpent."""
        answers: list[ToolAnswer] = []
        for number in range(1, _ASKED_MAX + 1):
            if (need := outcome.need) is None:
                return outcome
            step = f"{key}/need{number}"
            answer = await self._answer(step, tool, need)
            if answer is None:
                return _unmet(f"{tool.name} asked for something that it was not given, and was not called to its end.")
            answers.append(answer)
            with deadline.within(time_s()):
                outcome = await self._run.effect(f"{step}/call", make(answers))
        return outcome if outcome.need is None else _unmet(f"{tool.name} asks too often.")

    async def _answer(self, step: str, tool: Tool, need: ToolNeed) -> ToolAnswer | None:
        """None when it is refused."""
        if need.kind == SAMPLING and self._model.info(Operation.ANSWER).model:
            return await self._by_model(step, tool, need)
        if need.kind == ELICITATION:
            text = await self._run.ask_user(f"{step}/input", _question(tool, need), self._expires_at())
            return ToolAnswer(need.digest, text)
        return None

    async def _by_model(self, step: str, tool: Tool, need: ToolNeed) -> ToolAnswer | None:
        asked = ApprovalRequest(
            tool.name,
            {"asks_the_model": need.content},
            self._expires_at(),
            is_tainted=True,
            tainted_arguments=("asks_the_model",),
        )
        if not (await self._run.ask(f"{step}/approval", asked)).allowed:
            return None
        try:
            written = await self._run.once(
                f"{step}/model",
                lambda: self._written(need),
                _Written,
                show=lambda _: Thinking("tool", f"The model has written for {tool.name}."),
            )
        except (ModelUnavailable, ModelRejected, TimeoutError) as error:
            _log.warning("tool_unanswered_by_model", tool=tool.name, error=str(error)[:300])
            return None
        return ToolAnswer(need.digest, written.text, written.model)

    async def _written(self, need: ToolNeed) -> _Written:
        """The model is given what the tool has sent, and nothing of the run."""
        content = need.content
        messages = [ChatMessage("system", content["system"])] if content["system"] else []
        messages += [ChatMessage(each["role"], each["text"]) for each in content["messages"] if each["role"] in _ROLES]
        request = Request(messages, int(content["max_tokens"]), operation=Operation.ANSWER)
        text = ""
        async with asyncio.timeout(_MODEL_TIMEOUT_S), aclosing(self._model.complete(request)) as deltas:
            async for delta in deltas:
                match delta:
                    case TextDelta(piece):
                        text = (text + piece)[:_CHARACTERS_MAX]
                    case Restart() | Retraction():
                        text = ""
                    case _:
                        pass
        return _Written(text, self._model.info(Operation.ANSWER).model)

    def _expires_at(self) -> datetime:
        return self._run.journal.now() + timedelta(seconds=self._limits.approval_timeout_s)


def _question(tool: Tool, need: ToolNeed) -> str:
    """What the user is asked, and by whom."""
    server, _, name = tool.name.partition("__")
    fields = need.content["fields"]
    named = "; ".join(
        f"{each['name']} ({each['type']}){': ' + each['about'] if each['about'] else ''}" for each in fields
    )
    form = "Answer with the value" if len(fields) == 1 else 'Answer with a JSON object, as {"name": "value"}'
    return (
        f"The server {server}, which is not ours, asks for its tool {name}: {need.content['message']}\n"
        f'It wants: {named}. {form}, or with "-" to refuse. Give it no passwords or keys.'
    )


def _unmet(said: str) -> ToolOutcome:
    return ToolOutcome(False, {"error": "TOOL_INPUT_REFUSED", "message": said}, said, "TOOL_INPUT_REFUSED")
