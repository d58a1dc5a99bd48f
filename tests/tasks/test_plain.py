"""Plain data: what may cross between a learner's function and the judge, and when two are the same."""

import json
import math
from collections import OrderedDict

import numpy as np
import pytest
import torch

from glassbox.tasks.plain import MAX_DEPTH, MAX_ITEMS, NotPlainError, freeze, plain, same, show


class Liar(int):
    """An int that claims to equal everything and to be another number."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __index__(self):
        return 7


class Chameleon:
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class Sevens(list):
    """A list that shows other items than it holds."""

    def __iter__(self):
        return iter([7] * len(self))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (True, True),
        (None, None),
        (2.5, 2.5),
        ("text", "text"),
        ((1, (2, 3)), [1, [2, 3]]),
        ([], []),
        (torch.Size([2, 3]), [2, 3]),
        (np.int64(4), 4),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (torch.tensor([1, 2]), [1, 2]),
        ([np.int8(1), np.uint64(2)], [1, 2]),
        (float("nan"), {"float": "nan"}),
        (-math.inf, {"float": "-inf"}),
        ({"b": 1, "a": (2,)}, {"dict": [["a", [2]], ["b", 1]]}),
        (OrderedDict(x=1), {"dict": [["x", 1]]}),
    ],
)
def test_what_is_plain_crosses(value, expected):
    crossed = plain(value)
    assert crossed == expected
    assert type(crossed) is type(expected)
    assert json.loads(json.dumps(crossed)) == expected


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        {1: 2},
        (n for n in range(3)),
        1j,
        b"bytes",
        len,
        int,
        slice(1, 2),
        range(3),
        Chameleon(),
        ...,
    ],
)
def test_what_is_not_plain_says_what_it_is(value):
    with pytest.raises(NotPlainError, match=r"of type \w+|strings as keys"):
        plain(value)


def test_limits_hold():
    endless = []
    endless.append(endless)
    twins = [[]]
    twins += [twins, twins]
    deep = []
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    for value in (endless, twins, deep, [0] * MAX_ITEMS, 1 << 256, -(1 << 256), "x" * 2001):
        with pytest.raises(NotPlainError):
            plain(value)
    assert plain([0] * (MAX_ITEMS - 1)) == [0] * (MAX_ITEMS - 1)
    assert plain((1 << 256) - 1) == (1 << 256) - 1


def test_an_object_that_lies_about_equality_crosses_as_what_it_is():
    assert type(plain(Liar(3))) is int
    assert not same(plain(Liar(3)), 4)
    assert plain(Sevens([1, 2])) == [7, 7]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (True, 1.0),
        (0, None),
        (0, ""),
        ("1", 1),
        ([1], 1),
        ([1, 2], [1]),
        ([], None),
        ([1, 2], [2, 1]),
        ([[1], 2], [1, [2]]),
        ([1, True], [1, 1]),
        ({"float": "nan"}, {"float": "inf"}),
        ({"float": "nan"}, "nan"),
        (plain({"float": "nan"}), plain(math.nan)),
    ],
)
def test_different_in_value_or_kind(left, right):
    assert not same(left, right)
    assert not same(right, left)


@pytest.mark.parametrize(
    "value", [0, 1, -5, True, False, None, 1.5, "a", [], [1, [2, None]], plain(math.nan), plain({"a": [1]})]
)
def test_the_same_as_itself(value):
    assert same(value, json.loads(json.dumps(value)))
    assert same(freeze(value), value)


def test_tuples_and_lists_are_one_kind():
    assert same((1, (2,)), [1, [2]])
    assert freeze([1, [2, [3]]]) == (1, (2, (3,)))


def test_show_writes_tuples_and_cuts():
    assert show([1, [2]]) == "(1, (2,))"
    assert len(show(list(range(1000)))) == 160
