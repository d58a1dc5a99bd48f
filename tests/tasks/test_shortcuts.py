"""Other ways of thinking than the solutions' own, some right and some short cuts: the labs tell them apart."""

import pytest

from glassbox.tasks.check import PUBLIC_SEED
from glassbox.tasks.compare import points

from .labs import LABS, tried

RIGHT = [(lab, *row) for lab in LABS for row in lab.table.RIGHT]
WRONG = [(lab, *row) for lab in LABS for row in lab.table.WRONG]
TRANSCRIBED = [(lab, *row) for lab in LABS for row in getattr(lab.table, "TRANSCRIBED", [])]


def _named(value):
    return "f" if callable(value) else str(value)


@pytest.mark.parametrize(("lab", "name", "way", "function"), RIGHT, ids=_named)
def test_another_right_way_wins_everything(lab, name, way, function, full):
    for seed in range(lab.seeds(full)):
        results = tried(lab.remembering[name], function, f"seed/{seed}")
        lost = [result for result in results if not result.won]
        assert not lost, (seed, lost[0].prop.name, lost[0].simplest)


@pytest.mark.parametrize(("lab", "name", "way", "function"), WRONG, ids=_named)
def test_a_short_cut_costs_points_on_nearly_every_seed(lab, name, way, function, full):
    seeds = lab.seeds(full)
    task = lab.remembering[name]
    missed = [s for s in range(seeds) if all(r.won for r in tried(task, function, f"seed/{s}"))]
    assert len(missed) <= seeds // 100, f"goes unnoticed with {len(missed)} of {seeds} seeds"


@pytest.mark.parametrize(("lab", "name", "way", "function"), WRONG, ids=_named)
def test_a_short_cut_shows_in_the_open_check(lab, name, way, function):
    assert not all(result.won for result in tried(lab.remembering[name], function, PUBLIC_SEED))


@pytest.mark.parametrize(("lab", "name", "way", "function", "won"), TRANSCRIBED, ids=_named)
def test_what_the_mini_framework_has_wins_a_fifth_at_most(lab, name, way, function, won, full):
    """It wins what is said of it, so that it is a faithful copy, and no more."""
    task = lab.remembering[name]
    for seed in [PUBLIC_SEED, *(f"seed/{nr}" for nr in range(lab.seeds(full)))]:
        results = tried(task, function, seed)
        assert {result.prop.name for result in results if result.won} == won, seed
        assert points(task, results) <= task.points / 5, seed
