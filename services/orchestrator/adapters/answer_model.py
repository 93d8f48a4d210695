"""The models of the operation `answer` in the shape that answering.generation asks."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from kit.llm import ChatMessage, Finish, ModelUnavailable, Operation, Request, Restart, TextDelta, TokenUsage
from kit.llm.messages import LanguageModel


class AnswerModel:
    """orchestrator.ports.LanguageModel over kit.llm's."""

    def __init__(self, models: LanguageModel) -> None:
        self._models = models

    @property
    def name(self) -> str:
        return self._models.info(Operation.ANSWER).model

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, temperature: float = 0.0
    ) -> AsyncIterator[str | TokenUsage]:
        """Raises ModelUnavailable where the answer would begin anew: a text that was shown cannot be taken back here."""
        request = Request(messages, max_tokens, Operation.ANSWER, temperature=temperature)
        shown = False
        async with aclosing(self._models.complete(request)) as deltas:
            async for delta in deltas:
                match delta:
                    case TextDelta():
                        shown = True
                        yield delta.text
                    case Restart() if shown:
                        raise ModelUnavailable(delta.message, reason=delta.reason)
                    case Finish():
                        yield delta.usage
