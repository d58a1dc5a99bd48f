"""Right or wrong: strict in kind, in canonical form, partial, and never an error over a strange answer."""

from dataclasses import replace

import pytest

from glassbox.tasks import answering
from glassbox.tasks.compare import Failure, compare, expected, points, right
from glassbox.tasks.model import Property, Task, cases


def _oracle(n):
    if n < 0:
        raise IndexError("below 0")
    return (n, [n, None])


PROPERTIES = tuple(
    Property(
        name,
        weight,
        corners=(lambda rng: (0,), lambda rng: (-1,)),
        draws=(lambda rng: (rng.randint(1, 99),),),
        why="why",
        slip="slip",
        count=6,
    )
    for name, weight in (("first", 1), ("second", 2))
)


@pytest.fixture
def task():
    return Task("lab0.t", "T", "t", 4, 1, 1, PROPERTIES, _oracle, ("hint",), "read")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"value": [3, [3, None]]}, True),
        ({"value": (3, (3, None))}, True),
        ({"value": [3.0, [3, None]]}, False),
        ({"value": [3, [3]]}, False),
        ({"value": None}, False),
        ({"value": [3, [3, None]], "raised": "IndexError"}, False),
        ({"raised": "IndexError"}, False),
        ({"notplain": "x"}, False),
        ({"timeout": True}, False),
        ({"died": True}, False),
        ({"skipped": True}, False),
        ({}, False),
        (None, False),
        ([3, [3, None]], False),
        ("value", False),
        ({"value": object()}, False),
        ({"value": {"a": 1}}, False),
        ({"value": [[[[[[[[[[[[[[[[[[[[3]]]]]]]]]]]]]]]]]]]]}, False),
        ({"value": 1 << 5000}, False),
    ],
)
def test_an_answer_where_a_value_is_asked(task, answer, verdict):
    assert right(task, (3,), expected(task, (3,)), answer) is verdict


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"raised": "IndexError", "message": "mine"}, True),
        ({"raised": "LookupError"}, False),
        ({"raised": "NotImplementedError"}, False),
        ({"raised": None}, False),
        ({"value": "IndexError"}, False),
        ({"value": None}, False),
        (None, False),
    ],
)
def test_an_answer_where_an_error_is_asked(task, answer, verdict):
    assert right(task, (-1,), expected(task, (-1,)), answer) is verdict


@pytest.mark.parametrize(
    "name", ["UnpluggedError", "NotImplementedError", "RecursionError", "MemoryError", "SystemExit"]
)
def test_some_exceptions_are_never_right(task, name):
    assert not right(task, (-1,), {"raised": name}, {"raised": name})


def test_an_oracle_that_falls_over_is_an_error_of_ours(task):
    def broken(n):
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        expected(Task("lab0.t", "T", "t", 4, 1, 1, PROPERTIES, broken, (), ""), (1,))


@pytest.mark.parametrize(
    "value", [None, 3, "text", [1], [[1]], [1, 2, 3, 4], [["a"], ["b"]], [[1], [2], None], [[], []]]
)
def test_canon_that_cannot_read_an_answer_makes_it_wrong(lab1, value):
    task = lab1["slice_view"]
    case = ((4,), (1,), 0, 0, 1, 3, 1)
    assert not right(task, case, expected(task, case), {"value": value})


def test_points_follow_the_weights(task):
    drawn = cases(task, "seed")
    good = [[answering.answer(_oracle, case) for case in group] for group in drawn]
    none = [[{"value": None}] * len(group) for group in drawn]
    assert points(task, compare(task, drawn, good)) == 4.0
    assert points(task, compare(task, drawn, [good[0], none[1]])) == 1.33
    assert points(task, compare(task, drawn, [none[0], good[1]])) == 2.67
    assert points(task, compare(task, drawn, none)) == 0


