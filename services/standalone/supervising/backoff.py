"""How long to wait before a child that died is started again: exponential, reset by a healthy stretch."""

from __future__ import annotations

from services.standalone.supervising.models import RestartPolicy


class Backoff:
    """The delays of one child."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._crashes_in_a_row = 0

    def after_crash(self, uptime_s: float) -> float:
        """The delay in seconds after a process that had been up for ``uptime_s``."""
        if uptime_s >= self._policy.healthy_after_s:
            self._crashes_in_a_row = 0
        exponent = min(self._crashes_in_a_row, 30)  # 2.0**30 is beyond any maximum and cannot overflow
        self._crashes_in_a_row += 1
        return min(self._policy.backoff_max_s, self._policy.backoff_initial_s * 2.0**exponent)
