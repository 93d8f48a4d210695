"""So many a minute for each of many."""

from services.gateway.serving.rate_limiter import RateLimiter


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_each_name_has_its_own_allowance_which_comes_back_with_time() -> None:
    clock = Clock()
    limiter = RateLimiter(3, clock)
    assert [limiter.take("a") for _ in range(3)] == [0.0] * 3
    assert limiter.take("a") == 20.0
    assert limiter.take("b") == 0.0
    clock.seconds = 15.0
    assert limiter.take("a") == 5.0
    clock.seconds = 20.0
    assert limiter.take("a") == 0.0
    assert limiter.take("a") > 0
    clock.seconds = 1_000_000.0
    assert [bool(limiter.take("a")) for _ in range(4)] == [False, False, False, True]


def test_what_was_taken_for_nothing_is_given_back_and_never_more() -> None:
    limiter = RateLimiter(2, Clock())
    assert [limiter.take("a") for _ in range(2)] == [0.0] * 2
    limiter.give_back("a")
    assert limiter.take("a") == 0.0
    assert limiter.take("a") > 0
    for _ in range(5):
        limiter.give_back("a")
    assert [bool(limiter.take("a")) for _ in range(3)] == [False, False, True]
    limiter.give_back("forgotten")


def test_the_least_recently_used_names_are_forgotten() -> None:
    limiter = RateLimiter(1, Clock(), remembered=100)
    for number in range(10_000):
        limiter.take(str(number))
        limiter.take("busy")
    assert len(limiter._left) == 100
    assert limiter.take("busy") > 0
    assert limiter.take("0") == 0.0
