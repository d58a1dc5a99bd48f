"""Other ways of thinking than the solutions' own, some right and some short cuts: the labs tell them apart."""

import pytest

from glassbox.tasks.check import PUBLIC_SEED

from .labs import LABS, tried

RIGHT = [(lab, *row) for lab in LABS for row in lab.table.RIGHT]
WRONG = [(lab, *row) for lab in LABS for row in lab.table.WRONG]


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
