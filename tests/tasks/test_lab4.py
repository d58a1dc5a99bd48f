"""What is of lab 4 alone: its oracles beside other truths, and the verifying of answers of which many are right."""

import itertools
import json
import random

import pytest
import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from glassbox.mini import sim
from glassbox.mini.c10.pieces import reference
from glassbox.tasks.capstone import Gathered
from glassbox.tasks.check import try_out
from glassbox.tasks.lab4 import TASKS, fitting, fusing, promoting, scheduling, waiting
from glassbox.tasks.model import cases

from .labs import LABS, tried

LAB = next(lab for lab in LABS if lab.name == "lab4")
PAIRS = [(name, category) for name in promoting.DTYPES for category in ("tensor", "0-d tensor")] + [
    (name, "number") for name in promoting.NUMBERS
]


def _operand(name, category):
    if category == "number":
        return promoting.NUMBERS[name]
    return torch.empty((2,) if category == "tensor" else (), dtype=getattr(torch, name), device="meta")


def _name(dtype):
    return str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_oracle_of_promotion_is_pytorchs_own_rule(count):
    """PyTorch has the rule once more, for the ops that it writes in Python, and for as many operands as one likes."""
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
    tuples = list(itertools.product(PAIRS, repeat=count))
    for operands in random.Random(0).sample(tuples, min(len(tuples), 1500)):
        given = [_operand(*pair) for pair in operands]
        dtype = elementwise_dtypes(*given, type_promotion_kind=kind)[1]
        assert promoting._true_result_type(operands) == _name(dtype), operands


def test_the_oracle_of_promotion_is_what_an_op_returns():
    tensors = [pair for pair in PAIRS if pair[1] != "number"]
    for operands in random.Random(1).sample(list(itertools.product(tensors, repeat=2)), 200):
        result = torch.add(*(_operand(*pair) for pair in operands))
        assert promoting._true_result_type(operands) == _name(result.dtype), operands


def _on_sim(program, host, ends, launch, call, gap):
    """The same program on the simulated device, a nanosecond for each unit; the answers are read off its clocks."""
    times, events = [], {}
    sim.reset()
    free = sim.CostModel(launch_us=0, api_us=1e-6, gap_us=0)
    sim.set_cost_model(free)
    streams = [sim.Stream() for _ in ends]
    for stream, end in zip(streams, ends, strict=True):
        with sim.stream(stream):
            sim.spin(end / 1000)
    sim.host_work(host / 1000)
    sim.set_cost_model(sim.CostModel(launch_us=launch / 1000, api_us=call / 1000, gap_us=gap / 1000))
    for kind, *given in program:
        if kind == "work":
            sim.host_work(given[0] / 1000)
        elif kind == "launch":
            with sim.stream(streams[given[0]]):
                sim.spin(given[1] / 1000)
        elif kind == "record":
            events.setdefault(given[0], sim.Event()).record(streams[given[1]])
        elif kind == "wait":
            streams[given[0]].wait_event(events.setdefault(given[1], sim.Event()))
        elif kind == "synchronize stream":
            streams[given[0]].synchronize()
        elif kind == "synchronize event":
            events[given[0]].synchronize()
        else:
            sim.synchronize()
        if kind in ("launch", "wait"):
            times.append(streams[given[0]]._state.end)
        elif kind == "record":
            times.append(events[given[0]]._mark[0])
        else:
            times.append(round(sim.now() * 1000))
    return times


def test_the_times_of_a_program_are_those_of_the_simulated_device():
    before = sim.cost_model()
    try:
        for seed in range(8):
            for group in cases(waiting.run_streams, f"device/{seed}"):
                for case in group:
                    assert _on_sim(*case) == waiting._true_times(*case), case
    finally:
        sim.set_cost_model(before)
        sim.reset()


PRODUCTS = {"mm_mat1_backward", "mm_mat2_backward"}  # of lab 3

KERNELS = ((5, ("a",), ("b",)), (4, ("c",), ("d",)), (3, ("b", "d"), ("e",)))
LAUNCHES = [("launch", 0, 0), ("launch", 1, 1), ("launch", 0, 2)]
HANDED_OVER = [*LAUNCHES[:2], ("record", "x", 1), ("wait", 0, "x"), LAUNCHES[2]]


