import grpc
import pytest

from kit import errors
from kit.errors import BY_CODE, Code, GroundworkError
from kit.rpc.status import to_status


def test_every_code_has_exactly_one_class_and_is_drawn_in_the_docstring() -> None:
    assert set(BY_CODE) == set(Code)
    for code, kind in BY_CODE.items():
        row = next(line for line in (errors.__doc__ or "").splitlines() if f" {kind.__name__} " in line)
        assert code.name in row
        assert str(code.http_status) in row
        assert ("yes" if code.value.retryable else "no") in row.split()


@pytest.mark.parametrize("code", list(Code))
def test_grpc_number_is_the_canonical_one(code: Code) -> None:
    assert grpc.StatusCode[code.name].value[0] == code.grpc_number


def test_status_carries_exactly_one_error_info() -> None:
    status = to_status(errors.NotFound("no such thing", reason="THING_NOT_FOUND", thing="x"))
    assert len(status.details) == 1
    assert status.message == "no such thing"


def test_subclass_reason_is_used() -> None:
    class ThingMissing(errors.NotFound):
        reason = "THING_MISSING"

    assert ThingMissing("gone").reason == "THING_MISSING"
    assert isinstance(ThingMissing("gone"), GroundworkError)
