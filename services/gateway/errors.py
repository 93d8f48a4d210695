"""What the gateway itself refuses. Everything else is a service's error, passed on."""

from kit.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
)


class ValidationFailed(InvalidArgument):
    """A field of the request is missing or wrong."""

    reason = "VALIDATION_FAILED"


class UnknownMode(InvalidArgument):
    """A question names a mode that the contract does not have."""

    reason = "MODE_UNKNOWN"


class UnsupportedParameter(InvalidArgument):
    """A parameter of OpenAI's API asks for what is not offered here."""

    reason = "UNSUPPORTED_PARAMETER"


class ModelNotOffered(NotFound):
    """A request in the shape of OpenAI's API names a model that is not offered."""

    reason = "MODEL_NOT_OFFERED"


class FileNotInStore(NotFound):
    """A vector store has no such file, or no such batch of files."""

    reason = "FILE_NOT_IN_STORE"


class InputItemNotFound(NotFound):
    """The response has no such input item."""

    reason = "INPUT_ITEM_NOT_FOUND"


class RunUnanswered(FailedPrecondition):
    """The run has no answer that a report could be made of: it has not ended, failed, or was forgotten."""

    reason = "RUN_UNANSWERED"


class MalformedJson(InvalidArgument):
    """The body is not JSON."""

    reason = "MALFORMED_JSON"


class MalformedMultipart(InvalidArgument):
    """The body is not a well-formed multipart form, or ended too early."""

    reason = "MALFORMED_MULTIPART"


class BadForm(InvalidArgument):
    """The form is well-formed but not what this route takes."""

    reason = "BAD_FORM"


class FileFieldMissing(InvalidArgument):
    """An upload without a file."""

    reason = "FILE_FIELD_MISSING"


class BodyTooLarge(InvalidArgument):
    """A JSON body over the limit."""

    reason = "BODY_TOO_LARGE"


class UnsupportedContentType(InvalidArgument):
    """A body of a type this route does not take."""

    reason = "UNSUPPORTED_CONTENT_TYPE"


class BadHttp(InvalidArgument):
    """Bytes that are no HTTP/1.1, or a head that is too long."""

    reason = "BAD_HTTP"


class RequestHeadTimeout(DeadlineExceeded):
    """The client began a request and did not finish its head."""

    reason = "REQUEST_HEAD_TIMEOUT"


class RequestBodyTimeout(DeadlineExceeded):
    """The client did not finish a JSON body."""

    reason = "REQUEST_BODY_TIMEOUT"


class TooManyConnections(Unavailable):
    """The gateway has as many connections as it takes, all with a request in hand."""

    reason = "TOO_MANY_CONNECTIONS"


class TooManyFromAddress(ResourceExhausted):
    """One address has its share of the connections, all with a request in hand."""

    reason = "TOO_MANY_CONNECTIONS_FROM_ADDRESS"


class TooManyEventStreams(ResourceExhausted):
    """One tenant has its share of the event streams."""

    reason = "TOO_MANY_EVENT_STREAMS"


class TooManyWrongKeys(ResourceExhausted):
    """One address has shown wrong API keys again and again."""

    reason = "TOO_MANY_WRONG_API_KEYS"


class AuthenticationRequired(FailedPrecondition):
    """The gateway would be open to others than this machine."""

    reason = "AUTHENTICATION_REQUIRED"


class ApiKeysOff(FailedPrecondition):
    """This gateway asks nobody for a key."""

    reason = "API_KEYS_OFF"


class AuditLogUnknown(Unavailable):
    """The message store has not answered since the gateway started, so the audit log cannot be read."""

    reason = "AUDIT_LOG_UNKNOWN"


class TooManyApiKeys(FailedPrecondition):
    """The tenant has as many keys as it may."""

    reason = "TOO_MANY_API_KEYS"


class ScopeMissing(PermissionDenied):
    """The caller lacks a scope."""

    reason = "SCOPE_MISSING"


class UploadStalled(DeadlineExceeded):
    """The client stopped sending."""

    reason = "UPLOAD_STALLED"


class RouteNotFound(NotFound):
    """No such path."""

    reason = "ROUTE_NOT_FOUND"


class WebSocketNotServed(InvalidArgument):
    """A client asked for a WebSocket where no route serves one."""

    reason = "WEBSOCKET_NOT_SERVED"


class MalformedMessage(InvalidArgument):
    """A message over a WebSocket is not one that is understood there."""

    reason = "MALFORMED_MESSAGE"


class SoundNotUnderstood(InvalidArgument):
    """Sound is not what was set up, or nothing of it was set up."""

    reason = "SOUND_NOT_UNDERSTOOD"


class SoundNotTaken(ResourceExhausted):
    """Several utterances wait for their text: this one is thrown away."""

    reason = "SOUND_NOT_TAKEN"


class SpeechNotOffered(FailedPrecondition):
    """A client wants sound in or out, and no speech endpoint is set up for it."""

    reason = "SPEECH_NOT_OFFERED"


class SpeechUnavailable(Unavailable):
    """A speech endpoint does not answer, or refuses."""

    reason = "SPEECH_UNAVAILABLE"


class MethodNotAllowed(Unimplemented):
    """The path exists, the method does not."""

    reason = "METHOD_NOT_ALLOWED"


class ChunkNotFound(NotFound):
    """No active chunk of that id."""

    reason = "CHUNK_NOT_FOUND"


class HostNotAllowed(PermissionDenied):
    """Asked for under a name that is not ours."""

    reason = "HOST_NOT_ALLOWED"


class CrossOrigin(PermissionDenied):
    """Another site's page tried to change something."""

    reason = "CROSS_ORIGIN"


class RunNotStarted(Unavailable):
    """The orchestrator took a question and said nothing."""

    reason = "RUN_NOT_STARTED"


class StreamInterrupted(Unavailable):
    """A run's stream broke and could not be taken up again in time. The run itself may still be going on."""

    reason = "STREAM_INTERRUPTED"


HTTP_STATUS_BY_REASON: dict[str, int] = {
    BodyTooLarge.reason: 413,
    UnsupportedContentType.reason: 415,
    MethodNotAllowed.reason: 405,
    UploadStalled.reason: 408,
    RequestHeadTimeout.reason: 408,
    RequestBodyTimeout.reason: 408,
    "UPLOAD_CORRUPT": 400,
    "FILE_TOO_LARGE": 413,
    "FILE_INFECTED": 422,
    "STORAGE_QUOTA_EXCEEDED": 507,
}
"""Where HTTP has a more exact status than the table of kit.errors."""


class RequestsNotCounted(FailedPrecondition):
    """Requests cannot be limited where nobody is asked who they are."""

    reason = "REQUESTS_NOT_COUNTED"
