"""What is of lab 3 alone: its oracles beside other truths, what is verified, and the capstone on a learner's pieces."""

import json
import subprocess
import sys

import pytest
import torch

from glassbox import mini
from glassbox.tasks import capstone
from glassbox.tasks.capstone import as_pieces, gathered
from glassbox.tasks.compare import problem
from glassbox.tasks.lab3 import TASKS, counting, finding, planting, running
from glassbox.tasks.model import cases
from glassbox.tasks.plain import plain
from glassbox.tasks.play import running_on

from .labs import LABS, SOLUTIONS

LAB = next(lab for lab in LABS if lab.name == "lab3")
TASK = {task.function: task for task in TASKS}
PLUGGED = ("unbroadcast", "product_backward", "unary_backward", "count_dependencies", "run_backward")


def test_the_tasks_come_without_torch_and_without_the_mini_framework():
    code = "import sys, glassbox.tasks.lab3; print([m for m in sys.modules if m in ('torch', 'glassbox.mini')])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip() == "[]", ended.stderr


def _in_torch(next_edges):
    """The graph with PyTorch's own nodes; the steps' places are in the order in which they can be made."""
    tensors = {}

    def made(place):
        if place not in tensors:
            edges = next_edges[place]
            if not any(to is not None for to in edges):
                tensors[place] = torch.zeros((), requires_grad=True)
            else:
                given = [torch.zeros(()) if to is None else made(to) for to in edges]
                tensors[place] = running._step().apply(lambda: None, [1.0] * len(given), *given)
        return tensors[place]

    for place in range(len(next_edges)):
        made(place)
    return tensors


def test_the_counts_are_those_of_pytorchs_graph():
    """PyTorch shows nobody its counts, but its edges."""
    for group in cases(counting.count_dependencies, "torch"):
        for roots, next_edges in group:
            tensors = _in_torch(next_edges)
            nodes = {torch.autograd.graph.get_gradient_edge(t).node: place for place, t in tensors.items()}
            met = {torch.autograd.graph.get_gradient_edge(tensors[root]).node for root in roots}
            counts, todo = [0] * len(next_edges), list(met)
            while todo:
                for node, _ in todo.pop().next_functions:
                    if node is not None:
                        counts[nodes[node]] += 1
                        if node not in met:
                            met.add(node)
                            todo.append(node)
            assert counts == counting._true_dependencies(roots, next_edges)


def test_pytorchs_engine_takes_the_larger_number_whatever_was_made_last():
    """Two steps that wait for nothing but the root; the older one has the larger number."""
    nodes = ((), ((0, 1),), ((0, 1),), ((1, 1), (2, 1)))
    assert running._true_run(nodes, (None, 5, 2, 9), ((3, 1),), (None,) * 4)[0] == [3, 1, 2, 0]
    assert running._true_run(nodes, (None, 2, 5, 9), ((3, 1),), (None,) * 4)[0] == [3, 2, 1, 0]


def test_numbers_come_from_one_thread_or_from_two():
    """In some cases the larger number is always the later step, in others not."""
    kinds = set()
    for group in cases(running.run_backward, "threads"):
        for nodes, numbers, _, _ in group:
            steps = [number for number in numbers if number is not None]
            assert len(set(steps)) == len(steps) == sum(map(bool, nodes))
            kinds.add(steps == sorted(steps))
    assert kinds == {True, False}


@pytest.mark.parametrize("seed", range(3))
def test_a_formula_is_right_everywhere_or_off_in_a_good_part_of_the_domain(seed):
    for group in cases(finding.wrong_derivatives, f"planted/{seed}"):
        for (table,) in group:
            for entry in table:
                for name, off in finding._differences(entry).items():
                    assert off.isfinite().all()
                    share = float((off > 1e-2).double().mean())
                    assert share > 0.1 or float(off.max()) < 1e-9, (entry, name, share)


def test_the_slopes_called_right_are_right_and_the_others_wrong():
    import random

    rng = random.Random(3)
    for make in (*planting.ONE, *planting.TWO, *planting.CORNERS, planting.LEFT, planting.RIGHT):
        for _ in range(4):
            made = make(rng)
            for name, slope in made.slopes.items():

                def off(expression, made=made, name=name):
                    entry = made.forward, ((name, ("mul", "grad", expression)),), made.domains
                    return float(finding._differences(entry)[name].max())

                assert off(slope.right) < 1e-9
                assert all(off(expression) > 1e-2 for expression in (*slope.wrong, *slope.partly))


def _said(name, case, answer):
    return problem(TASK[name], case, {"value": plain(answer)})


