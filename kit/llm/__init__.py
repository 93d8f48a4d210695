"""The port to language models."""

from kit.llm.chat import ChatModel, open_chat_model
from kit.llm.errors import ModelRejected, ModelUnavailable
from kit.llm.messages import (
    ChatMessage,
    Delta,
    Finish,
    FinishReason,
    LanguageModel,
    ModelInfo,
    Operation,
    ReasoningDelta,
    Request,
    Restart,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
)

__all__ = [
    "ChatMessage",
    "ChatModel",
    "Delta",
    "Finish",
    "FinishReason",
    "LanguageModel",
    "ModelInfo",
    "ModelRejected",
    "ModelUnavailable",
    "Operation",
    "ReasoningDelta",
    "Request",
    "Restart",
    "TextDelta",
    "TokenUsage",
    "ToolCall",
    "ToolCallDelta",
    "ToolSpec",
    "open_chat_model",
]