def test_a_group_that_is_missing_or_of_another_length_is_lost(task):
    drawn = cases(task, "seed")
    good = [[answering.answer(_oracle, case) for case in group] for group in drawn]
    for first in (None, [], good[0][:-1], good[0] * 2):
        lost, won = compare(task, drawn, [first, good[1]])
        assert not lost.won
        assert won.won


@pytest.mark.parametrize(
    ("truth", "yours", "said"),
    [
        ([65, 1, 5, 5], [65, 1, 5, 5.0], "5.0 is a float, an int is asked for"),
        ([[2, 3], [3, 1]], [[2, 3], [3, True]], "True is a bool, an int is asked for"),
        ([[2, 3], [3, 1]], [3, 1], "3 is an int, a tuple is asked for"),
        (7, [7], "(7,) is a tuple, an int is asked for"),
        (7, "7", "'7' is a string, an int is asked for"),
        (True, 1, "1 is an int, a bool is asked for"),
        (0.5, {"float": "nan"}, ""),
        (1, {"float": "inf"}, "{'float': 'inf'} is a float, an int is asked for"),
        ([65, 1, 5, 5], [65, 1, 5, 6], ""),
        ([1, 2], [1.0, 2, 3], ""),
        ([1, 2], None, ""),
        (None, [1, 2], ""),
        (3, 3, ""),
    ],
)
def test_a_value_of_another_kind_is_told_from_a_wrong_one(truth, yours, said):
    assert Failure((), {"value": truth}, {"value": yours}).unlike == said


def test_an_error_is_not_a_value_of_another_kind():
    assert Failure((), {"value": 3}, {"raised": "TypeError", "message": ""}).unlike == ""
    assert Failure((), {"raised": "IndexError"}, {"value": 3}).unlike == ""


def test_the_wrong_case_that_is_easiest_to_see_is_kept(lab1):
    """A short call of many cells or dimensions gives way to one that can be drawn."""
    task = lab1["permute"]
    group = [
        ((7, 7, 2), (14, 2, 1), (0, 1, 2)),
        ((), (), ()),
        ((2, 2, 2, 2), (8, 4, 2, 1), (0, 1, 2, 3)),
        ((2, 2), (2, 1), (0, 0)),
        ((12, 25), (250, 10), (-1, -2)),
        ((12, 12), (120, 10), (-1, -2)),
    ]
    order = [group[place] for place in (5, 4, 3, 2, 1, 0)]
    for left in range(len(order)):
        cases_left = order[left:]
        lost = compare(replace(task, properties=task.properties[:1]), [cases_left], [None])[0]
        assert lost.simplest.case == cases_left[0]
        lost = compare(replace(task, properties=task.properties[:1]), [cases_left[::-1]], [None])[0]
        assert lost.simplest.case == cases_left[0]


def test_without_a_drawing_the_shortest_call_is_kept(task):
    drawn = cases(task, "seed")
    results = compare(task, drawn, [[{"value": 5} for _ in group] for group in drawn])
    assert results[0].wrong == results[0].cases == len(drawn[0])
    assert len(repr(results[0].simplest.case)) == min(len(repr(case)) for case in drawn[0])
    assert results[0].simplest.yours == {"value": 5}


def test_a_case_that_was_skipped_is_kept_only_where_nothing_else_went_wrong(task):
    drawn = cases(task, "seed")
    longest = max(range(len(drawn[0])), key=lambda place: len(repr(drawn[0][place])))
    answers = [{"timeout": True} if place == longest else {"skipped": True} for place in range(len(drawn[0]))]
    lost, _ = compare(task, drawn, [answers, None])
    assert lost.simplest.case == drawn[0][longest]


def test_the_same_seed_draws_the_same_cases_and_no_case_twice(task, lab1):
    for one in (task, *lab1.values()):
        assert cases(one, "a") == cases(one, "a")
        assert cases(one, "a") != cases(one, "b")
        assert all(len(set(group)) == len(group) for group in cases(one, "a"))


def test_corners_are_drawn_every_time(task):
    for seed in range(20):
        assert all({(0,), (-1,)} <= set(group) for group in cases(task, str(seed)))
