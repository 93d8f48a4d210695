"""What a change of a remembered fact may say."""

import pytest
from pydantic import ValidationError

from services.gateway.schemas.conversations.memory import FactChange


@pytest.mark.parametrize("end", ["2027-01-31", "2027-01-31T12:00:00", "2027-01-31T12:00:00+02:00"])
def test_end_is_a_date_or_a_time_with_or_without_a_zone(end: str) -> None:
    assert FactChange(valid_to=end).valid_to == end


def test_end_that_is_no_day_is_refused() -> None:
    with pytest.raises(ValidationError, match="no ISO 8601 date or time"):
        FactChange(valid_to="2027-02-31")


def test_change_of_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match="text, kind or valid_to"):
        FactChange()
