"""Deadlines within deadlines."""

import pytest

from kit import deadline


@pytest.mark.parametrize(("own_s", "expected_s"), [(5.0, 5.0), (500.0, 60.0), (None, 60.0)])
def test_block_has_its_own_time_or_what_is_left_if_that_is_less(own_s: float | None, expected_s: float) -> None:
    deadline.set_remaining(60.0)
    try:
        with deadline.within(own_s):
            inside = deadline.remaining_s()
        outside = deadline.remaining_s()
    finally:
        deadline.set_remaining(None)
    assert inside is not None
    assert outside is not None
    assert inside <= expected_s
    assert (inside < outside) is (expected_s < 60.0)


def test_block_without_a_deadline_around_it_has_its_own() -> None:
    with deadline.within(5.0):
        assert deadline.remaining_s() is not None
    assert deadline.remaining_s() is None
