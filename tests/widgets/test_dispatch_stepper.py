"""Facts about the dispatch stepper: its steps are what `xray.why` saw, mini and real alike."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest
import torch
from traitlets import TraitError

from glassbox import mini, xray
from glassbox.draw import dispatch_steps
from glassbox.records import Why
from glassbox.widgets import DispatchStepper


@pytest.fixture(scope="module")
def stepper() -> DispatchStepper:
    a, b = torch.randn(2, 3, requires_grad=True), torch.randn(3)
    m, n = mini.randn(2, 3, requires_grad=True), mini.randn(3)
    return DispatchStepper(mini=lambda: m + n, PyTorch=lambda: a + b)


@pytest.fixture(scope="module")
def cast() -> Why:
    m = mini.randn(2, 2)
    with mini.autocast("cpu", dtype=mini.bfloat16):
        return xray.why(lambda: mini.mm(m, m))


def test_both_frameworks_take_the_same_steps(stepper: DispatchStepper) -> None:
    labels = [lane["labels"] for lane in stepper.lanes]
    assert [lane["name"] for lane in stepper.lanes] == ["mini", "PyTorch"]
    assert labels[0] == labels[1] == [
        "arguments", "thread", "fallthrough", "add.Tensor @ AutogradCPU", "add.Tensor @ CPU", "the way up",
    ]  # fmt: skip
    assert stepper.steps == 6 and stepper.step == 0


def test_each_step_says_what_happens_to_the_keys(stepper: DispatchStepper) -> None:
    arguments, thread, fallthrough, autograd, cpu, up = stepper.lanes[1]["says"]
    assert "Together: AutocastCPU, AutogradCPU, ADInplaceOrView and CPU." in arguments
    assert thread == "The thread adds BackendSelect and takes AutocastCPU away."
    assert fallthrough.endswith("Left: AutogradCPU and CPU.")
    assert autograd.startswith("AutogradCPU is the highest key.") and "VariableType" in autograd
    assert "with AutogradCPU out of the way, CPU is the highest key left" in cpu and "RegisterCPU" in cpu
    assert "2 kernels ran" in up


def test_the_steps_are_the_hops_that_were_seen(stepper: DispatchStepper) -> None:
    for lane in stepper.lanes:
        hops = stepper.calls[lane["name"]].hops
        assert lane["labels"][3:-1] == [f"add.Tensor @ {hop.key}" for hop in hops]
        assert stepper.calls[lane["name"]].agrees


def test_a_chip_is_masked_where_the_call_masks_it(stepper: DispatchStepper) -> None:
    def struck(nr: int) -> list[str]:
        svg = stepper.lanes[1]["pictures"][nr]
        return re.findall(r">(\w+)</text><path class=\"strike\"", svg)

    assert struck(0) == []
    assert struck(1) == ["AutocastCPU"]
    assert struck(2) == ["AutocastCPU", "ADInplaceOrView", "BackendSelect"]
    assert struck(4) == ["AutogradCPU"]


def test_the_kernel_that_runs_is_lit_and_those_to_come_are_empty(stepper: DispatchStepper) -> None:
    for nr, lit, empty in ((0, 0, 2), (3, 1, 1), (4, 1, 0), (5, 0, 0)):
        boxes = stepper.lanes[1]["pictures"][nr].split("aten.add.Tensor</text>")[1]
        boxes = boxes[boxes.rindex("</g>", 0, boxes.index('rx="6"')) :]
        assert (len(re.findall(r'class="k \w+ lit"', boxes)), boxes.count('class="k waits"')) == (lit, empty)


def test_a_call_inside_a_kernel_is_told_from_a_redispatch(cast: Why) -> None:
    said = {step.label: step.says for step in dispatch_steps(cast[0])}
    assert "The kernel of mm calls to.dtype: a new call" in said["to.dtype @ AutogradCPU"]
    assert "out of the way" in said["mm @ AutogradCPU"]


def test_depth_leaves_the_inner_kernels_out_and_says_so(cast: Why) -> None:
    steps = dispatch_steps(cast[0], depth=1)
    assert [step.label for step in steps[3:-1]] == [
        "mm @ AutocastCPU", "to.dtype @ AutogradCPU", "to.dtype @ AutogradCPU", "mm @ AutogradCPU",
    ]  # fmt: skip
    left = len(cast[0].hops) - 4
    assert f"{left} of them, deeper down, are not drawn" in steps[-1].says


def test_a_factory_has_no_argument_to_bring_keys() -> None:
    steps = dispatch_steps(xray.why(lambda: mini.randn(3))[0])
    assert steps[0].says == "No argument is a tensor, so none brings a key."
    assert steps[3].label == "randn @ BackendSelect"


def test_all_pictures_of_a_lane_share_one_id_one_style_and_one_size(stepper: DispatchStepper) -> None:
    for lane in stepper.lanes:
        ids = {re.search(r'id="(gb-[0-9a-f]+)"', text)[1] for text in lane["pictures"]}  # type: ignore[index]
        assert len(ids) == 1 and f"#{ids.pop()}" in lane["style"]
        assert len({re.search(r'viewBox="([^"]+)"', text)[1] for text in lane["pictures"]}) == 1  # type: ignore[index]
        for text in lane["pictures"]:
            root = ET.fromstring(text)
            assert root.attrib["class"] == "gb-frame" and "<style" not in text
            assert all(root.find(f"{{http://www.w3.org/2000/svg}}{tag}").text for tag in ("title", "desc"))  # type: ignore[union-attr]


def test_what_is_sent_is_small(stepper: DispatchStepper) -> None:
    assert len(json.dumps(stepper.lanes)) < 60_000


def test_a_step_that_is_not_there_is_refused(stepper: DispatchStepper) -> None:
    for wrong in (-1, 6):
        with pytest.raises(TraitError, match="from 0 to 5"):
            stepper.step = wrong
    assert stepper.step == 0


def test_an_export_shows_all_kernels_and_every_sentence(stepper: DispatchStepper) -> None:
    page = stepper.static_html()
    assert page.count("<svg") == 2 and page.count('class="glassbox-figure"') == 2
    assert page.count("<li>") == 12 and "takes AutocastCPU away" in page and "<b>PyTorch</b>" in page


def test_records_may_be_given_and_calls_chosen(cast: Why) -> None:
    two = xray.why(lambda: mini.ones(2).neg().abs())
    ops = [call.op for call in two]
    for nr in range(len(ops)):
        assert DispatchStepper(call=nr, mini=two).calls["mini"].op == ops[nr]
    assert DispatchStepper(mini=cast[0]).calls["mini"] is cast[0]


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one program"):
        DispatchStepper()
    with pytest.raises(ValueError, match="no call 1"):
        DispatchStepper(call=1, mini=_one_call())


def _one_call() -> Why:
    x = mini.ones(2)
    return xray.why(lambda: x.neg())
