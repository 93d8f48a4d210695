"""How a model failed in the loop, as it is recorded, so that the process that continues the run does not ask that model again."""

from dataclasses import dataclass

from kit.errors import GroundworkError
from kit.llm import CredentialsRefused, ModelRejected, ToolsRefused, WrongEndpoint
from services.orchestrator.errors import QuestionTooLong

_BAD_ANSWER = "LLM_BAD_ANSWER"
_TIMEOUT = "LLM_TIMEOUT"


@dataclass(frozen=True)
class Failure:
    reason: str
    message: str
    refuses_tools: bool = False
    next_attempt: int = 3
    """Which attempt at a forced answer may still succeed: 1 with the whole conversation, 2 with a short plain text, 3 without a
    model."""

    @classmethod
    def of(cls, error: GroundworkError) -> "Failure":
        return cls(error.reason, error.message, isinstance(error, ToolsRefused), _next_attempt(error))

    @classmethod
    def late(cls) -> "Failure":
        """It did not answer in the time that the run has for it."""
        return cls(_TIMEOUT, "The model did not answer within the time that the run has left.", next_attempt=2)


def _next_attempt(error: GroundworkError) -> int:
    if isinstance(error, CredentialsRefused | WrongEndpoint):
        return 3
    # Its length, a role that its template does not know, or a prompt that took it too long.
    if isinstance(error, ModelRejected | QuestionTooLong) or error.reason == _TIMEOUT:
        return 2
    return 1 if error.reason == _BAD_ANSWER else 3
