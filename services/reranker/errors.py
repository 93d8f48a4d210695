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


class QueueFull(ResourceExhausted):
    """More work waits than the server lets wait."""

    reason = "MODEL_QUEUE_FULL"


class RequestExpired(DeadlineExceeded):
    """The caller's deadline passed before the model had read all its texts."""

    reason = "MODEL_DEADLINE_EXCEEDED"


class ShuttingDown(Unavailable):
    """The server is on its way out; another replica, or this one after its restart, takes the request."""

    reason = "MODEL_SERVER_SHUTTING_DOWN"


class EncoderFailed(Internal):
    """The runtime refused a batch."""

    reason = "ENCODER_FAILED"


class ModelFileMissing(FailedPrecondition):
    """A model file is not where it should be."""

    reason = "MODEL_FILE_MISSING"


class ModelFileCorrupt(FailedPrecondition):
    """A model file is not the one this version was tested with."""

    reason = "MODEL_FILE_CORRUPT"


class RuntimeMissing(FailedPrecondition):
    """The configured runtime is not installed."""

    reason = "MODEL_RUNTIME_MISSING"
