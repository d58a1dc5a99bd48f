"""Facts about the figures of kernels and of call paths: boxes lie inside of each other, words inside of the figure."""

import xml.etree.ElementTree as ET

import pytest

from glassbox.draw import Svg, call_path_figure, onion_figure
from glassbox.draw.svg import mono_width
from glassbox.records import CallPath, Evidence, Frame, Hop, Onion

LONG = "at::native::" + "a_very_long_name_of_a_kernel_" * 4


def hops(depths: list[int], node: str = "") -> tuple[Hop, ...]:
    keys = ("AutocastCPU", "AutogradCPU", "ADInplaceOrView", "BackendSelect", "CPU")
    return tuple(
        Hop(f"aten.op{nr}.default", keys[depth % 5], 1, ("CPU",), "kernel", "build/x/RegisterCPU_0.cpp:12", depth, node)
        for nr, depth in enumerate(depths)
    )


ONIONS = {
    "none": Onion(()),
    "one": Onion(hops([0])),
    "nested": Onion(hops([0, 1, 2, 2, 1, 0, 1])),
    "deep": Onion(hops(list(range(16)))),
    "backward": Onion(hops([0, 1]) + hops([0, 1], "MulBackward0") + hops([0], "AccumulateGrad")),
    "many": Onion(hops([0, 1] * 60)),
    "inferred": Onion((Hop("my.op.default", "CPU", 1, ("CPU",), "kernel", LONG, inferred=True),)),
    "below its parent only": Onion(hops([1, 2])),
}


def path(frames: list[Frame], evidence: list[Evidence] | None = None, note: str = "") -> CallPath:
    return CallPath("a + b", "aten.add.Tensor", "PyTorch 2.14.1", tuple(frames), tuple(evidence or ()), (), note)


FRAMES = [
    Frame("<lambda>", "<lambda>", "python", "/home/somebody/with/a/long/path/to/a/notebook.py", 3),
    Frame("slot_nb_add", "slot_nb_add", "c++", "CPython: Objects/typeobject.c", 7419, 1),
    *(Frame(f"f{nr}", f"f{nr}()", "c++", "", 0, 4) for nr in range(20)),
    Frame(LONG, LONG, "c++", "x.cpp", 1, 6),
    Frame("odd", "odd", known=False),
    Frame("pythonFallback", observer=True),
]
PATHS = {
    "empty": path([]),
    "all": path(
        FRAMES, [Evidence(7, "native_functions.yaml", "word " * 60), Evidence(8, "the device", LONG)], "n " * 200
    ),
}
FIGURES = {
    **{f"onion, {name}": onion_figure(onion) for name, onion in ONIONS.items()},
    **{f"path, {name}": call_path_figure(one) for name, one in PATHS.items()},
    "two paths": call_path_figure(*PATHS.values()),
}


def parts(figure: Svg, kind: str) -> list[ET.Element]:
    return [each for each in ET.fromstring(figure.text).iter() if each.tag.rpartition("}")[2] == kind]


@pytest.mark.parametrize("name", FIGURES)
def test_words_and_boxes_lie_inside_of_the_figure(name: str) -> None:
    figure = FIGURES[name]
    for each in parts(figure, "text"):
        x, y, width = float(each.get("x")), float(each.get("y")), mono_width(each.text, float(each.get("font-size")))
        left = {"end": x - width, "middle": x - width / 2}.get(each.get("text-anchor"), x)
        assert left >= 0 and left + width <= figure.width + 0.5, each.text
        assert 0 < y < figure.height
    for each in parts(figure, "rect"):
        assert float(each.get("x")) + float(each.get("width")) <= figure.width
        assert float(each.get("y")) + float(each.get("height")) <= figure.height
    assert figure.title and figure.desc