DUALS = ((("mul", 0, 0),), (3.0,), (1.0,))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (((3.0, 1.0), (9.0, 6.0)), ""),
        (((3, 1), (9, 6.0000000001)), ""),
        (((3.0, 1.0), (9.0, 3.0)), "the tangent of number 1 is 3, it should be 6"),
        (((3.0, 1.0), (6.0, 6.0)), "the value of number 1 is 6, it should be 9"),
        (((3.0, 1.0),), "2 pairs are asked for"),
        (((3.0, 1.0), (9.0, True)), "is not a number"),
        (((3.0, 1.0), (9.0, float("nan"))), "is not a number"),
        (None, "of the form"),
    ],
)
def test_dual_numbers_are_verified(answer, said):
    found = _said("dual_numbers", DUALS, answer)
    assert (found == "") == (said == "")
    assert said in found


def test_the_open_check_of_dual_numbers_shows_numbers_and_no_warning():
    """In a process of its own, since torch warns once."""
    code = (
        "from glassbox.tasks.catalogue import find\nfrom glassbox.tasks.check import try_out\n"
        "print(try_out(find('lab3.dual_numbers'), lambda program, inputs, tangents: tuple(zip(inputs, tangents))))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.stderr == ""
    assert "expected ((" in " ".join(ended.stdout.split())
    assert "pairs are asked for" in ended.stdout


BLOCK = ((((2,),), ((3,),)),), ((11,), (38,)), ((1,), (10,))
UNDONE = ((1,), (5,)), ((31,), (72,)), ((((155,),), ((110,),)),)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (UNDONE, ""),
        ((((1.0,), (5.0,)), *UNDONE[1:]), ""),
        ((((5,), (1,)), *UNDONE[1:]), "the blocks make"),
        ((((1,), (5,), (0,)), *UNDONE[1:]), "two tuples"),
        ((((1, 0), (5, 0)), *UNDONE[1:]), "as long as"),
        ((UNDONE[0], ((1,), (10,)), UNDONE[2]), "gradients of the inputs should be"),
        ((*UNDONE[:2], ((((110,),), ((155,),)),)), "gradients of the weights should be"),
        ((*UNDONE[:2], ()), "gradients of the weights should be"),
        (UNDONE[:2], "of the form"),
        ("any text", "of the form"),
    ],
)
def test_what_a_block_came_from_is_verified(answer, said):
    found = _said("reversible_backward", BLOCK, answer)
    assert (found == "") == (said == "")
    assert said in found


def test_every_task_has_a_title_of_its_own_and_cases_that_json_can_carry():
    assert len({task.title for task in TASKS}) == len(TASKS)
    for task in TASKS:
        json.dumps(cases(task, "json"))


def test_the_examples_of_each_question_are_right():
    """They are written by hand; the solutions say the same."""
    grad = ((1, 2), (3, 4))
    run = (((), ((0, 3),), ((1, 2), (0, 5))), (None, 0, 1), ((2, 1),))
    none = ((), ((0, None),), ((1, 2), (0, 5)))
    exp = (("parameter", "w"), ("exp", "y", "w"))
    product = ("mul", "x", "y"), (("x", ("mul", "grad", "y")), ("y", ("mul", "grad", "y")))
    square = (("x", -2.0, 2.0), ("y", -2.0, 2.0))
    examples = {
        "unbroadcast": [
            (((3,), (4, 3)), (0,)),
            (((4, 1, 5), (4, 3, 5)), (1,)),
            (((1, 5), (2, 3, 5)), (0, 1)),
            (((3,), (4, 1)), None),
        ],
        "product_backward": [
            (
                ("mul", grad, ((5, 6), (7, 8)), ((10, 100),), ((2, 2), (1, 2))),
                (((10, 200), (30, 400)), ((26, 44),)),
            ),
            (("mul", grad, None, ((10, 100),), ((2, 2), None)), (((10, 200), (30, 400)), None)),
            (("mm", grad, ((5,), (6,)), ((7, 8),), ((2, 1), (1, 2))), (((23,), (53,)), ((23, 34),))),
        ],
        "unary_backward": [
            (("sum", (5, 6), ((2, 3), 1, False)), ((5, 5, 5), (6, 6, 6))),
            (("relu", ((5, 6),), ((0, 2),)), ((0, 6),)),
            (("softmax", ((4, 0),), (((0.5, 0.5),), 1)), ((1.0, -1.0),)),
        ],
        "count_dependencies": [
            (((2,), ((), (0, 0), (1, 0))), (3, 1, 0)),
            (((1,), ((), (0, None), (0, 1))), (1, 0, 0)),
        ],
        "run_backward": [
            ((*run, (None,) * 3), ((2, 1, 0), (11, None, None))),
            ((none, *run[1:], (4, None, None)), ((2, 1, 0), (9, None, None))),
        ],
        "trace_versions": [
            (((*exp, ("add_", "y"), ("version", "y"), ("backward", "y")),), (1, "changed")),
            (
                ((exp[0], ("sin", "y", "w"), ("add_", "y"), ("version", "y"), ("backward", "y")),),
                (1, "fine"),
            ),
            (((*exp, ("data", "d", "y"), ("add_", "d"), ("version", "y"), ("backward", "y")),), (0, "fine")),
            (((*exp, ("backward", "y"), ("backward", "y")),), ("fine", "freed")),
        ],
        "running_product": [
            (((2, 3, 5), (1, 1, 1)), ((2, 6, 30), (19, 12, 6))),
            (((2, 0, 5), (1, 1, 1)), ((2, 0, 0), (1, 12, 0))),
            (((), ()), ((), ())),
        ],
        "wrong_derivatives": [
            ((((*product, square),),), ((0, "y"),)),
            ((((*product, square), (("abs", "x"), (("x", "grad"),), (("x", -1.0, 1.0),))),), ((0, "y"), (1, "x"))),
        ],
    }
    for name, rows in examples.items():
        for case, expected in rows:
            task = LAB.remembering[name]
            for given in (LAB.solved[name](*case), task.oracle(*case)):
                assert plain(task.canon(case, given)) == plain(task.canon(case, expected)), (name, case)
    for name, case, answer in (
        (
            "dual_numbers",
            ((("mul", 0, 1), ("add", 2, 0)), (2.0, 3.0), (1.0, 0.0)),
            ((2.0, 1.0), (3.0, 0.0), (6.0, 3.0), (8.0, 4.0)),
        ),
        (
            "dual_numbers",
            ((("pow", 0, 2), ("detach", 1), ("mul", 2, 0)), (3.0,), (1.0,)),
            ((3.0, 1.0), (9.0, 6.0), (9.0, 0.0), (27.0, 9.0)),
        ),
        ("reversible_backward", BLOCK, UNDONE),
    ):
        assert _said(name, case, answer) == ""


