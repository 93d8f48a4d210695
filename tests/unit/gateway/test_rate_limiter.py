"""So many a minute for each of many."""

from services.gateway.serving.rate_limiter import RateLimiter


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_each_name_has_its_own_allowance_which_comes_back_with_time() -> None:
    clock = Clock()
    allowance = RateLimiter(3, clock)
    assert [allowance.take("a") for _ in range(3)] == [0.0] * 3
    assert allowance.take("a") == 20.0
    assert allowance.take("b") == 0.0
    clock.seconds = 15.0
    assert allowance.take("a") == 5.0
    clock.seconds = 20.0
    assert allowance.take("a") == 0.0
    assert allowance.take("a") > 0
    clock.seconds = 1_000_000.0
    assert [bool(allowance.take("a")) for _ in range(4)] == [False, False, False, True]


def test_the_least_recently_used_names_are_forgotten() -> None:
    allowance = RateLimiter(1, Clock(), remembered=100)
    for number in range(10_000):
        allowance.take(str(number))
        allowance.take("busy")
    assert len(allowance._left) == 100
    assert allowance.take("busy") > 0
    assert allowance.take("0") == 0.0