@pytest.mark.parametrize(
    ("plan", "limit", "said"),
    [
        (HANDED_OVER, 8, ""),
        ([*HANDED_OVER[:2], ("record", (1, "x"), 1), ("wait", 0, (1, "x")), LAUNCHES[2]], 8, ""),
        ([("launch", 0, at) for at in range(3)], 12, ""),
        ([("launch", 0, at) for at in range(3)], 8, "done by 12, not by 8"),
        (LAUNCHES, 8, "nothing makes kernel 2 wait for kernel 1, which also uses 'd'"),
        # By the clock kernel 1 is done when kernel 2 begins, but only by the clock.
        (LAUNCHES, 99, "nothing makes kernel 2 wait"),
        (
            [LAUNCHES[0], ("wait", 0, "x"), LAUNCHES[1], ("record", "x", 1), LAUNCHES[2]],
            8,
            "kernel 2 wait for kernel 1",
        ),
        (
            [LAUNCHES[0], ("record", "x", 1), LAUNCHES[1], ("wait", 0, "x"), LAUNCHES[2]],
            8,
            "kernel 2 wait for kernel 1",
        ),
        ([*HANDED_OVER[:2], ("record", "x", 1), ("wait", 1, "x"), LAUNCHES[2]], 8, "kernel 2 wait for kernel 1"),
        ([("launch", 0, 2), ("launch", 0, 0), ("launch", 0, 1)], 12, "kernel 2 wait for kernel 0"),
        (HANDED_OVER[:-1], 8, "kernel 2 is never launched"),
        ([*HANDED_OVER, ("launch", 1, 1)], 99, "kernel 1 is launched twice"),
        ([("launch", 2, 0)], 8, "names no stream"),
        ([("launch", True, 0)], 8, "names no stream"),
        ([("launch", 0, 3)], 8, "names no kernel"),
        ([("launch", 0, -1)], 8, "names no kernel"),
        ([("launch", 0, 0.0)], 8, "names no kernel"),
        ([("start", 0, 0)], 8, "is no step"),
        ([("launch", 0)], 8, "is no step"),
        ([7], 8, "is no step"),
        (None, 8, "a plan is a list"),
        ("any plan without a race that is done by 8", 8, "a plan is a list"),
        ([("record", {"a": 1}, 0)], 8, "of the form"),
    ],
)
def test_a_plan_is_verified(plan, limit, said):
    from glassbox.tasks.compare import problem
    from glassbox.tasks.plain import plain

    found = problem(scheduling.two_streams, (KERNELS, limit), {"value": plain(plan)})
    assert (found == "") == (said == "")
    assert said in found


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_timetable_is_never_better_than_what_its_work_needs(seed):
    for group in cases(scheduling.two_streams, f"planted/{seed}"):
        for kernels, limit in group:
            assert 3 <= len(kernels) <= 8
            assert max(kernel[0] for kernel in kernels) <= limit
            assert sum(kernel[0] for kernel in kernels) <= 2 * limit


def test_every_property_of_the_schedule_asks_for_more_than_one_stream():
    for seed in range(20):
        for prop, group in zip(
            scheduling.two_streams.properties, cases(scheduling.two_streams, f"needs/{seed}"), strict=True
        ):
            longer = sum(sum(kernel[0] for kernel in kernels) > limit for kernels, limit in group)
            assert longer >= 4, prop.name


LEDGER = ((1, 5.0), (1000, 7.0), (2000, 9.0), (3000, 31.5), (5000, 15.0), (9000, 23.0))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((5.0, 0.002, 2500), ""),
        ((5.01, 0.002, 2505), ""),
        ((5.0, 0.002, 2499), "2499 is not the first size"),
        ((5.0, 0.002, 2502), "2502 is not the first size"),
        ((5.0, 0.003, 1667), "only"),
        ((5, 0.002, 2500), "a float, a float and an int"),
        ((5.0, 0.002, 2500.0), "a float, a float and an int"),
        ((5.0, 0.002, True), "a float, a float and an int"),
        ((5.0, 0.002), "of the form"),
        (None, "of the form"),
        ((float("nan"), 0.002, 2500), "a float, a float and an int"),
    ],
)
def test_a_line_is_verified(answer, said):
    from glassbox.tasks.compare import problem
    from glassbox.tasks.plain import plain

    found = problem(fitting.fit_cost, (LEDGER, 0.05), {"value": plain(answer)})
    assert (found == "") == (said == "")
    assert said in found


@pytest.mark.parametrize("seed", range(5))
def test_no_flat_line_and_no_line_through_nothing_passes_two_thirds(seed):
    for group in cases(fitting.fit_cost, f"flat/{seed}"):
        for ledger, noise in group:
            level = sorted(us for _, us in ledger)
            for us in level:
                near = sum(abs(each - us) <= 2 * noise for each in level)
                assert near < fitting._needed(ledger)


def test_what_is_wrong_with_a_plan_stands_in_the_check():
    shown = try_out(scheduling.two_streams, lambda kernels, limit: [("launch", 0, 0)])
    assert "what is wrong: kernel 1 is never launched" in str(shown)
    assert "What is wrong:" in shown._repr_html_()
    assert "any plan without a race that is done by" in str(shown)


def test_numbers_of_the_fused_cases_are_exact():
    """Halves and their products need no rounding, so every order of the same arithmetic gives the same floats."""
    for group in cases(fusing.fused_kernel, "exact"):
        for _, operands in group:
            assert all(2 * number == int(2 * number) for storage, *_ in operands for number in storage)


def test_the_lab_needs_nothing_that_comes_later():
    """Its cells import the mini-framework and the play cells' helper alone: no torch, no xray, no other lab."""
    ours = {line for line in LAB.imports if "glassbox" in line}
    assert ours == {
        "from glassbox import mini",
        "from glassbox.mini.aten import tensor_iterator",
        "from glassbox.mini.models import digits, mlp",
        "from glassbox.tasks.capstone import gathered",
        "from glassbox.tasks.play import running_on",
        "from glassbox.tasks import check as _check",
    }
    assert {line.split()[1] for line in LAB.imports - ours} == {"itertools", "math", "time"}


