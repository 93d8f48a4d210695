"""Threads that compute come second."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from services.reranker.adapters import cpu_model


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)  # of the calling thread


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_threads_started_by_a_thread_of_lower_priority_have_it_too_and_others_do_not() -> None:
    before = niceness()
    with ThreadPoolExecutor(1, initializer=cpu_model._come_second) as loading:
        started_by_it = loading.submit(lambda: ThreadPoolExecutor(1).submit(niceness).result()).result()
    assert started_by_it == before + cpu_model._NICENESS
    assert niceness() == before
