"""How often the tests of the whole system kill: half as often in a usual run, all of it by TEST_KILLS=all."""

import os


def kills(whole: int) -> int:
    """Of `whole`, as many as this run does."""
    return whole if os.environ.get("TEST_KILLS") == "all" else whole // 2
