"""The paired tests on differences whose significance is known."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy import stats

from evals.significance import compare, holm, mean_interval


def test_equal_systems_do_not_differ() -> None:
    values = [0.1, 0.5, 1.0, 0.0]
    compared = compare(values, values)
    assert (compared.difference, compared.low, compared.high, compared.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_randomisation_p_is_that_of_all_swaps() -> None:
    differences = np.array([0.3, 0.1, 0.25, -0.05, 0.4, 0.2, 0.0, 0.15])
    sums = [abs(float(np.dot(signs, differences))) for signs in product((-1, 1), repeat=len(differences))]
    exact = np.mean([each >= abs(differences.sum()) - 1e-12 for each in sums])
    assert compare(list(differences), [0.0] * len(differences)).p_value == pytest.approx(exact, abs=0.01)


def test_randomisation_p_of_equal_wins_is_the_sign_test() -> None:
    wins, losses = 15, 5
    exact = 2 * sum(comb(20, k) for k in range(losses + 1)) / 2**20
    compared = compare([1.0] * wins + [0.0] * losses, [0.0] * wins + [1.0] * losses)
    assert compared.p_value == pytest.approx(exact, abs=0.01)
    assert compared.difference == 0.5
    assert compared.low > 0


def test_interval_of_the_mean_agrees_with_scipy() -> None:
    values = np.random.default_rng(3).beta(2, 1, size=200)
    expected = stats.bootstrap((values,), np.mean, method="percentile", rng=4).confidence_interval
    assert mean_interval(list(values)) == pytest.approx((expected.low, expected.high), abs=0.004)


def test_the_same_values_give_the_same_interval() -> None:
    values = [0.0, 0.2, 0.9, 1.0, 0.4]
    assert mean_interval(values) == mean_interval(values)


def test_holm_multiplies_by_the_hypotheses_that_are_left_and_never_falls() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
