"""JSON through a Struct."""

import json

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct, Value

from kit.structs import as_json


@pytest.mark.parametrize(
    "value", [{}, {"minLength": 1, "maximum": 0.5, "enum": [1, "a", None, True, [2, {"n": -3}]]}, {"large": 2**53}]
)
def test_what_was_put_in_comes_out(value: dict[str, object]) -> None:
    struct = Struct()
    struct.update(value)
    assert json.dumps(as_json(struct), sort_keys=True) == json.dumps(value, sort_keys=True)
    assert json.dumps(as_json(ParseDict(value, Value())), sort_keys=True) == json.dumps(value, sort_keys=True)


def test_number_that_a_double_cannot_tell_from_its_neighbours_stays_one() -> None:
    assert repr(as_json(Value(number_value=2.0**60))) == repr(2.0**60)