@pytest.mark.parametrize("name", FIGURES)
def test_no_two_words_overlap(name: str) -> None:
    placed: list[tuple[float, float, float, str]] = []
    for each in parts(FIGURES[name], "text"):
        x, y, width = float(each.get("x")), float(each.get("y")), mono_width(each.text, float(each.get("font-size")))
        left = {"end": x - width, "middle": x - width / 2}.get(each.get("text-anchor"), x)
        for other, top, right, word in placed:
            assert abs(top - y) > 7 or left >= right - 1 or left + width <= other + 1, (word, each.text)
        placed.append((left, y, left + width, each.text))


def boxes(figure: Svg) -> list[tuple[float, float, float, float]]:
    found = []
    for each in parts(figure, "g"):
        rect = next((child for child in each if child.tag.endswith("rect")), None)
        if rect is not None and float(rect.get("width")) > 20:
            x, y = float(rect.get("x")), float(rect.get("y"))
            found.append((x, y, x + float(rect.get("width")), y + float(rect.get("height"))))
    return found


@pytest.mark.parametrize("name", ONIONS)
def test_a_kernel_lies_inside_of_the_one_that_led_to_it_and_no_other(name: str) -> None:
    onion = ONIONS[name]
    drawn = boxes(onion_figure(onion))
    assert len(drawn) == min(len(onion), 40)
    for nr, (left, top, right, bottom) in enumerate(drawn):
        for other in range(nr + 1, len(drawn)):
            x, y, to_x, to_y = drawn[other]
            within = all(hop.depth > onion[nr].depth for hop in onion.hops[nr + 1 : other + 1])
            assert (left < x and to_x < right and top < y and to_y < bottom) == within
            assert within or y >= bottom


def test_more_than_forty_kernels_are_counted() -> None:
    assert "the first 40 of 120 hops" in FIGURES["onion, many"].text
    assert FIGURES["onion, many"].desc.endswith("80 more are not drawn.")


def test_colours_are_those_of_families() -> None:
    classes = [each.get("class") for each in parts(FIGURES["onion, nested"], "g") if each.get("class")]
    legend, boxes = classes[:3], classes[3:]
    assert legend == ["k r3", "k r0", "k r1"] and set(boxes) == set(legend)
    words = [each.text for each in parts(FIGURES["onion, nested"], "text")]
    assert words[:3] == ["autocast", "autograd", "views and in-place"]


def test_many_frames_of_a_station_are_counted() -> None:
    words = [each.text for each in parts(FIGURES["path, all"], "text")]
    assert "and 8 more" in words and "f11" in words and "f12" not in words


@pytest.mark.parametrize("name", [name for name in FIGURES if "path" in name])
def test_boxes_lie_in_lanes_and_lanes_below_each_other(name: str) -> None:
    def edges(rect: ET.Element) -> tuple[float, float]:
        return float(rect.get("y")), float(rect.get("y")) + float(rect.get("height"))

    rects = parts(FIGURES[name], "rect")
    lanes = [edges(each) for each in rects if each.get("class") == "lane-bg"]
    assert all(end < start for (_, end), (start, _) in zip(lanes, lanes[1:], strict=False))
    for top, bottom in (edges(each) for each in rects if each.get("class") != "lane-bg"):
        assert any(start < top and bottom < end for start, end in lanes)


def test_lanes_follow_the_stations() -> None:
    words = [each.text for each in parts(FIGURES["two paths"], "text")]
    names = ["your code", "Python slot", "C binding", "operator call", "highest key", "node", "redispatch"]
    names += ["TensorIterator", "device", "no station", "the observer"]
    assert [word for word in words if word in names] == names
    assert words.count("PyTorch 2.14.1") == 2
    assert [word for word in words if word.isdigit()] == [str(nr) for nr in range(1, 9)]
    assert "your code" not in [each.text for each in parts(FIGURES["path, empty"], "text")]


def test_what_selects_a_backend_has_a_hue_and_so_text_in_full_ink():
    """Boxes of class "out" have faint text, which is for what does not count."""
    hop = Hop("aten.ones.default", "BackendSelect", 0, (), "C++ kernel", "x.cpp:1", 0)
    body = onion_figure(Onion((hop,))).body
    assert 'class="k r4"' in body and 'class="k out"' not in body
