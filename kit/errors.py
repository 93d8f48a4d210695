"""The one table of errors: what a service raises, what travels over gRPC, what a client of the HTTP API sees.

    GroundworkError                 gRPC status           HTTP  retryable
    ├── InvalidArgument             INVALID_ARGUMENT      400   no
    ├── Unauthenticated             UNAUTHENTICATED       401   no
    ├── PermissionDenied            PERMISSION_DENIED     403   no
    ├── NotFound                    NOT_FOUND             404   no
    ├── AlreadyExists               ALREADY_EXISTS        409   no
    ├── Aborted                     ABORTED               409   yes   (lost a compare-and-set)
    ├── FailedPrecondition          FAILED_PRECONDITION   412   no
    ├── ResourceExhausted           RESOURCE_EXHAUSTED    429   yes
    ├── Cancelled                   CANCELLED             499   no
    ├── DataLoss                    DATA_LOSS             500   no
    ├── Internal                    INTERNAL              500   no
    ├── Unimplemented               UNIMPLEMENTED         501   no
    ├── Unavailable                 UNAVAILABLE           503   yes
    └── DeadlineExceeded            DEADLINE_EXCEEDED     504   yes

Services subclass these and set `reason`, a constant UPPER_SNAKE word that clients may switch on. Handlers raise; the
server interceptor writes the status with exactly one google.rpc.ErrorInfo; the channel turns it back into the same class.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

DOMAIN = "groundwork"
"""ErrorInfo.domain of every status that Groundwork makes."""


@dataclass(frozen=True)
class _Row:
    grpc_number: int
    http_status: int
    retryable: bool


class Code(Enum):
    """A canonical status: its gRPC number, its HTTP status, and whether asking again may help."""

    CANCELLED = _Row(1, 499, False)
    INVALID_ARGUMENT = _Row(3, 400, False)
    DEADLINE_EXCEEDED = _Row(4, 504, True)
    NOT_FOUND = _Row(5, 404, False)
    ALREADY_EXISTS = _Row(6, 409, False)
    PERMISSION_DENIED = _Row(7, 403, False)
    RESOURCE_EXHAUSTED = _Row(8, 429, True)
    FAILED_PRECONDITION = _Row(9, 412, False)
    ABORTED = _Row(10, 409, True)
    UNIMPLEMENTED = _Row(12, 501, False)
    INTERNAL = _Row(13, 500, False)
    UNAVAILABLE = _Row(14, 503, True)
    DATA_LOSS = _Row(15, 500, False)
    UNAUTHENTICATED = _Row(16, 401, False)

    @property
    def http_status(self) -> int:
        return self.value.http_status

    @property
    def grpc_number(self) -> int:
        return self.value.grpc_number


class GroundworkError(Exception):
    """Base of all expected errors. The message says what happened, to what, and what to do next."""

    code: ClassVar[Code] = Code.INTERNAL
    reason: str = "INTERNAL"
    is_of_one_replica: ClassVar[bool] = False
    """Whether this replica is full, has done nothing, and another may have room: the caller's channel asks the others. Never of
    a limit that is the same everywhere, as a tenant's share."""
    is_of_stale_token: ClassVar[bool] = False
    """Whether the call was refused for the age of its token, and so not carried out: another one may be good."""

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        retryable: bool | None = None,
        retry_after_s: float | None = None,
        **metadata: str,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or type(self).reason
        self.retryable = self.code.value.retryable if retryable is None else retryable
        self.retry_after_s = retry_after_s
        self.metadata = metadata


class InvalidArgument(GroundworkError):
    """The request is wrong: put it right before you send it again."""

    code = Code.INVALID_ARGUMENT
    reason = "INVALID_ARGUMENT"


class Unauthenticated(GroundworkError):
    """The caller is not known: show a valid API key."""

    code = Code.UNAUTHENTICATED
    reason = "UNAUTHENTICATED"


class PermissionDenied(GroundworkError):
    """The caller may not do this."""

    code = Code.PERMISSION_DENIED
    reason = "PERMISSION_DENIED"


class NotFound(GroundworkError):
    """What the request names does not exist, or not for this caller."""

    code = Code.NOT_FOUND
    reason = "NOT_FOUND"


class AlreadyExists(GroundworkError):
    """What the request would make is already there."""

    code = Code.ALREADY_EXISTS
    reason = "ALREADY_EXISTS"


class Aborted(GroundworkError):
    """Another writer was faster: read again, and decide anew."""

    code = Code.ABORTED
    reason = "ABORTED"


class FailedPrecondition(GroundworkError):
    """The state of what the request names does not allow it."""

    code = Code.FAILED_PRECONDITION
    reason = "FAILED_PRECONDITION"


class ResourceExhausted(GroundworkError):
    """A limit is reached: ask again later."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "RESOURCE_EXHAUSTED"


class Cancelled(GroundworkError):
    """The work was stopped before it was done."""

    code = Code.CANCELLED
    reason = "CANCELLED"


class DataLoss(GroundworkError):
    """Stored data is damaged or gone."""

    code = Code.DATA_LOSS
    reason = "DATA_LOSS"


class Internal(GroundworkError):
    code = Code.INTERNAL
    reason = "INTERNAL"


class Unimplemented(GroundworkError):
    """This version does not offer it."""

    code = Code.UNIMPLEMENTED
    reason = "UNIMPLEMENTED"


class Unavailable(GroundworkError):
    code = Code.UNAVAILABLE
    reason = "UNAVAILABLE"


class DeadlineExceeded(GroundworkError):
    """The time for the request was over before the work was done."""

    code = Code.DEADLINE_EXCEEDED
    reason = "DEADLINE_EXCEEDED"


BY_CODE: dict[Code, type[GroundworkError]] = {
    error.code: error
    for error in (
        InvalidArgument,
        Unauthenticated,
        PermissionDenied,
        NotFound,
        AlreadyExists,
        Aborted,
        FailedPrecondition,
        ResourceExhausted,
        Cancelled,
        DataLoss,
        Internal,
        Unimplemented,
        Unavailable,
        DeadlineExceeded,
    )
}
"""The class that stands for each code where the precise subclass is not known, as on the client side of a call."""

BY_GRPC_NUMBER: dict[int, type[GroundworkError]] = {code.grpc_number: error for code, error in BY_CODE.items()}
