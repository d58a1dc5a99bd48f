"""The solutions notebook of lab 1 as nbgrader needs it, and as a learner meets it."""

import re

import nbformat
import pytest

from glassbox.tasks.lab1 import TASKS

CHECK = 'from glassbox.tasks import check as _check\n_check("{task.id}", {task.function})'


@pytest.fixture
def graded(notebook):
    """Every cell's nbgrader metadata by grade_id, with the cell."""
    return {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in notebook["cells"] if cell["metadata"]}


def _source(cell):
    return "".join(cell["source"])


def test_it_is_a_valid_notebook_without_outputs_or_machine(notebook):
    nbformat.validate(nbformat.from_dict(notebook))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    for cell in notebook["cells"]:
        assert re.fullmatch(r"[a-z0-9_]+", cell["id"])
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


def test_each_task_has_a_question_a_solution_and_a_check(notebook, graded):
    ids = [cell["id"] for cell in notebook["cells"]]
    for task in TASKS:
        at = ids.index(task.function)
        assert ids[at - 1 : at + 2] == [f"about_{task.function}", task.function, f"check_{task.function}"]
        assert graded[task.function]["metadata"]["nbgrader"] == {
            "grade": False,
            "grade_id": task.function,
            "locked": False,
            "schema_version": 3,
            "solution": True,
            "task": False,
        }
        check = graded[f"check_{task.function}"]
        assert check["metadata"]["nbgrader"] == {
            "grade": True,
            "grade_id": f"check_{task.function}",
            "locked": True,
            "points": task.points,
            "schema_version": 3,
            "solution": False,
            "task": False,
        }
        assert _source(check) == CHECK.format(task=task)


def test_the_tasks_stand_in_the_notebook_in_their_order_and_nothing_else_is_graded(graded):
    checks = [name for name, cell in graded.items() if cell["metadata"]["nbgrader"]["grade"]]
    assert checks == [f"check_{task.function}" for task in TASKS] + ["written_view_or_reshape"]


def test_automatic_points_sum_to_100_and_the_written_answer_counts_apart(graded):
    automatic = [
        cell["metadata"]["nbgrader"]["points"] for name, cell in graded.items() if name.startswith("check_")
    ]
    assert sum(automatic) == 100
    written = graded["written_view_or_reshape"]
    assert written["cell_type"] == "markdown"
    assert written["metadata"]["nbgrader"]["points"] == 5
    assert written["metadata"]["nbgrader"]["solution"]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.function)
def test_a_question_says_points_minutes_difficulty_and_hints(task, notebook):
    text = _source(next(cell for cell in notebook["cells"] if cell["id"] == f"about_{task.function}"))
    assert task.title in text
    assert (
        f"{task.points} points · about {task.minutes} minutes · difficulty {'●' * task.difficulty}○"
        in text + "○"
    )
    for hint in task.hints:
        assert hint in text
    assert text.count("<details>") == len(task.hints)


def test_every_answer_lies_in_a_solution_region(graded):
    """What is left after the regions are cut is the head, the docstring and nothing else."""
    for task in TASKS:
        source = _source(graded[task.function])
        head, body, tail = re.fullmatch(
            r"(.*?)    ### BEGIN SOLUTION\n(.*)\n    ### END SOLUTION(.*)", source, re.DOTALL
        ).groups()
        assert re.fullmatch(rf'def {task.function}\([a-z0-9_, ]+\):\n    """[^"]+"""\n', head)
        assert body.strip()
        assert tail == ""
    written = _source(graded["written_view_or_reshape"])
    assert written.startswith("### BEGIN SOLUTION")
    assert written.endswith("### END SOLUTION")


def test_nothing_outside_the_solution_cells_holds_a_solution(notebook, sources):
    """No telling line of a solution stands anywhere in what a learner gets."""
    given = "\n".join(
        _source(c) for c in notebook["cells"] if not c["metadata"].get("nbgrader", {}).get("solution")
    )
    lines = {
        line.strip()
        for source in sources.values()
        for line in source.splitlines()[2:]
        if len(line.strip()) > 30
    }
    assert len(lines) > 40
    assert [line for line in lines if line in given] == []


@pytest.mark.parametrize("name", [task.function for task in TASKS])
def test_a_task_is_solved_without_any_other_cell(name, sources, lab1, tried):
    """Only reshape may call what was written before, and says so."""
    namespace = {}
    if name == "reshape":
        for other in ("contiguous_strides", "view_strides"):
            exec(sources[other], namespace)
    exec(sources[name], namespace)
    assert all(result.won for result in tried(lab1[name], namespace[name], "alone"))
