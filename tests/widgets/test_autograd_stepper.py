"""Facts about the autograd stepper's Python side: what runs record, that PyTorch's engine goes the same way, the
pictures and the traits.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from traitlets import TraitError

from glassbox import mini, xray
from glassbox.draw.svg import mono_width
from glassbox.records.engine_run import PHASES, STATES, EngineRun
from glassbox.widgets.autograd_stepper import PROGRAMS, AutogradStepper, as_data
from glassbox.xray import engine_run
from glassbox.xray._engine_moments import as_text

SIMPLE: tuple[str, dict[str, Any]] = ("s = a + b\nz = s * c", {"a": 2, "b": 3, "c": 4})
MEET: tuple[str, dict[str, Any]] = ("p = a * b\nq = p + a\nr = q * p", {"a": 2, "b": 3})
# newest first matters: nothing but the order of creation decides between the two branches
BRANCHES: tuple[str, dict[str, Any]] = ("u = a.exp()\nv = b.sin()\nw = u.cos()\nz = v * w", {"a": 1, "b": 2})
WIDE = ("y = x + b\nz = (y * y).sum()", {"x": [[1, 2], [3, 4]], "b": [1, -1]})
CASES = [SIMPLE, MEET, BRANCHES, WIDE, *((program, leaves) for _, program, leaves in PROGRAMS)]


@pytest.fixture(params=CASES, ids=lambda case: case[0].replace("\n", "; "))
def case(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param


def both(case: tuple[str, dict[str, Any]]) -> tuple[EngineRun, EngineRun]:
    return engine_run(case[0], mini, **case[1]), engine_run(case[0], torch, **case[1])


def leaves_sorted(run: EngineRun) -> list[Any]:
    """The order of the run, with what is up to chance in it, which leaf of several goes first, in order."""
    found: list[Any] = []
    for label in run.order():
        if not label.startswith("AccumulateGrad"):
            found.append(label)
        elif found and isinstance(found[-1], set):
            found[-1].add(label)
        else:
            found.append({label})
    return found


# The two engines


def test_pytorch_s_engine_runs_the_same_nodes_in_the_same_order(case: tuple[str, dict[str, Any]]) -> None:
    ours, real = both(case)
    assert leaves_sorted(ours) == leaves_sorted(real)
    assert len(real.order()) == len(real.graph)


def test_both_give_the_same_gradients_which_are_pytorch_s(case: tuple[str, dict[str, Any]]) -> None:
    ours, real = both(case)
    scope: dict[str, Any] = {
        name: torch.tensor(torch.tensor(value, dtype=torch.float32).tolist(), requires_grad=True)
        for name, value in case[1].items()
    }
    exec(case[0], {}, scope)
    scope[case[0].splitlines()[-1].partition(" ")[0]].backward()
    assert ours.grads == real.grads == tuple((name, as_text(scope[name].grad)) for name in case[1])


def test_a_moment_of_one_is_a_moment_of_the_other(case: tuple[str, dict[str, Any]]) -> None:
    ours, real = both(case)

    def moments(run: EngineRun) -> list[Any]:
        return [
            (
                frame.phase,
                frame.line,
                {
                    run.label(node.id): state
                    for node, state in zip(run.graph, frame.nodes, strict=True)
                    if node.leaf is None
                },
                {run.label(nr) for nr in frame.queue},
            )
            for frame in run.frames
            if frame.running is None or run.graph[frame.running].leaf is None
        ]

    assert moments(ours) == moments(real)
    assert ours.saved == real.saved and sorted(ours.values) == sorted(real.values)


def test_the_order_is_what_the_graph_foretells() -> None:
    for case in CASES:
        run = engine_run(case[0], torch, **case[1])
        foretold = [run.label(nr) for nr in run.graph.engine_order()]
        assert [n for n in foretold if "Acc" not in n] == [n for n in run.order() if "Acc" not in n]


def test_the_first_in_the_queue_runs_next(case: tuple[str, dict[str, Any]]) -> None:
    for run in both(case):
        for before, after in zip(run.frames[:-1], run.frames[1:], strict=True):
            assert after.running == (before.queue[0] if before.queue else None)


def test_a_thread_whose_first_node_has_number_0_is_no_exception() -> None:
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(engine_run, BRANCHES[0], torch, **BRANCHES[1]).result()
    assert run.graph.named("u").sequence_nr == 0
    for before, after in zip(run.frames[:-1], run.frames[1:], strict=True):
        assert after.running == (before.queue[0] if before.queue else None)


def test_of_two_branches_the_newer_node_runs_first() -> None:
    ours, _ = both(BRANCHES)
    assert [label for label in ours.order() if "Acc" not in label] == [
        "MulBackward0 of z",
        "CosBackward0 of w",
        "SinBackward0 of v",
        "ExpBackward0 of u",
    ]


@pytest.mark.parametrize("lib", [mini, torch], ids=["mini", "torch"])
def test_what_a_node_saved_is_gone_when_the_next_one_runs(lib: Any) -> None:
    a = lib.tensor(2.0, requires_grad=True)
    p = a * a
    q = p * a
    seen: list[Any] = []

    def look(_: Any) -> None:
        for node in (q.grad_fn, p.grad_fn):
            try:
                seen.append(node._saved_self is not None)
            except RuntimeError:
                seen.append(False)

    p.grad_fn.register_prehook(look)
    q.backward()
    assert seen == [False, True]


# The record


def test_the_moments_of_the_brief_s_program() -> None:
    run = engine_run(SIMPLE[0], mini, **SIMPLE[1])
    assert run.grads == (("a", "4"), ("b", "4"), ("c", "5"))
    assert [frame.phase for frame in run.frames] == ["forward"] * 3 + ["count"] + ["backward"] * 6 + ["done"]
    assert [frame.line for frame in run.frames] == [-1, 0, 1, *[-1] * 8]
    assert run.saved[0] == (("other", "c", "4"), ("self", "s", "5"))
    assert [node.waits for node in run.frames[3].nodes] == [0, 1, 1, 1, 1]
    first = run.frames[5]
    assert first.running == 0 and first.nodes[0].freed and dict(first.flows) == {0: "4", 1: "5"}
    assert [run.label(nr) for nr in first.queue] == ["AccumulateGrad of c", "AddBackward0 of s"]


def test_gradients_are_added_up_where_paths_meet() -> None:
    run = engine_run(MEET[0], mini, **MEET[1])
    place = run.graph.named("p").id
    assert [frame.nodes[place].waits for frame in run.frames[4:8]] == [2, 2, 1, 0]
    assert [frame.nodes[place].grad for frame in run.frames[5:8]] == ["", "8", "14"]
    assert "Two paths meet at MulBackward0 of p" in run.frames[7].text
    assert not any("meet" in frame.text for frame in engine_run(SIMPLE[0], mini, **SIMPLE[1]).frames)


def test_every_moment_is_consistent(case: tuple[str, dict[str, Any]]) -> None:
    run = engine_run(case[0], mini, **case[1])
    for frame in run.frames:
        states = [node.state for node in frame.nodes]
        assert frame.phase in PHASES and set(states) <= set(STATES) and states.count("running") <= 1
        assert all(states[nr] == "ready" for nr in frame.queue)
        if frame.phase == "backward":
            assert sorted(frame.queue) == [nr for nr, state in enumerate(states) if state == "ready"]
        for node, state in zip(run.graph, frame.nodes, strict=True):
            assert not state.freed or (node.saved and state.state in ("running", "done"))
            assert (state.state == "waiting") == bool(state.waits)
    assert {node.state for node in run.frames[-1].nodes} == {"done"}


@pytest.mark.parametrize(
    ("program", "why"),
    [("", "no lines"), ("a + b", "not of the form"), ("a == b", "not of the form"), ("y = x * x", "one element")],
)
def test_what_cannot_be_run_is_refused(program: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        engine_run(program, mini, x=[1, 2])


def test_it_is_a_table_and_leaves_no_hook_behind() -> None:
    run = engine_run(SIMPLE[0], torch, **SIMPLE[1])
    assert len(run.rows()) == len(run.frames) and "| step |" in run.to_markdown()
    assert "<svg" in run._repr_html_()


# The picture

SVG = "{http://www.w3.org/2000/svg}"


def groups(svg: str, attribute: str) -> dict[str, ET.Element]:
    root = ET.fromstring(svg)
    return {g.attrib[attribute]: g for g in root.iter(f"{SVG}g") if attribute in g.attrib}


def test_the_picture_shows_the_moment(case: tuple[str, dict[str, Any]]) -> None:
    run = engine_run(case[0], mini, **case[1])
    for nr, frame in enumerate(run.frames):
        svg = run.figure(nr).text
        for place, node in groups(svg, "data-node").items():
            state = frame.nodes[int(place[1:])]
            assert f"is-{state.state}" in node.attrib["class"].split()
            words = "".join(node.itertext())
            assert (f"grad {state.grad}" in words) == bool(state.grad)
            badge = next(g for g in node.iter(f"{SVG}g") if "badge" in g.attrib["class"])
            assert ("none" in badge.attrib["class"]) == (not state.waits)
            assert "".join(badge.itertext()).endswith(str(state.waits or "gradients"))
        lit = {int(k) for k, link in groups(svg, "data-edge").items() if "is-lit" in link.attrib["class"]}
        assert lit == {edge for edge, _ in frame.flows}
        assert frame.text in (ET.fromstring(svg).findtext(f"{SVG}desc") or "")


def test_moments_differ_in_classes_and_texts_alone(case: tuple[str, dict[str, Any]]) -> None:
    run = engine_run(case[0], mini, **case[1])

    def skeleton(at: int) -> str:
        bare = re.sub(r"gb-[0-9a-f]{10}", "", run.figure(at).text)
        bare = re.sub(r'class="[^"]*"', "", bare)
        return re.sub(r">[^<]*<", "><", bare)

    assert len({skeleton(nr) for nr in range(len(run.frames))}) == 1


def test_all_that_will_stand_in_a_box_fits(case: tuple[str, dict[str, Any]]) -> None:
    run = engine_run(case[0], mini, **case[1])
    for nr in range(len(run.frames)):
        for node in groups(run.figure(nr).text, "data-node").values():
            box = node.find(f"{SVG}rect")
            assert box is not None
            for line in node.findall(f"{SVG}text"):
                assert mono_width(line.text or "", float(line.attrib["font-size"])) < float(box.attrib["width"])
            below = max(float(line.attrib["y"]) for line in node.findall(f"{SVG}text") if line.text)
            chips = [g.find(f"{SVG}rect") for g in node.findall(f"{SVG}g") if "saved" in g.attrib["class"]]
            floor = float(box.attrib["y"]) + float(box.attrib["height"])
            assert below < min([floor - 3, *(float(chip.attrib["y"]) for chip in chips if chip is not None)])


def test_no_box_lies_on_another_and_all_are_inside(case: tuple[str, dict[str, Any]]) -> None:
    figure = engine_run(case[0], mini, **case[1]).figure()
    boxes = []
    for node in groups(figure.text, "data-node").values():
        box = node.find(f"{SVG}rect")
        assert box is not None
        boxes.append(tuple(float(box.attrib[k]) for k in ("x", "y", "width", "height")))
    for nr, (x, y, w, h) in enumerate(boxes):
        assert x >= 0 and y >= 0 and x + w <= figure.width and y + h + 6 <= figure.height
        for other_x, other_y, other_w, other_h in boxes[:nr]:
            apart = x + w <= other_x or other_x + other_w <= x or y + h <= other_y or other_y + other_h <= y
            assert apart


# The widget


@pytest.fixture(scope="module")
def stepper() -> AutogradStepper:
    return AutogradStepper()


def test_it_has_four_programs_and_all_their_moments_at_once(stepper: AutogradStepper) -> None:
    assert stepper.titles == [title for title, _, _ in PROGRAMS]
    for shown, record in zip(stepper.shown, stepper.records, strict=True):
        assert shown == json.loads(json.dumps(shown))
        assert len(shown["frames"]) == len(record.frames) and shown["svg"].count("data-node") == len(record.graph)
        assert len(shown["sources"]) == shown["svg"].count("data-edge")
    assert len(json.dumps(stepper.shown)) < 120_000


def test_it_takes_runs_of_either_framework() -> None:
    own = AutogradStepper(
        PyTorch=engine_run(SIMPLE[0], torch, **SIMPLE[1]), the_mini_one=engine_run(MEET[0], mini, a=1, b=1)
    )
    assert own.titles == ["PyTorch", "the mini one"]
    assert own.shown[0]["leaves"] == ["a = 2", "b = 3", "c = 4"] and own.shown[0]["program"] == SIMPLE[0].splitlines()
    assert as_data(own.records[0])["labels"][0] == "MulBackward0 of z"


def test_steps_and_runs_that_are_not_there_are_refused() -> None:
    stepper = AutogradStepper()
    with pytest.raises(TraitError, match="the steps are 0 to 10"):
        stepper.step = 11
    with pytest.raises(TraitError, match="no run"):
        stepper.run = 4
    stepper.run = 3
    stepper.step = 12
    stepper.run = 0
    assert stepper.step == 10


def test_without_scripts_there_are_the_picture_and_all_steps_in_words(stepper: AutogradStepper) -> None:
    static = stepper.static_html()
    assert static.count("<svg") == 1 and static.count("<li>") == len(stepper.records[0].frames)
    assert "s = a + b" in static and "is-running" in static
    assert "AutogradStepper: s = a + b; z = s * c, step 1 of 11" in str(stepper)


def test_nothing_of_the_real_graph_is_changed_by_looking() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    engine_run("z = b * b", torch, b=3)
    assert a.grad is None and len(xray.grad_graph(z=a * a)) == 2
