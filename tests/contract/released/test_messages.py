"""For the time of a roll-out, processes of the last release and of this one read and write the same messages. Every message of the
contracts is tried, those that will be added too."""

from typing import Any

import pytest

from tests.contract.released.contracts import released, released_methods, released_names, todays
from tests.contract.released.filling import alternatives, filled

UNKNOWN_NUMBER = 9_999
CASES = [(name, choose) for name in released_names() for choose in alternatives(released(name))]


def canonical(message: Any) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def test_every_message_of_the_last_release_is_still_there() -> None:
    assert set(released_names()) <= set(todays())


@pytest.mark.parametrize(("name", "choose"), CASES)
def test_what_the_last_release_wrote_is_understood(name: str, choose: str) -> None:
    """Each field that it fills is a known field of the same kind today."""
    old = filled(released(name), choose=choose)
    new = todays()[name].FromString(canonical(old))
    known = canonical(new)
    new.DiscardUnknownFields()  # type: ignore[attr-defined] # of every message class
    assert canonical(new) == known
    assert canonical(released(name).FromString(known)) == canonical(old)


@pytest.mark.parametrize("name", released_names())
def test_the_last_release_gives_back_what_it_does_not_know(name: str) -> None:
    """It reads what is written today, and writes it again: fields that are new, and new values of enums, are still there."""
    new = filled(todays()[name], enum_number=UNKNOWN_NUMBER)
    through = released(name).FromString(canonical(new))
    assert todays()[name].FromString(canonical(through)) == new


@pytest.mark.parametrize("name", released_names())
def test_value_of_an_enum_that_only_the_other_version_has_is_carried(name: str) -> None:
    old = filled(released(name), enum_number=UNKNOWN_NUMBER)
    through = todays()[name].FromString(canonical(old))
    assert canonical(released(name).FromString(canonical(through))) == canonical(old)


@pytest.mark.parametrize("method", released_methods(), ids=lambda method: method.full_name)
def test_call_of_the_last_release_has_the_same_place_and_shape(method: Any) -> None:
    request, response = todays()[method.input_type.full_name], todays()[method.output_type.full_name]
    service = request.DESCRIPTOR.file.services_by_name[method.containing_service.name]
    today = service.methods_by_name[method.name]
    assert (today.input_type, today.output_type) == (request.DESCRIPTOR, response.DESCRIPTOR)
    assert today.client_streaming == method.client_streaming
    assert today.server_streaming == method.server_streaming
    assert today.full_name == method.full_name
