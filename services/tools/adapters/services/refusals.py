"""What goes wrong at another service, in words for the model and the person."""

from collections.abc import Iterator
from contextlib import contextmanager

from kit.errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    GroundworkError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
)
from services.tools.errors import ToolError

_SAYS_IT_WELL = (InvalidArgument, NotFound, AlreadyExists, Aborted, FailedPrecondition, DataLoss, ResourceExhausted)
"""Errors whose messages are written for the caller."""
_AWAY = (Unavailable, DeadlineExceeded, Cancelled)  # Cancelled is what a stopping server says


@contextmanager
def put_plainly(what: str, away: str = "SERVICE_UNAVAILABLE") -> Iterator[None]:
    """Turns GroundworkErrors within the block into ToolErrors. `what` names the other service for a person: "the search". `away` is
    the reason where it does not answer."""
    try:
        yield
    except _SAYS_IT_WELL as error:
        raise ToolError(error.message, reason=error.reason) from error
    except _AWAY as error:
        raise ToolError(f"{what} does not answer now; try again in a minute", reason=away) from error
    except (PermissionDenied, Unauthenticated) as error:
        raise ToolError(f"{what} does not allow this here; ask the operator", reason=error.reason) from error
    except GroundworkError as error:
        raise ToolError(f"{what} failed; try again, or another way", reason=error.reason) from error
