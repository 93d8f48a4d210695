"""Errors on the wire: a GroundworkError becomes a gRPC status with exactly one google.rpc.ErrorInfo, and back."""

from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from kit.errors import BY_GRPC_NUMBER, DOMAIN, Cancelled, GroundworkError, Internal, Unavailable

DETAILS_KEY = "grpc-status-details-bin"
_RETRYABLE = "retryable"
_RETRY_AFTER = "retry_after_s"
_FULL_REPLICA = "full_replica"
_STALE_TOKEN = "stale_token"  # noqa: S105 - a name
_TLS_FAILURES = ("Tls handshake failed", "Hostname Verification Check failed")
"""What gRPC says of a server whose certificate is no good (1.85; a test asks it). A server that refuses ours says nothing."""
_TLS_ADVICE = (
    "Look whether that server has TLS (GROUNDWORK_TLS_CERT_FILE), and a certificate that has not expired, is of an authority in "
    "our GROUNDWORK_TLS_CA_FILE and names the host that we call"
)
_FAILED_WRITE = "Internal error from Core"
"""What grpc.aio (1.85) says of a call when a write to it fails: the connection broke, or the server has ended the call."""
_LONGEST_MESSAGE = 1200
_LONGEST_METADATA = 200
"""Bytes. A status travels in HTTP/2 headers, which may triple them, and a peer takes 8 kB of these: a longer one arrives as
another error."""


def to_status(error: GroundworkError, replica: str = "") -> Status:
    """The status message of an error. `retryable` and `retry_after_s` travel in the ErrorInfo's metadata, and with an error that is
    of this `replica` alone, the name of it."""
    metadata = {key: _sendable(value, _LONGEST_METADATA) for key, value in error.metadata.items()}
    info = ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=metadata)
    info.metadata[_RETRYABLE] = str(error.retryable).lower()
    if error.retry_after_s is not None:
        info.metadata[_RETRY_AFTER] = f"{error.retry_after_s:g}"
    if error.is_of_one_replica:
        info.metadata[_FULL_REPLICA] = replica
    if error.is_of_stale_token:
        info.metadata[_STALE_TOKEN] = "true"
    status = Status(code=error.code.grpc_number, message=_sendable(error.message, _LONGEST_MESSAGE))
    detail = AnyMessage()
    detail.Pack(info)
    status.details.append(detail)
    return status


def _sendable(text: str, longest: int) -> str:
    """Bounded, and without what UTF-8 cannot say: a file name may hold lone surrogates."""
    encoded = text.encode(errors="replace")
    return encoded.decode() if len(encoded) <= longest else encoded[:longest].decode(errors="ignore") + "…"


def from_rpc_error(error: grpc.aio.AioRpcError) -> GroundworkError:
    """The error that the other side raised; for a status without ErrorInfo (a broken connection), one made from its code."""
    number = int(error.code().value[0])
    kind = BY_GRPC_NUMBER.get(number, Internal)
    info = _error_info(error)
    if info is None:
        # Our own cancellation never gets here: this is what is left of a call to a server that was stopped.
        kind = Unavailable if kind is Cancelled else kind
        said = error.details() or f"the call failed with {error.code().name}"
        if said == _FAILED_WRITE:
            return Unavailable("the connection broke while the call was being sent", reason="RPC_UNAVAILABLE")
        if any(each in said for each in _TLS_FAILURES):
            return kind(f"{said}. {_TLS_ADVICE}", reason="TLS_FAILED")
        return kind(said, reason=f"RPC_{error.code().name}")
    metadata = dict(info.metadata)
    retryable = metadata.pop(_RETRYABLE, None)
    retry_after_s = metadata.pop(_RETRY_AFTER, None)
    metadata.pop(_FULL_REPLICA, None)
    metadata.pop(_STALE_TOKEN, None)
    translated = kind(
        error.details() or "",
        reason=info.reason,
        retryable=None if retryable is None else retryable == "true",
        retry_after_s=None if retry_after_s is None else float(retry_after_s),
    )
    translated.metadata.update(metadata)
    return translated


def is_own_status(error: grpc.aio.AioRpcError) -> bool:
    """Whether a handler of ours has ended the call, and not gRPC."""
    return _error_info(error) is not None


def full_replica(error: grpc.aio.AioRpcError) -> str | None:
    """The replica that has refused the call because it is full, if that is what happened: it has done nothing."""
    info = _error_info(error)
    return info.metadata.get(_FULL_REPLICA) if info is not None else None


def has_stale_token(error: grpc.aio.AioRpcError) -> bool:
    """Whether the call was refused for the age of its token, by the server that was asked: it has done nothing."""
    info = _error_info(error)
    return info is not None and _STALE_TOKEN in info.metadata


def _error_info(error: grpc.aio.AioRpcError) -> ErrorInfo | None:
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            for detail in Status.FromString(value).details:
                info = ErrorInfo()
                if detail.Unpack(info) and info.domain == DOMAIN:
                    return info
    return None


async def answer_of(call: Any) -> Any:
    """What a call with one answer is answered.

    Raises AioRpcError with the status that the call ended with. Awaiting the call itself does not always: grpc.aio (1.85) puts the
    failure of a write in place of that status when a server ends a call whose stream of requests is still being written.
    """
    ended_with: list[grpc.aio.AioRpcError] = []

    def hear(ended: Any) -> None:
        status = _read_status(ended)
        if status.details() != _FAILED_WRITE:
            ended_with.append(status)

    call.add_done_callback(hear)
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise (ended_with[-1] if ended_with else error) from error


def _read_status(ended: Any) -> grpc.aio.AioRpcError:
    """The status of a call that has ended, as it is now: its coroutines do not wait any more."""

    async def read() -> grpc.aio.AioRpcError:
        metadata = await ended.initial_metadata(), await ended.trailing_metadata()
        return grpc.aio.AioRpcError(
            await ended.code(), *metadata, await ended.details(), await ended.debug_error_string()
        )

    reading = read()
    try:
        reading.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    reading.close()
    raise RuntimeError("a call that has not ended was asked for its status")
