"""What may go wrong in an evaluation, said so that its user can act."""


class EvaluationError(Exception):
    """Ends the evaluation; the message says what happened, to what, and what to do."""


class CollectionUnusable(EvaluationError):
    """The test collection cannot be read."""


class IndexingFailed(EvaluationError):
    """The system under test did not take the documents."""


class SearchFailed(EvaluationError):
    """The system under test refused a search."""


class SystemNotReady(EvaluationError):
    """The system that was started for the measurement did not get ready."""
