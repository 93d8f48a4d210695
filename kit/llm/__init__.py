"""The port to language models. `kit.llm.endpoint` speaks to one; it is imported where one is configured, since it loads an HTTP
client that a process without a model does not need."""

from kit.llm.endpoint.encoding import tools_text
from kit.llm.endpoint.tokens.estimate import estimate_tokens
from kit.llm.errors import (
    CredentialsRefused,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
    ToolsRefused,
    WrongEndpoint,
)
from kit.llm.messages import (
    ChatMessage,
    Delta,
    Finish,
    FinishReason,
    LanguageModel,
    Meter,
    ModelInfo,
    Operation,
    ReasoningDelta,
    Request,
    Restart,
    Retraction,
    Spent,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
)

__all__ = [
    "ChatMessage",
    "CredentialsRefused",
    "Delta",
    "Finish",
    "FinishReason",
    "LanguageModel",
    "Meter",
    "ModelInfo",
    "ModelRejected",
    "ModelUnavailable",
    "Operation",
    "PromptTooLong",
    "ReasoningDelta",
    "Request",
    "Restart",
    "Retraction",
    "Spent",
    "TextDelta",
    "TokenUsage",
    "ToolCall",
    "ToolCallDelta",
    "ToolSpec",
    "ToolsRefused",
    "WrongEndpoint",
    "estimate_tokens",
    "tools_text",
]
