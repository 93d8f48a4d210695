"""What the events of a run add up to. The console's fold is held to the same cases in tests/service/gateway/test_console.py."""

from typing import Any

import pytest

from kit.vocabulary.run_fold import RunFold
from tests.data.run_folds import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_events_add_up_to_the_recorded_result(case: dict[str, Any]) -> None:
    fold = RunFold()
    for each in case["events"]:
        fold.add(each["event"], each["data"])
    assert fold.result() == case["result"]
