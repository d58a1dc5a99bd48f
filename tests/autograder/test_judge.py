"""The judge alone: which messages count, and that nothing malformed earns or breaks anything."""

from __future__ import annotations

import json
import random

import pytest

from autograder.judge import attempt_name, judge, new_seed, sheet
from glassbox.tasks.compare import expected
from glassbox.tasks.model import Property, Task


def _oracle(a: int, b: int) -> int:
    if b == 0:
        raise ZeroDivisionError("by zero")
    return a // b


def _whole(rng: random.Random) -> tuple[int, int]:
    return rng.randint(100, 10_000), rng.randint(1, 50)


def _by_zero(rng: random.Random) -> tuple[int, int]:
    return rng.randint(1, 10_000), 0


TASK = Task(
    id="lab0.divide",
    title="Divide",
    function="divide",
    points=4,
    minutes=1,
    difficulty=1,
    properties=(
        Property("whole numbers", 3, (), (_whole,), "why", "slip"),
        Property("division by zero", 1, (_by_zero,), (_whole,), "why", "slip"),
    ),
    oracle=_oracle,
    hints=(),
    read="nowhere",
)


def answered(wrong: tuple[int, ...] = ()):  # type: ignore[no-untyped-def]
    """A sheet with right answers, but for the properties named by place."""
    asked = sheet(TASK, "seed")
    for group, place in enumerate(asked.order):
        answers = [{"value": -1} if place in wrong else expected(TASK, case) for case in asked.drawn[place]]
        assert asked.take({"v": 1, "nonce": asked.nonce, "group": group, "answers": answers})
    return asked


def test_all_right_is_all_points() -> None:
    assert judge(answered(), "a").points == 4


@pytest.mark.parametrize(("wrong", "points"), [((0,), 1), ((1,), 3), ((0, 1), 0)])
def test_each_property_has_its_share_of_the_points(wrong: tuple[int, ...], points: float) -> None:
    assert judge(answered(wrong), "a").points == points


def test_no_answers_are_no_points() -> None:
    report = judge(sheet(TASK, "seed"), "a")
    assert (report.points, report.note) == (0, "no answers came from this cell")


def test_a_second_set_voids_its_group_even_if_both_are_right() -> None:
    asked = answered()
    group = asked.order.index(0)
    again = asked.received[group][0]
    asked.take({"v": 1, "nonce": asked.nonce, "group": group, "answers": again})
    assert judge(asked, "a").points == 1


@pytest.mark.parametrize(
    "change",
    [
        {"nonce": "0" * 32},
        {"v": 2},
        {"group": 2},
        {"group": -1},
        {"group": True},
        {"group": 0.0},
        {"group": "0"},
        {"answers": {}},
        {"answers": None},
    ],
)
def test_what_is_not_an_answer_set_does_not_count(change: dict[str, object]) -> None:
    asked = sheet(TASK, "seed")
    good = {"v": 1, "nonce": asked.nonce, "group": 0, "answers": [{"value": 1}]}
    assert not asked.take({**good, **change})
    assert not asked.received


@pytest.mark.parametrize("payload", [None, 1, "x", [], [[]], {"v": 1}])
def test_what_is_no_object_does_not_count(payload: object) -> None:
    assert not sheet(TASK, "seed").take(payload)


def test_a_set_of_the_wrong_length_is_wrong() -> None:
    asked = sheet(TASK, "seed")
    for group, place in enumerate(asked.order):
        short = [expected(TASK, case) for case in asked.drawn[place]][:-1]
        asked.take({"v": 1, "nonce": asked.nonce, "group": group, "answers": short})
    assert judge(asked, "a").points == 0


def test_hostile_answers_break_nothing_and_win_nothing() -> None:
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    kinds: list[object] = [None, True, 1.5, float("nan"), 10**4000, "x" * 10**6, deep, {}, {"died": True}]
    kinds += [{"value": deep}, {"value": None}, {"value": True}, {"value": {"float": "nan"}}]
    kinds += [{"value": {"dict": 3}}, {"raised": None}, {"raised": ["ZeroDivisionError"]}]
    kinds += [{"raised": "ZeroDivisionError", "value": 3}, {"raised": "UnpluggedError"}]
    rng = random.Random(1)
    for _ in range(300):
        asked = sheet(TASK, "seed")
        for group, place in enumerate(asked.order):
            asked.take(
                {
                    "v": 1,
                    "nonce": asked.nonce,
                    "group": group,
                    "answers": [rng.choice(kinds) for _ in asked.drawn[place]],
                }
            )
        assert judge(asked, "a").points == 0


def test_orders_hold_calls_and_a_nonce_and_nothing_else() -> None:
    seed = new_seed()
    asked = sheet(TASK, seed)
    orders = json.loads(asked.orders())
    assert orders.keys() == {"v", "nonce", "seconds", "groups"}
    assert sorted(map(len, orders["groups"])) == sorted(len(group) for group in asked.drawn)
    for secret in (seed, TASK.id, *(prop.name for prop in TASK.properties)):
        assert secret not in asked.orders()


def test_a_seed_gives_the_same_cases_a_fresh_nonce_and_a_name_that_hides_it() -> None:
    one, two = sheet(TASK, "seed"), sheet(TASK, "seed")
    assert (one.drawn, one.order) == (two.drawn, two.order)
    assert one.nonce != two.nonce
    assert sheet(TASK, "other").drawn != one.drawn
    assert len({new_seed() for _ in range(100)}) == 100
    assert "seed" not in attempt_name("seed")


def test_a_property_has_distinct_cases_and_every_corner_each_time() -> None:
    for seed in map(str, range(50)):
        groups = sheet(TASK, seed).drawn
        assert all(
            len(set(group)) == len(group) == prop.count
            for group, prop in zip(groups, TASK.properties, strict=True)
        )
        assert any(b == 0 for _, b in groups[1])


def test_an_unwritten_function_is_called_unwritten() -> None:
    asked = sheet(TASK, "seed")
    for group, place in enumerate(asked.order):
        answers = [{"raised": "NotImplementedError", "message": ""}] * len(asked.drawn[place])
        asked.take({"v": 1, "nonce": asked.nonce, "group": group, "answers": answers})
    report = judge(asked, "a")
    assert (report.points, report.note) == (0, "not written yet")
