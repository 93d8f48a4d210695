"""How a language model fails."""

from kit.errors import FailedPrecondition, Unavailable


class ModelUnavailable(Unavailable):
    """The endpoint cannot be reached, is overloaded, or did not answer in time."""

    reason = "LLM_UNAVAILABLE"


class ModelRejected(FailedPrecondition):
    """The endpoint refused the request: wrong key, unknown model, too long a prompt. Asking again will not help."""

    reason = "LLM_REJECTED"
