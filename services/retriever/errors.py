"""What the retriever refuses, and why. The reasons are part of the contract."""

from kit.errors import FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unavailable


class InvalidRequest(InvalidArgument):
    """The request breaks a rule of the contract."""

    reason = "INVALID_REQUEST"


class EmbeddingSpaceMismatch(FailedPrecondition):
    """Vectors of another model or dimension than the index holds."""

    reason = "EMBEDDING_SPACE_MISMATCH"


class EmbeddingModelUnknown(FailedPrecondition):
    """The model server does not embed with the model that was asked for."""

    reason = "EMBEDDING_MODEL_UNKNOWN"


class EmbeddingUnchanged(FailedPrecondition):
    """The collection has this model already."""

    reason = "EMBEDDING_UNCHANGED"


class EmbeddingChangeUnderWay(FailedPrecondition):
    """The collection's model is being changed, or that of before is still kept."""

    reason = "EMBEDDING_CHANGE_UNDER_WAY"


class EmbeddingNotReady(FailedPrecondition):
    """There is no other model that was built and compared."""

    reason = "EMBEDDING_NOT_READY"


class EmbeddingWorse(FailedPrecondition):
    """The new model finds less than the old one."""

    reason = "EMBEDDING_WORSE"


class NothingToRollBack(FailedPrecondition):
    """No model of before is kept."""

    reason = "NOTHING_TO_ROLL_BACK"


class NothingToDrop(FailedPrecondition):
    """The collection has no other model."""

    reason = "NOTHING_TO_DROP"


class CollectionNotFound(NotFound):
    """No such collection, or none that the caller may see."""

    reason = "COLLECTION_NOT_FOUND"


class NotYours(PermissionDenied):
    """Only a collection's owner may change it."""

    reason = "NOT_YOURS"


class RevisionIncomplete(FailedPrecondition):
    """An index does not hold exactly the expected chunks of the revision."""

    reason = "REVISION_INCOMPLETE"


class RevisionSuperseded(FailedPrecondition):
    """A newer revision is active, or the document has been deleted."""

    reason = "REVISION_SUPERSEDED"


class SearchUnavailable(Unavailable):
    """No engine that was asked could answer."""

    reason = "SEARCH_UNAVAILABLE"


class EmbedderUnavailable(Unavailable):
    """Queries cannot be embedded now."""

    reason = "EMBEDDER_UNAVAILABLE"


class RerankerUnavailable(Unavailable):
    """Candidates cannot be reranked now."""

    reason = "RERANKER_UNAVAILABLE"


class IndexUnavailable(Unavailable):
    """An index cannot be read or written."""

    reason = "INDEX_UNAVAILABLE"


class RevisionsStale(Unavailable):
    """It is not known which documents are visible now."""

    reason = "REVISIONS_STALE"


class PointerConflict(Exception):
    """A compare-and-set lost: someone else changed the pointer. The caller reads again and decides."""


class EngineUnsupported(FailedPrecondition):
    """A search engine that this release does not work with: another product, or a version too old or too new."""

    reason = "ENGINE_UNSUPPORTED"