def test_cells_to_play_in_run_on_the_solutions(capsys, monkeypatch):
    """In order, as a notebook runs them; none says that something cannot run yet."""
    monkeypatch.chdir(LAB.folder)
    namespace = {}
    for cell in LAB.notebook["cells"]:
        if cell["cell_type"] == "code" and not cell["id"].startswith("check_"):
            exec("".join(cell["source"]), namespace)
    said = capsys.readouterr().out
    assert "not written yet" not in said
    assert "cannot run" not in said
    assert said.count("of the test pictures read right") == 2
    assert said.count("yours") == 9
    assert said.count("of the pictures right") == 2
    mine = namespace["mine"]
    assert {f"yours (lab{number})" for number in range(1, 5)} <= set(mine.whose.values())
    assert mine.calls["kernel_ready"] > 100
    assert mine.calls["execute"] == 20
    # What the text says of the calls: of the pieces of this lab the learner's own result_type spares one.
    spared = {name for name, whose in mine.whose.items() if whose == "yours (lab4)" and not mine.calls[name]}
    assert spared == {"promote_types"} == {name for name, count in namespace["calls"].items() if not count}
    # And of the clock: numbers in Python are fetched from the device, and the host waits for them.
    spans, own = [], Gathered({}, [])
    cell = next("".join(cell["source"]) for cell in LAB.notebook["cells"] if cell["id"] == "play_capstone")
    for names in (set(), {name for name, whose in mine.whose.items() if whose == "yours (lab4)"}, PRODUCTS):
        own.pieces = {name: (mine.pieces[name] if name in names else reference(name)) for name in mine.pieces}
        exec(cell, namespace | {"gathered": lambda lab, functions: own})
        spans.append(sim.now())
    assert spans[0] == spans[1] < spans[2]
    assert "two streams: 10" in said


def test_every_task_has_a_title_of_its_own_and_cases_that_json_can_carry():
    assert len({task.title for task in TASKS}) == len(TASKS)
    for task in TASKS:
        json.dumps(cases(task, "json"))


def test_the_example_of_each_question_is_right():
    """The examples are written by hand; the solutions say the same."""
    examples = {
        "broadcast_shapes": [(((4, 1), (3,)), (4, 3)), (((2, 1, 5), (7, 1)), (2, 7, 5)), (((0,), (1,)), (0,))],
        "result_type": [
            (((("int32", "tensor"), ("int64", "0-d tensor")),), "int32"),
            (((("int32", "tensor"), ("float64", "number")),), "float32"),
            (((("float32", "tensor"), ("float64", "0-d tensor"), ("int64", "tensor")),), "float32"),
            (((("uint8", "0-d tensor"), ("float64", "0-d tensor"), ("bool", "tensor")),), "float64"),
        ],
        "output_strides": [
            (((2, 3), ((1, 2),)), (1, 2)),
            (((2, 3), ((1, 10),)), (1, 2)),
            (((2, 3, 4), ((0, 0, 1), (1, 2, 6))), (1, 2, 6)),
        ],
        "coalesce_dimensions": [
            (((4, 3), ((1, 4),)), ((12,), ((1,),))),
            (((4, 3), ((1, 4), (1, 5))), ((4, 3), ((1, 4), (1, 5)))),
            (((4, 3), ((1, 4), (0, 0))), ((12,), ((1,), (0,)))),
            (((4, 1, 3), ((1, 77, 4),)), ((12,), ((1,),))),
        ],
        "run_streams": [
            (
                (
                    (
                        ("launch", 0, 20),
                        ("record", 7, 0),
                        ("wait", 1, 7),
                        ("launch", 1, 5),
                        ("synchronize stream", 1),
                    ),
                    0,
                    (0, 0),
                    4,
                    1,
                    1,
                ),
                [25, 25, 25, 31, 31],
            )
        ],
        "fused_kernel": [
            (
                (("add", ("mul", 0, 0), 1), (((2.0, 3.0), (2,), (1,), 0), ((10.0,), (), (), 0))),
                ((2,), [14.0, 19.0], (4, 2), (8, 4)),
            )
        ],
        "cache_lines": [
            (((3, 8), (8, 1), 0, 4, 32), (3, 3, (0, 1))),
            (((8,), (16,), 3, 4, 64), (8, 8, (0,))),
            (((2, 4), (0, 1), 2, 8, 32), (2, 2, (1, 0))),
        ],
    }
    for name, rows in examples.items():
        for case, expected in rows:
            assert LAB.solved[name](*case) == expected, (name, case)


def test_a_constant_text_is_no_answer_to_a_verified_task():
    """The oracle's own words are not an answer either."""
    for name in ("two_streams", "fit_cost"):
        task = LAB.remembering[name]
        assert not any(result.won for result in tried(task, task.oracle, "words"))
