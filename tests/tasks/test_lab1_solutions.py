"""Lab 1 as a whole: solutions right on every seed, points that add up, extensions that nothing gives away."""

import ast
import inspect
import math
from pathlib import Path

import pytest

from glassbox import mini
from glassbox.mini.c10 import layout, pieces
from glassbox.tasks import catalogue, compare
from glassbox.tasks.lab1 import TASKS
from glassbox.tasks.lab1.cases import CELLS
from glassbox.tasks.model import cases

NAMES = [task.function for task in TASKS]
CORE = NAMES[:8]
EXTENSION = NAMES[8:]
SHARED = Path(inspect.getfile(mini)).parents[1]


@pytest.fixture
def seeds(full):
    return [f"solutions/{number}" for number in range(1000 if full else 20)]


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_wins_every_property_on_every_seed(name, lab1, solved, tried, seeds):
    for seed in seeds:
        results = tried(lab1[name], solved[name], seed)
        lost = [(result.prop.name, result.simplest) for result in results if not result.won]
        assert not lost, (seed, lost)


@pytest.mark.parametrize("name", CORE)
def test_the_piece_of_the_mini_framework_wins_every_property_on_every_seed(name, lab1, tried, seeds):
    piece = pieces.reference(lab1[name].piece)
    for seed in seeds:
        results = tried(lab1[name], piece, seed)
        lost = [(result.prop.name, result.simplest) for result in results if not result.won]
        assert not lost, (seed, lost)


def test_the_order_of_the_tasks_and_their_points():
    assert {task.function: task.points for task in TASKS} == {
        "contiguous_strides": 4,
        "address": 4,
        "is_contiguous": 6,
        "permute": 5,
        "slice_view": 8,
        "expand": 7,
        "view_strides": 10,
        "reshape": 6,
        "unfold": 9,
        "diagonal": 9,
        "channels_last_strides": 8,
        "aliased_indices": 11,
        "view_dtype": 13,
    }
    assert sum(task.points for task in TASKS[:8]) == sum(task.points for task in TASKS[8:]) == 50


def test_core_tasks_rebuild_pieces_and_extensions_have_none():
    assert [task.piece for task in TASKS] == CORE + [None] * 5
    assert set(CORE) <= set(mini.pieces())


def test_the_catalogue_finds_the_tasks_by_lab_folder_and_id():
    assert list(catalogue.tasks("lab1_storage").values()) == list(TASKS)
    assert catalogue.find("lab1.expand").function == "expand"


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_each_task_says_what_a_learner_needs(task):
    assert task.id == f"lab1.{task.function}"
    assert 3 <= len(task.properties) <= 4
    assert len({prop.name for prop in task.properties}) == len(task.properties)
    assert 2 <= len(task.hints) <= 3
    assert 1 <= task.difficulty <= 5
    assert task.minutes > 0
    assert task.read.startswith("notebook 01, ")
    assert all(prop.why and prop.slip and prop.weight > 0 for prop in task.properties)


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_at_most_a_third_of_a_property(name, lab1, full):
    task = lab1[name]
    for seed in range(200 if full else 5):
        for prop, group in zip(task.properties, cases(task, f"shares/{seed}"), strict=True):
            truths = [compare.expected(task, case) for case in group]
            raised = [truth["message"] for truth in truths if "raised" in truth]
            assert len(raised) <= len(group) / 3, (prop.name, raised)
            # An error of the case's maker is no error that a learner is asked for.
            assert not any("out of bounds for storage" in message for message in raised), prop.name


@pytest.mark.parametrize(("name", "least"), [("is_contiguous", 0.3), ("view_strides", 0.2), ("reshape", 0.2)])
def test_both_kinds_of_answer_have_sizeable_shares_in_every_property(name, least, lab1, full):
    """True and False, strides and None, copies and views."""
    task = lab1[name]
    for seed in range(200 if full else 5):
        for prop, group in zip(task.properties, cases(task, f"shares/{seed}"), strict=True):
            values = [
                truth["value"]
                for truth in (compare.expected(task, case) for case in group)
                if "value" in truth
            ]
            kind = {"is_contiguous": bool, "view_strides": lambda v: v is None, "reshape": lambda v: v[2]}[
                name
            ]
            share = sum(map(kind, values)) / len(group)
            assert least <= share <= 1 - least, (prop.name, share)


@pytest.mark.parametrize("name", NAMES)
def test_a_table_of_other_seeds_cases_never_covers_a_property(name, lab1, full):
    """Who has collected the cases of many attempts still meets new ones in every property of the next."""
    task = lab1[name]
    known = [set() for _ in task.properties]
    for seed in range(3000 if full else 60):
        for table, group in zip(known, cases(task, f"table/{seed}"), strict=True):
            table.update(group)
    for seed in range(100 if full else 10):
        for prop, table, group in zip(task.properties, known, cases(task, f"next/{seed}"), strict=True):
            assert not table.issuperset(group), prop.name


@pytest.mark.parametrize("name", NAMES)
def test_cases_are_small(name, lab1):
    """Layouts stay inside the oracle's storage, and lists of indices below what may cross."""
    for seed in range(10):
        for group in cases(lab1[name], f"small/{seed}"):
            for case in group:
                assert all(
                    isinstance(number, int | None) and abs(number or 0) < CELLS for number in _flat(case)
                )
                if name == "aliased_indices":
                    assert math.prod(case[0]) * (len(case[0]) + 1) < 4096


def _flat(value):
    return [n for item in value for n in _flat(item)] if isinstance(value, tuple) else [value]


def _definitions_and_names():
    """Every function, method, attribute and string key in shared/glassbox but outside the tasks."""
    for path in SHARED.rglob("*.py"):
        if "tasks" in path.relative_to(SHARED).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield path, node.name


def test_nothing_outside_the_tasks_is_named_like_an_extension():
    words = ("unfold", "diagonal", "channels_last", "aliased", "alias_of", "view_dtype", "sliding")
    found = [(path, name) for path, name in _definitions_and_names() if any(word in name for word in words)]
    assert found == []


@pytest.mark.parametrize("name", ["unfold", "diagonal", "channels_last", "memory_format"])
def test_a_mini_tensor_has_no_such_method(name):
    assert not hasattr(mini.Tensor, name)
    assert not hasattr(mini, name)
    assert not hasattr(layout, name)


def test_a_mini_tensor_cannot_be_viewed_as_another_dtype():
    with pytest.raises(Exception, match=r"."):
        mini.zeros(4, 4).view(mini.uint8)


@pytest.mark.parametrize("name", EXTENSION)
def test_no_function_of_the_layout_module_answers_an_extension(name, lab1, tried):
    """Tried, not looked for: each function with plain numbers in and out, on the extension's own cases."""
    functions = [
        f for f in vars(layout).values() if inspect.isfunction(f) and f.__module__ == layout.__name__
    ]
    assert len(functions) > 10
    for function in functions:
        results = tried(lab1[name], function, "layout")
        assert not any(result.won for result in results), function.__name__
