"""Facts about the figures of key sets and reasons, read from the SVG as XML."""

import re
import xml.etree.ElementTree as ET

import pytest

from glassbox.draw import key_set_figure, reason_figure
from glassbox.mini.c10.dispatch_key import BACKENDS, FUNCTIONALITIES, PER_BACKEND
from glassbox.records import DispatchRow, Hop, KeyLayout, KeyOrigin, KeySet, KeySets, KeyStep, Onion, WhyCall

LAYOUT = KeyLayout(BACKENDS, FUNCTIONALITIES, tuple(PER_BACKEND.items()))
TENSOR = LAYOUT.bits("CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU")
LEFT = LAYOUT.bits("CPU", "AutogradCPU")
INCLUDED = LAYOUT.bits("BackendSelect", "ADInplaceOrView")


def sets(arguments=2, op="aten.add.Tensor", effective=LEFT):
    steps = [KeyStep("argument", f"tensors[{nr}]", TENSOR) for nr in range(arguments)]
    steps += [
        KeyStep("union", "union", TENSOR if arguments else 0),
        KeyStep("included", "included", INCLUDED),
        KeyStep("excluded", "excluded", LAYOUT.bits("AutocastCPU", "Python")),
        KeyStep("fallthrough", "fallthrough", LAYOUT.bits("BackendSelect", "ADInplaceOrView", "AutocastCPU")),
        KeyStep("effective", "effective", effective),
    ]
    return KeySets(op, tuple(steps), LAYOUT)


def call(hops=2, kind="autograd kernel", context=(), wrong=False, folder=""):
    found = sets()
    place = folder + "torch/csrc/autograd/generated/VariableType_2.cpp:10917"
    onion = Onion(
        tuple(
            Hop("aten.add.Tensor", ("AutogradCPU", "CPU")[nr % 2], found.steps[-1].bits, ("CPU",), kind, place, nr % 7)
            for nr in range(hops)
        )
    )
    origins = (KeyOrigin("argument self", "CPU", "it lies on CPU"),)
    layers = (DispatchRow("AutogradCPU", kind, place), DispatchRow("CPU", "missing"))
    seen = found.steps[-1].bits | (LAYOUT.bits("Python") if wrong else 0)
    return WhyCall("aten.add.Tensor", found, origins, layers, seen, onion, context)


FIGURES = {
    "one set": KeySet("x", TENSOR, LAYOUT).figure(),
    "empty set": KeySet("x", 0, LAYOUT).figure(),
    "call": key_set_figure(sets()),
    "call without arguments": key_set_figure(sets(0)),
    "call of many": key_set_figure(sets(40)),
    "no key left": key_set_figure(sets(effective=0)),
    "long name": key_set_figure(sets(op="a_namespace." + "x" * 90)),
    "why": reason_figure(call()),
    "why, many hops": reason_figure(call(60)),
    "why, from far": reason_figure(call(folder="/a/folder" * 15)),
    "why, in contexts": reason_figure(call(context=("autocast is on for CPU", "vmap at level 1"))),
    "why, not as reckoned": reason_figure(call(wrong=True)),
    "why, failed": reason_figure(call(0)),
}


def parse(figure):
    return ET.fromstring(figure.text)


def tag(element):
    return element.tag.rsplit("}", 1)[-1]


def words(figure):
    return [e.text for e in parse(figure).iter() if tag(e) == "text"]


def upright(element):
    """Where a name that reads upwards ends: its x, and the y range that it takes."""
    x, y = map(float, re.match(r"translate\(([\d.]+) ([\d.]+)\) rotate\(-90\)", element.get("transform")).groups())
    return x, y - len(element.text) * float(element.get("font-size")) * 0.61, y


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_lies_outside_the_view_box(name):
    svg = parse(FIGURES[name])
    _, _, width, height = map(float, svg.get("viewBox").split())
    for element in svg.iter():
        if tag(element) == "rect":
            x, y, w, h = (float(element.get(k)) for k in ("x", "y", "width", "height"))
            assert min(x, y) >= 0
            assert x + w <= width
            assert y + h <= height
        elif tag(element) == "text" and element.get("transform"):
            x, top, bottom = upright(element)
            assert 0 <= x <= width
            assert 0 <= top <= bottom <= height
        elif tag(element) == "text":
            length = len(element.text) * float(element.get("font-size")) * 0.61
            x, y = float(element.get("x")), float(element.get("y"))
            left = x - {"start": 0, "middle": length / 2, "end": length}[element.get("text-anchor", "start")]
            assert left >= 0
            assert left + length <= width
            assert 0 < y <= height


