"""The order of broker groups, as Scala 2.13's hash map yields it."""

from __future__ import annotations

import pytest

from understudy.controller.group_order import group_order


@pytest.mark.parametrize(
    ("brokers", "expected"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([4, 5], [5, 4]),
        (range(1, 13), [5, 10, 1, 6, 9, 2, 12, 7, 3, 11, 8, 4]),
        (range(101, 106), [101, 102, 105, 103, 104]),
        ([9, 10, 11, 12, 31, 32, 33, 40, 64], [10, 33, 9, 12, 31, 11, 40, 32, 64]),
        ([], []),
    ],
)
def test_order_as_scala_yields_it(brokers: list[int], expected: list[int]) -> None:
    assert group_order(brokers) == expected


def test_order_depends_on_the_set_alone() -> None:
    assert group_order([64, 9, 9, 31]) == group_order([31, 64, 9])
