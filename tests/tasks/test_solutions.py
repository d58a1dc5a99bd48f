"""The labs as wholes: solutions right on every seed, points that add up, extensions that nothing gives away."""

import ast
import inspect
from pathlib import Path

import pytest

from glassbox import mini
from glassbox.mini.c10 import pieces
from glassbox.tasks import catalogue, compare
from glassbox.tasks.model import cases
from glassbox.tasks.plain import plain

from .labs import EACH_CORE, EACH_EXTENSION, EACH_TASK, LABS, SOLUTIONS, tried

SHARED = Path(inspect.getfile(mini)).parents[1]
SHARES = [(lab, *row) for lab in LABS for row in lab.table.SHARES]
EACH_PIECE = [(lab, name) for lab, name in EACH_CORE if lab.remembering[name].piece]


def _seeds(lab, full):
    return [f"seed/{number}" for number in range(lab.seeds(full, 1000, 12))]


def test_each_lab_with_solutions_is_tested():
    assert [lab.folder for lab in LABS] == sorted(path for path in SOLUTIONS.iterdir() if path.is_dir())


@pytest.mark.parametrize(("lab", "name"), EACH_TASK, ids=str)
def test_the_solution_wins_every_property_on_every_seed(lab, name, full):
    for seed in _seeds(lab, full):
        results = tried(lab.remembering[name], lab.solved[name], seed)
        lost = [(result.prop.name, result.simplest) for result in results if not result.won]
        assert not lost, (seed, lost)


@pytest.mark.parametrize(("lab", "name"), EACH_PIECE, ids=str)
def test_the_piece_of_the_mini_framework_wins_every_property_on_every_seed(lab, name, full):
    task = lab.remembering[name]
    taken = getattr(lab.table, "AS_PIECE", {}).get(name, lambda piece: piece)
    for seed in _seeds(lab, full):
        results = tried(task, taken(pieces.reference(task.piece)), seed)
        lost = [(result.prop.name, result.simplest) for result in results if not result.won]
        assert not lost, (seed, lost)


@pytest.mark.parametrize("lab", LABS, ids=str)
def test_the_order_of_the_tasks_and_their_points(lab):
    assert [(task.function, task.points) for task in lab.tasks] == list(lab.table.POINTS.items())
    core = sum(task.points for task in lab.tasks if task.function in lab.core)
    assert (core, sum(task.points for task in lab.tasks)) == (50, 100)


@pytest.mark.parametrize("lab", LABS, ids=str)
def test_core_tasks_rebuild_pieces_and_extensions_have_none(lab):
    without = getattr(lab.table, "CORE_WITHOUT_PIECE", ())
    names = getattr(lab.table, "PIECES", {})
    expected = [names.get(name, name) if name in lab.core and name not in without else None for name in lab.names]
    assert [task.piece for task in lab.tasks] == expected
    assert {task.piece for task in lab.tasks} - {None} <= set(mini.pieces())


@pytest.mark.parametrize("lab", LABS, ids=str)
def test_the_catalogue_finds_the_tasks_by_lab_folder_and_id(lab):
    assert list(catalogue.tasks(lab.folder.name).values()) == list(lab.tasks)
    for task in lab.tasks:
        assert catalogue.find(task.id) is task


@pytest.mark.parametrize(("lab", "name"), EACH_TASK, ids=str)
def test_each_task_says_what_a_learner_needs(lab, name):
    task = lab.remembering[name]
    assert task.id == f"{lab.name}.{name}"
    assert 3 <= len(task.properties) <= 5
    assert len({prop.name for prop in task.properties}) == len(task.properties)
    assert 2 <= len(task.hints) <= 3
    assert 1 <= task.difficulty <= 5
    assert task.minutes > 0
    assert task.read.startswith(lab.table.READ)
    assert all(prop.why and prop.slip and prop.weight > 0 for prop in task.properties)


@pytest.mark.parametrize(("lab", "name"), EACH_TASK, ids=str)
def test_errors_are_at_most_a_third_of_a_property(lab, name, full):
    task = lab.remembering[name]
    for seed in range(lab.seeds(full)):
        for prop, group in zip(task.properties, cases(task, f"shares/{seed}"), strict=True):
            truths = [compare.expected(task, case) for case in group]
            raised = [truth["message"] for truth in truths if "raised" in truth]
            assert len(raised) <= len(group) / 3, (prop.name, raised)
            # An error of the case's maker is no error that a learner is asked for.
            assert not any("out of bounds for storage" in message for message in raised), prop.name


def in_words(value):
    """A name that is the same in every process that shares the tests out."""
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(("lab", "name", "kind", "least"), SHARES, ids=in_words)
def test_both_kinds_of_answer_have_sizeable_shares_in_every_property(lab, name, kind, least, full):
    """True and False, strides and None, copies and views."""
    task = lab.remembering[name]
    for seed in range(lab.seeds(full, least=5)):
        for prop, group in zip(task.properties, cases(task, f"shares/{seed}"), strict=True):
            truths = [compare.expected(task, case) for case in group]
            share = sum(bool(kind(truth["value"])) for truth in truths if "value" in truth) / len(group)
            assert least <= share <= 1 - least, (prop.name, share)


@pytest.mark.parametrize(("lab", "name"), EACH_TASK, ids=str)
def test_a_table_of_other_seeds_cases_never_covers_a_property(lab, name, full):
    """Who has collected the cases of many attempts still meets new ones in every property of the next."""
    task = lab.remembering[name]
    known = [set() for _ in task.properties]
    for seed in range(lab.seeds(full, 3000, 60)):
        for table, group in zip(known, cases(task, f"table/{seed}"), strict=True):
            table.update(group)
    for seed in range(100 if full else 10):
        for prop, table, group in zip(task.properties, known, cases(task, f"next/{seed}"), strict=True):
            assert not table.issuperset(group), prop.name


@pytest.mark.parametrize(("lab", "name"), EACH_TASK, ids=str)
def test_cases_are_small_and_may_cross(lab, name):
    for seed in range(10):
        for group in cases(lab.remembering[name], f"small/{seed}"):
            for case in group:
                plain(case)
                assert len(repr(case)) < 3000


def _definitions():
    """Every function and class in shared/glassbox but outside the tasks."""
    for path in SHARED.rglob("*.py"):
        if "tasks" in path.relative_to(SHARED).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield path, node.name


@pytest.mark.parametrize("lab", LABS, ids=str)
def test_nothing_outside_the_tasks_is_named_like_an_extension(lab):
    words = (*lab.table.TELLING, *lab.extensions)
    found = [(path, name) for path, name in _definitions() if any(word in name for word in words)]
    assert found == []


@pytest.mark.parametrize(("lab", "name"), EACH_EXTENSION, ids=str)
def test_no_function_near_it_answers_an_extension(lab, name):
    """Tried, not looked for: each function with plain numbers in and out, on the extension's own cases."""
    functions = [
        function
        for module in lab.table.NEAR
        for function in vars(module).values()
        if inspect.isfunction(function) and function.__module__ == module.__name__
    ]
    assert len(functions) > 10
    for function in functions:
        results = tried(lab.remembering[name], function, "near")
        assert not any(result.won for result in results), function.__name__
