"""The solutions notebooks as nbgrader needs them, and as a learner meets them."""

import re

import nbformat
import pytest

from .labs import EACH_TASK, LABS, tried

CHECK = 'from glassbox.tasks import check as _check\n_check("{task.id}", {task.function})'


EACH_LAB = pytest.mark.parametrize("lab", LABS, ids=str)


def _graded(lab):
    """Every graded cell by its grade_id."""
    return {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in lab.notebook["cells"] if cell["metadata"]}


def _source(cell):
    return "".join(cell["source"])


@EACH_LAB
def test_it_is_a_valid_notebook_without_outputs_or_machine(lab):
    notebook = lab.notebook
    nbformat.validate(nbformat.from_dict(notebook))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    for cell in notebook["cells"]:
        assert re.fullmatch(r"[a-z0-9_]+", cell["id"])
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@EACH_LAB
def test_each_task_has_a_question_a_solution_and_a_check(lab):
    graded = _graded(lab)
    ids = [cell["id"] for cell in lab.notebook["cells"]]
    for task in lab.tasks:
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


@EACH_LAB
def test_core_tasks_are_followed_by_a_cell_to_play_in(lab):
    ids = [cell["id"] for cell in lab.notebook["cells"]]
    for name in lab.core:
        assert ids[ids.index(name) + 2] == f"play_{name}"


@EACH_LAB
def test_the_tasks_stand_in_the_notebook_in_their_order_and_nothing_else_is_graded(lab):
    checks = [name for name, cell in _graded(lab).items() if cell["metadata"]["nbgrader"]["grade"]]
    assert checks == [f"check_{task.function}" for task in lab.tasks] + [lab.table.WRITTEN]


@EACH_LAB
def test_automatic_points_sum_to_100_and_the_written_answer_counts_apart(lab):
    graded = _graded(lab)
    automatic = [cell["metadata"]["nbgrader"]["points"] for name, cell in graded.items() if name.startswith("check_")]
    assert sum(automatic) == 100
    written = graded[lab.table.WRITTEN]
    assert written["cell_type"] == "markdown"
    assert written["metadata"]["nbgrader"]["points"] == 5
    assert written["metadata"]["nbgrader"]["solution"]


@pytest.mark.parametrize(("lab", "name"), EACH_TASK, ids=str)
def test_a_question_says_points_minutes_difficulty_and_hints(lab, name):
    task = lab.remembering[name]
    text = _source(next(cell for cell in lab.notebook["cells"] if cell["id"] == f"about_{name}"))
    assert task.title in text
    stars = "●" * task.difficulty + "○" * (5 - task.difficulty)
    assert f"{task.points:g} points · about {task.minutes} minutes · difficulty {stars}" in text
    for hint in task.hints:
        assert hint in text
    assert text.count("<details>") == len(task.hints)


@EACH_LAB
def test_every_answer_lies_in_a_solution_region(lab):
    """What is left after the regions are cut is the head, the docstring and nothing else."""
    graded = _graded(lab)
    for name in lab.names:
        head, body, tail = re.fullmatch(
            r"(.*?)    ### BEGIN SOLUTION\n(.*)\n    ### END SOLUTION(.*)", _source(graded[name]), re.DOTALL
        ).groups()
        assert re.fullmatch(rf'def {name}\([a-z0-9_, ]+\):\n    """[^"]+"""\n', head)
        assert body.strip()
        assert tail == ""
    written = _source(graded[lab.table.WRITTEN])
    assert written.startswith("### BEGIN SOLUTION")
    assert written.endswith("### END SOLUTION")


@EACH_LAB
def test_nothing_outside_the_solution_cells_holds_a_solution(lab):
    """No telling line of a solution stands anywhere in what a learner gets."""
    given = "\n".join(
        _source(c) for c in lab.notebook["cells"] if not c["metadata"].get("nbgrader", {}).get("solution")
    )
    lines = {
        line.strip() for source in lab.sources.values() for line in source.splitlines()[2:] if len(line.strip()) > 30
    }
    assert len(lines) > 40
    assert [line for line in lines if line in given] == []


@pytest.mark.parametrize(("lab", "name"), EACH_TASK, ids=str)
def test_a_task_is_solved_without_any_other_cell(lab, name):
    """A few may call what was written before, and say so."""
    namespace = lab.imported()
    for other in lab.table.CALLS.get(name, ()):
        exec(lab.sources[other], namespace)
    exec(lab.sources[name], namespace)
    assert all(result.won for result in tried(lab.remembering[name], namespace[name], "alone"))
