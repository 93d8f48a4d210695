"""What the retriever refuses, and why. The reasons are part of the contract."""

from kit.errors import FailedPrecondition, InvalidArgument, Unavailable


class InvalidRequest(InvalidArgument):
    """The request breaks a rule of the contract."""

    reason = "INVALID_REQUEST"


class EmbeddingSpaceMismatch(FailedPrecondition):
    """Vectors of another model or dimension than the index holds."""

    reason = "EMBEDDING_SPACE_MISMATCH"


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