def test_the_lab_needs_nothing_that_comes_later():
    ours = {line for line in LAB.imports if "glassbox" in line}
    assert ours == {
        "from glassbox import mini",
        "from glassbox.mini.models import digits, mlp",
        "from glassbox.tasks.capstone import gathered",
        "from glassbox.tasks.play import running_on",
        "from glassbox.tasks import check as _check",
    }
    assert {line.split()[1] for line in LAB.imports - ours} == {"math", "random"}


def _network(hook=False):
    """Losses and gradients of a few steps of a small network with a shortcut."""
    mini.manual_seed(0)
    first, second = mini.nn.Linear(4, 4), mini.nn.Linear(4, 3)
    parameters = [*first.parameters(), *second.parameters()]
    optimizer = mini.optim.SGD(parameters, lr=0.1, momentum=0.5)
    x, target, scale = mini.randn(6, 4), mini.randint(0, 3, (6,)), mini.ones(1, 4, requires_grad=True)
    losses = []
    for _ in range(3):
        h = x + first(x * scale).relu()
        loss = mini.nn.functional.cross_entropy(second(h), target) + h.sum(1).square().mean() / 50
        optimizer.zero_grad()
        if hook:
            h.register_hook(lambda grad: grad * 3)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.grad.tolist() for p in (*parameters, scale)]


def _close(a, b):
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(_close(x, y) for x, y in zip(a, b, strict=True))
    return abs(a - b) < 1e-5


@pytest.mark.parametrize("names", [(name,) for name in PLUGGED] + [PLUGGED], ids="+".join)
def test_the_framework_learns_the_same_on_the_solutions(names):
    own = _network()
    with mini.using(**as_pieces(*(LAB.solved[name] for name in names))):
        assert _close(_network(), own)


@pytest.mark.parametrize("name", PLUGGED)
def test_a_slip_in_a_piece_is_felt_by_the_framework(name):
    """So the pieces are really run: nothing works, or something else comes out."""

    def broken(*args):
        raise ZeroDivisionError(name)

    broken.__name__ = name
    with pytest.raises(ZeroDivisionError, match=name), mini.using(**as_pieces(broken)):
        x = mini.ones(2, 3, requires_grad=True)
        ((x @ mini.ones(3, 2)).sum(0) + mini.ones(4, 2, requires_grad=True)).sum().backward()
        mini.ones(2, 3).sum_to_size(1, 3)


