"""How a language model fails.

ModelUnavailable       asking again, or asking another, may help
ModelRejected          asking the same again will not help
├── PromptTooLong      the prompt does not fit the model's context
├── ToolsRefused       the model, or its server as it was started, takes no tools
├── CredentialsRefused the key is wrong, or may not use this model
└── WrongEndpoint      what answers is no chat API: the base URL is wrong
"""

from kit.errors import FailedPrecondition, Unavailable


class ModelUnavailable(Unavailable):
    """The endpoint cannot be reached, is overloaded, or did not answer in time."""

    reason = "LLM_UNAVAILABLE"


class ModelRejected(FailedPrecondition):
    """The endpoint refused the request. Asking again will not help."""

    reason = "LLM_REJECTED"


class PromptTooLong(ModelRejected):
    """Prompt and answer together are longer than the model's context."""

    reason = "LLM_PROMPT_TOO_LONG"
    context_tokens: int = 0
    """What the server says that the context has; 0 where it does not say."""


class ToolsRefused(ModelRejected):
    """The model cannot call tools, or its server was started without support for it."""

    reason = "LLM_TOOLS_REFUSED"


class CredentialsRefused(ModelRejected):
    """The key is wrong or missing, or may not use this model."""

    reason = "LLM_CREDENTIALS_REFUSED"


class WrongEndpoint(ModelRejected):
    """HTML, a redirect or anything else that is no stream of a chat API."""

    reason = "LLM_WRONG_ENDPOINT"
