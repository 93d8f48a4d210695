"""The states of the breaker: a test for each arrow."""

from dataclasses import dataclass

from kit.breaker import BreakerState, CircuitBreaker


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(failures=3, window_s=10.0, open_s=5.0, clock=clock)


def opened(clock: Clock) -> CircuitBreaker:
    made = breaker(clock)
    for _ in range(3):
        assert made.allow()
        made.failed()
    return made


def test_enough_failures_within_the_window_open_it() -> None:
    clock = Clock()
    made = opened(clock)
    assert made.state is BreakerState.OPEN
    assert not made.allow()
    assert made.wait_s == 5.0


def test_failures_that_lie_apart_do_not_open_it() -> None:
    clock = Clock()
    made = breaker(clock)
    for _ in range(6):
        assert made.allow()
        made.failed()
        clock.now += 6.0
    assert made.state is BreakerState.CLOSED


def test_a_success_forgets_the_failures_before_it() -> None:
    made = breaker(Clock())
    for settle in (made.failed, made.failed, made.succeeded, made.failed, made.failed):
        settle()
    assert made.state is BreakerState.CLOSED


def test_after_the_pause_one_probe_is_let_through_and_closes_it() -> None:
    clock = Clock()
    made = opened(clock)
    clock.now += 5.0
    assert made.state is BreakerState.HALF_OPEN
    assert made.allow()
    assert not made.allow()
    made.succeeded()
    assert made.state is BreakerState.CLOSED
    assert made.allow()


def test_a_probe_that_fails_opens_it_for_twice_as_long_up_to_a_minute() -> None:
    clock = Clock()
    made = opened(clock)
    pauses = []
    for _ in range(6):
        clock.now += made.wait_s
        assert made.allow()
        made.failed()
        pauses.append(made.wait_s)
    assert pauses == [10.0, 20.0, 40.0, 60.0, 60.0, 60.0]


def test_an_abandoned_probe_leaves_its_place_to_another() -> None:
    clock = Clock()
    made = opened(clock)
    clock.now += 5.0
    assert made.allow()
    made.abandoned()
    assert made.allow()


def test_a_provider_that_asks_for_a_pause_gets_it_up_to_a_minute() -> None:
    clock = Clock()
    made = breaker(clock)
    made.pause(600.0)
    assert made.wait_s == 60.0
    clock.now += 60.0
    assert made.allow()