def test_what_the_learners_engine_cannot_do_is_the_frameworks():
    """Hooks, gradients of chosen inputs, gradients of gradients, a graph that is kept."""
    hooked = _network(hook=True)
    assert not _close(hooked, _network())
    with mini.using(**as_pieces(*(LAB.solved[name] for name in PLUGGED))):
        assert _close(_network(hook=True), hooked)
        x = mini.tensor([[1.0, 2.0]], requires_grad=True)
        y = (x @ x.t()).sum()
        (first,) = mini.autograd.grad(y, x, create_graph=True)
        (second,) = mini.autograd.grad(first.sum(), x)
        assert (first.tolist(), second.tolist()) == ([[2.0, 4.0]], [[2.0, 2.0]])
        z = (x * x).sum()
        z.backward(retain_graph=True)
        z.backward()
        assert x.grad.tolist() == [[4.0, 8.0]]
        with pytest.raises(RuntimeError, match="second time"):
            z.backward()


def test_only_functions_of_the_labs_become_pieces():
    with pytest.raises(ValueError, match="dual_numbers is no piece"):
        as_pieces(LAB.solved["dual_numbers"])


def _laid_out(folder, names):
    """The labs' notebooks in folders of their own, with the solutions of `names` and nothing else."""
    for lab in LABS:
        if lab.folder.name not in capstone.FOLDERS:
            continue
        place = folder / lab.folder.name
        place.mkdir(parents=True)
        cells = [
            {"cell_type": "code", "metadata": {"nbgrader": {"solution": True}}, "source": names.get(name, source)}
            for name, source in lab.sources.items()
            if name in names or names.get("others")
        ]
        (place / f"{place.name}.ipynb").write_text(json.dumps({"cells": cells}))
    return folder


def test_pieces_are_gathered_from_the_notebooks_beside(tmp_path):
    expand = next(lab for lab in LABS if lab.name == "lab1").sources["expand"]
    half = expand.replace("### BEGIN SOLUTION", "return (0,) * len(size)")
    written = next(lab for lab in LABS if lab.name == "lab2").sources["key_set"]
    _laid_out(tmp_path, {"expand": half, "key_set": written, "permute": "def permute(shape, stride, dims):\n    raise"})
    found = gathered("lab3", {"unbroadcast": LAB.solved["unbroadcast"], "run_backward": 3}, tmp_path)
    assert set(found.yours) == {"key_bits", "unbroadcast"}
    assert found.whose["key_bits"] == "yours (lab2)"
    assert found.whose["unbroadcast"] == "yours (lab3)"
    assert any(note.startswith("lab1.expand: written, but") for note in found.notes)
    with running_on(found):
        x = mini.ones(2, 3, requires_grad=True)
        mini.ones(2, 3).sum_to_size(1, 3)
        x.sum().backward()
    assert found.calls["unbroadcast"] > 0
    assert found.calls["execute"] == 1
    shown = found.rows()
    assert {row["piece"] for row in shown[:2]} == {"key_bits", "unbroadcast"}
    assert {row["whose"] for row in shown} == {"yours (lab2)", "yours (lab3)", capstone.FRAMEWORKS}
    assert "pieces that were called are yours" in found._repr_html_()
    assert "lab1.expand" in repr(found)


def test_nothing_of_theirs_is_needed(tmp_path, capsys):
    """No notebook beside, no function written: the network learns on the framework's own pieces."""
    found = gathered("lab4", {}, tmp_path)
    assert (found.yours, len(found.notes)) == ([], 3)
    with running_on(found):
        assert _close(_network(), _network())
    assert capsys.readouterr().out == ""
    assert found.heading.startswith("0 of the ")
    assert {row["whose"] for row in found.rows()} == {capstone.FRAMEWORKS}


def test_a_notebook_that_cannot_be_read_is_no_reason_to_stop(tmp_path):
    (tmp_path / "lab1_storage").mkdir()
    (tmp_path / "lab1_storage" / "lab1_storage.ipynb").write_text("{")
    assert len(gathered("lab3", {}, tmp_path).notes) == 2


def test_cells_to_play_in_run_on_the_solutions(capsys, monkeypatch):
    """In order, as a notebook runs them; the earlier labs lie beside."""
    monkeypatch.chdir(SOLUTIONS / "lab3_autograd")
    namespace = {}
    for cell in LAB.notebook["cells"]:
        if cell["cell_type"] == "code" and not cell["id"].startswith("check_"):
            exec("".join(cell["source"]), namespace)
    said = capsys.readouterr().out
    assert "not written yet" not in said
    assert "cannot run" not in said
    assert said.count("of the test pictures read right") == 5
    assert "wrong: ['tanh', 'reciprocal']" in said
    assert "gradcheck: True" in said
    mine = namespace["mine"]
    assert {"yours (lab1)", "yours (lab2)", "yours (lab3)"} <= set(mine.whose.values())
    assert sum(mine.calls[name] for name in mine.yours) > 1000
    assert mine.notes == []
    last = float(said.split("loss ")[-1].split(",")[0])
    assert last < 0.6