@pytest.mark.parametrize("name", FIGURES)
def test_cells_and_boxes_do_not_overlap(name):
    boxes = [
        tuple(float(e.get(k)) for k in ("x", "y", "width", "height"))
        for e in parse(FIGURES[name]).iter()
        if tag(e) == "rect"
    ]
    for k, (x, y, w, h) in enumerate(boxes):
        for a, b, c, d in boxes[:k]:
            assert x >= a + c or a >= x + w or y >= b + d or b >= y + h


@pytest.mark.parametrize("name", FIGURES)
def test_lines_of_text_do_not_overlap(name):
    taken = []
    for element in parse(FIGURES[name]).iter():
        if tag(element) != "text" or element.get("transform") or element.text == "−":
            continue
        size, length = float(element.get("font-size")), len(element.text) * float(element.get("font-size")) * 0.61
        x, y = float(element.get("x")), float(element.get("y"))
        left = x - {"start": 0, "middle": length / 2, "end": length}[element.get("text-anchor", "start")]
        taken.append((left, left + length, y - size * 0.75, y, element.text))
    for k, (left, right, top, bottom, text) in enumerate(taken):
        for a, b, c, d, other in taken[:k]:
            assert left >= b or a >= right or top >= d or c >= bottom, (text, other)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_says_in_words_what_it_shows(name):
    svg = parse(FIGURES[name])
    title, desc = svg.find("{*}title").text, svg.find("{*}desc").text
    assert title
    assert len(desc) > 20


def test_bits_that_someone_sets_have_names_and_numbers_and_masks_alone_none():
    shown = words(FIGURES["call"])
    for name in ("CPU", "Dense", "BackendSelect", "ADInplaceOrView", "AutogradFunctionality", "AutocastCPU"):
        assert shown.count(name) == 1
    assert "Python" not in shown
    assert {"0", "16", "26", "34", "36", "39"} <= set(shown)


def test_the_winner_is_lit_and_told_as_a_pair():
    figure = FIGURES["call"]
    assert "AutogradCPU is highest: AutogradFunctionality (bit 36) with CPU (bit 0)" in words(figure)
    lit = [e for e in parse(figure).iter() if tag(e) == "g" and "hot" in e.get("class", "").split()]
    assert [e.find("{*}title").text for e in lit] == [
        "= effective: CPU, bit 0",
        "= effective: AutogradFunctionality, bit 36",
    ]


def test_what_a_mask_takes_away_is_marked():
    bad = [e for e in parse(FIGURES["call"]).iter() if tag(e) == "g" and "bad" in e.get("class", "").split()]
    assert [e.find("{*}title").text for e in bad] == [
        "- excluded: AutocastCPU, bit 39",
        "- fallthrough: BackendSelect, bit 26",
        "- fallthrough: ADInplaceOrView, bit 34",
    ]


def test_of_many_arguments_the_first_are_drawn():
    shown = words(FIGURES["call of many"])
    assert [each for each in shown if each.startswith("argument")] == [f"argument tensors[{nr}]" for nr in range(5)]
    assert "35 more arguments" in shown


def test_hops_are_drawn_and_the_rest_counted():
    shown = words(FIGURES["why, many hops"])
    assert sum(each.startswith("aten.add.Tensor @") for each in shown) == 24
    assert "36 more kernels" in shown


def test_a_difference_and_a_missing_kernel_stand_out():
    assert any(each.startswith("but the dispatcher worked out") for each in words(FIGURES["why, not as reckoned"]))
    assert any(each.startswith("missing: nothing is registered") for each in words(FIGURES["why, failed"]))
