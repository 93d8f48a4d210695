"""What the memory service refuses, and why."""

from kit.errors import DataLoss, FailedPrecondition, InvalidArgument, NotFound


class ThreadNotFound(NotFound):
    """No such thread, or another subject's: the two look the same from outside."""

    reason = "THREAD_NOT_FOUND"


class ThreadDamaged(DataLoss):
    """The thread's head cannot be decoded."""

    reason = "THREAD_DAMAGED"


class ArtefactNotFound(NotFound):
    """The thread has no artefact of this name: it was never made, or was removed with a document that it quotes."""

    reason = "ARTEFACT_NOT_FOUND"


class BadMessage(InvalidArgument):
    """A message that cannot be stored as it is."""

    reason = "BAD_MESSAGE"


class BadTitle(InvalidArgument):
    """A title that is empty or too long."""

    reason = "BAD_TITLE"


class BadPageToken(InvalidArgument):
    """A page token that this service did not make."""

    reason = "BAD_PAGE_TOKEN"


class FactNotFound(NotFound):
    """No such fact, or another subject's: the two look the same from outside."""

    reason = "FACT_NOT_FOUND"


class BadFact(InvalidArgument):
    """A fact that is empty or too long."""

    reason = "BAD_FACT"


class BadQuery(InvalidArgument):
    """A search of what is remembered without words, or with too many."""

    reason = "BAD_MEMORY_QUERY"


class BadForgetting(InvalidArgument):
    """What is to be forgotten is not said, or said in two ways."""

    reason = "BAD_FORGETTING"


class MemoryOff(FailedPrecondition):
    """The operator has switched memory off."""

    reason = "MEMORY_OFF"
