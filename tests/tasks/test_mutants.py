"""Learners' slips, planted into the solutions: each loses points, and only those for what it misses."""

import pytest

from glassbox.tasks.check import PUBLIC_SEED

from .labs import EACH_SLIP, LABS, tried

EACH_LOSS = [(lab, *pair) for lab in LABS for pair in lab.table.LOST]


@pytest.mark.parametrize(("lab", "name", "slip"), EACH_SLIP, ids=str)
def test_a_slip_costs_points_on_nearly_every_seed(lab, name, slip, full):
    planted = lab.planted(name, slip)
    seeds = lab.seeds(full)
    task = lab.remembering[name]
    missed = [s for s in range(seeds) if all(r.won for r in tried(task, planted, f"seed/{s}"))]
    assert len(missed) <= seeds // 100, f"goes unnoticed with {len(missed)} of {seeds} seeds"


@pytest.mark.parametrize(("lab", "name", "slip"), EACH_SLIP, ids=str)
def test_a_slip_shows_in_the_open_check(lab, name, slip):
    results = tried(lab.remembering[name], lab.planted(name, slip), PUBLIC_SEED)
    assert not all(result.won for result in results)


@pytest.mark.parametrize("lab", LABS, ids=str)
def test_core_tasks_have_eight_slips_and_more_and_extensions_five(lab):
    for name in lab.names:
        least = 8 if name in lab.core else 5
        assert sum(row[0] == name for row in lab.table.SLIPS) >= least, name


@pytest.mark.parametrize(("lab", "name", "slip"), EACH_LOSS, ids=str)
def test_a_slip_loses_only_the_properties_that_name_it(lab, name, slip, full):
    planted = lab.planted(name, slip)
    for seed in range(lab.seeds(full)):
        results = tried(lab.remembering[name], planted, f"seed/{seed}")
        assert {result.prop.name for result in results if not result.won} == lab.table.LOST[name, slip], seed
