"""What can go wrong in the model server."""

from kit.errors import DeadlineExceeded, FailedPrecondition, Internal, InvalidArgument, ResourceExhausted, Unavailable


class KindMissing(InvalidArgument):
    """An embed request that does not say what its texts are."""

    reason = "EMBED_KIND_MISSING"


class TextEmpty(InvalidArgument):
    """A text without a single visible character has no meaning to embed."""

    reason = "TEXT_EMPTY"


class TextCountOutOfRange(InvalidArgument):
    """No text, or more than one request may carry."""

    reason = "TEXT_COUNT_OUT_OF_RANGE"


class ContentHashWrong(InvalidArgument):
    """Content hashes that are not one a passage, that are no sha256, or that are too many."""

    reason = "CONTENT_HASH_WRONG"


class JudgedPassageMissing(InvalidArgument):
    """A claim that cites no passage, or one that the request does not hold."""

    reason = "JUDGED_PASSAGE_MISSING"


class JudgeUnavailable(FailedPrecondition):
    """The judge of claims was fitted on another embedding model than this server has."""

    reason = "JUDGE_UNAVAILABLE"


class EmbeddingModelUnknown(FailedPrecondition):
    """An embedding model is asked for that this server does not have."""

    reason = "EMBEDDING_MODEL_UNKNOWN"


class PassageStoreUnavailable(Unavailable):
    """The disk did not let token vectors be removed that are to be forgotten."""

    reason = "PASSAGE_STORE_UNAVAILABLE"


class QueueFull(ResourceExhausted):
    """More work waits than the server lets wait."""

    reason = "MODEL_QUEUE_FULL"
    is_of_one_replica = True


class RequestExpired(DeadlineExceeded):
    """The caller's deadline passed before the model had read all its texts."""

    reason = "MODEL_DEADLINE_EXCEEDED"


class ShuttingDown(Unavailable):
    """The server is on its way out; another replica, or this one after its restart, takes the request."""

    reason = "MODEL_SERVER_SHUTTING_DOWN"


class EncoderFailed(Internal):
    """The runtime refused a batch."""

    reason = "ENCODER_FAILED"


class DeviceMemoryExhausted(EncoderFailed):
    """A batch did not fit into the device's memory. The batcher tries it in halves."""

    reason = "DEVICE_MEMORY_EXHAUSTED"


class ModelUnusable(FailedPrecondition):
    """A model that loads, but is not of the kind that its setting asks for."""

    reason = "MODEL_UNUSABLE"


class ProviderUnavailable(Unavailable):
    """A remote model API cannot be reached, is overloaded, or does not answer in time."""

    reason = "MODEL_PROVIDER_UNAVAILABLE"


class ProviderBusy(ResourceExhausted):
    """A remote model API asks to come back later than the caller can wait."""

    reason = "MODEL_PROVIDER_BUSY"


class ProviderRejected(FailedPrecondition):
    """A remote model API refused the request: wrong key, unknown model, too long a text. Asking again will not help."""

    reason = "MODEL_PROVIDER_REJECTED"


class ProviderAnswerWrong(Internal):
    """A remote model API sent something that is not the answer to the question."""

    reason = "MODEL_PROVIDER_ANSWER_WRONG"


class ModelFileMissing(FailedPrecondition):
    """A model file is not where it should be."""

    reason = "MODEL_FILE_MISSING"


class ModelFileCorrupt(FailedPrecondition):
    """A model file is not the one this version was tested with."""

    reason = "MODEL_FILE_CORRUPT"


class RuntimeMissing(FailedPrecondition):
    """The configured runtime is not installed."""

    reason = "MODEL_RUNTIME_MISSING"
