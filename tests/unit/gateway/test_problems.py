"""What clients are told about errors."""

import pytest

from kit.errors import Cancelled, DeadlineExceeded, GroundworkError, NotFound, Unavailable
from services.gateway.problems import problem


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("failed to connect to all addresses; ipv4:127.0.0.1:7002", reason="RPC_UNAVAILABLE"),
        DeadlineExceeded("Deadline Exceeded", reason="RPC_DEADLINE_EXCEEDED"),
        Cancelled("Stream removed", reason="RPC_CANCELLED"),
    ],
)
def test_status_that_grpc_made_is_told_without_its_words_and_says_what_to_do(error: GroundworkError) -> None:
    body = problem(error)
    assert "try again" in body["detail"]
    assert error.message not in body["detail"]
    assert body["reason"] == error.reason


def test_words_of_a_service_are_passed_on() -> None:
    assert (
        problem(NotFound("there is no thread x; list the threads"))["detail"]
        == "there is no thread x; list the threads"
    )
