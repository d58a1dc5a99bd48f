"""Facts about the figures of portraits and of saved memory, read from the SVG as XML."""

import xml.etree.ElementTree as ET

import pytest

from glassbox.draw import portrait_figure, saved_memory_figure
from glassbox.records import KeptCall, KeptValue, Portrait, PortraitPart, RunTime, SavedMemory

SEEN = "Taken with grad on: the Autograd keys take composite operators apart, so their parts are seen."
LONG = "aten.a_very_long_name_of_an_operator_that_somebody_wrote.and_of_its_overload"


def part(op, calls=1, phase="forward", flops=None, nbytes=0, us=None, module=""):
    return PortraitPart(op, phase, module, calls, (("f32[2]", calls),), flops, nbytes, us)


def portrait(*parts, **more):
    return Portrait("Net", "train, grad", ("f32[2, 3]",), ("cpu",), 2, "2.14.1", SEEN, parts, **more)


def value(storage, module, nbytes=1000, kind="activation"):
    return KeptValue("MulBackward0", "self", module, "net.py:3", (1,), "float32", storage, nbytes, kind)


TIMED = portrait(
    part("aten.mm.default", 4, flops=10**9, nbytes=10**6, us=300.0),
    part("aten.mm.default", 8, "backward", flops=2 * 10**9, nbytes=10**6, us=600.0),
    part("aten.relu.default", 2, nbytes=5000, us=100.0),
    repeats=3,
    forward=RunTime(500.0, 400.0, 600.0),
    backward=RunTime(700.0, 650.0, 5e6),
)
COUNTED = portrait(part("aten.mm.default", 3, flops=60), part("aten.t.default", 5))
BARE = portrait(part("aten.sin.default", 3), part("aten.cos.default", 1), part(LONG, 1))
MANY = portrait(*(part(f"aten.op{nr}.default", 100 - nr, us=float(100 - nr)) for nr in range(40)))
WORDY = portrait(part("aten.sin.default"), notes=("A note that goes on and on, about nothing in particular. " * 6,))
EMPTY = portrait()
KEPT = SavedMemory(
    "Net, train, grad",
    (
        value(1, "a.x"),
        value(2, "a.y", 3000),
        value(3, "b"),
        value(3, "b"),
        value(4, "c", 10, "parameter"),
        value(5, "d"),
    ),
    (KeptCall(0, "", "Net"), KeptCall(1, "a", "A", (0,))),
    (("forward", 1000), ("forward", 4000), ("forward", 6000), ("backward", 2000), ("backward", 0)),
    "forward, d, net.py:3",
)
NOTHING = SavedMemory("f, no_grad", (), notes=("Nothing that came out requires a gradient.",))
DEEP = SavedMemory(
    "Net, train, grad",
    tuple(value(nr + 1, f"encoder.layers.{nr}.feed_forward_network_of_this_layer.linear") for nr in range(60)),
    curve=tuple(("forward" if nr < 60 else "backward", 1000 * min(nr + 1, 119 - nr)) for nr in range(120)),
    peak_at="forward, " + "encoder.layers.59.feed_forward_network_of_this_layer.linear, " * 4,
)
FIGURES = [
    *(pytest.param(portrait_figure(p), id=name) for name, p in (
        ("timed", TIMED), ("counted", COUNTED), ("bare", BARE), ("many", MANY), ("wordy", WORDY), ("empty", EMPTY))),
    *(pytest.param(saved_memory_figure(s), id=name) for name, s in (
        ("kept", KEPT), ("nothing", NOTHING), ("deep", DEEP))),
]  # fmt: skip


def parse(figure):
    return ET.fromstring(figure.text)


def tag(element):
    return element.tag.rsplit("}", 1)[-1]


def texts(figure):
    """Text, left and right edge, baseline, size of each line of text."""
    found = []
    for element in parse(figure).iter():
        if tag(element) == "text":
            size = float(element.get("font-size"))
            length = len(element.text) * size * 0.61
            x, y = float(element.get("x")), float(element.get("y"))
            left = x - {"start": 0, "middle": length / 2, "end": length}[element.get("text-anchor", "start")]
            found.append((element.text, left, left + length, y, size))
    return found


def words(figure):
    return [text for text, *_ in texts(figure)]


def bars(figure, hue):
    """Widths of the bars of one colour."""
    return [
        float(rect.get("width"))
        for group in parse(figure).iter()
        if tag(group) == "g" and group.get("class") == f"k {hue}"
        for rect in group
        if tag(rect) == "rect" and float(rect.get("height")) > 12
    ]


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_has_a_text_alternative(figure):
    svg = parse(figure)
    ids = {each.get("id"): each for each in svg.iter() if each.get("id")}
    title, desc = (ids[name] for name in svg.get("aria-labelledby").split())
    assert title.text
    assert len(desc.text) > 40


@pytest.mark.parametrize("figure", FIGURES)
def test_nothing_lies_outside(figure):
    _, _, width, height = map(float, parse(figure).get("viewBox").split())
    for element in parse(figure).iter():
        if tag(element) == "rect":
            x, y, w, h = (float(element.get(key)) for key in ("x", "y", "width", "height"))
            assert x >= 0
            assert y >= 0
            assert x + w <= width
            assert y + h <= height
    for text, left, right, y, _ in texts(figure):
        assert left >= 0, text
        assert right <= width, text
        assert 0 < y <= height, text


@pytest.mark.parametrize("figure", FIGURES)
def test_no_text_lies_on_another(figure):
    boxes = texts(figure)
    for nr, (text, left, right, y, size) in enumerate(boxes):
        for other, a, b, c, other_size in boxes[:nr]:
            apart = right <= a or b <= left or abs(y - c) >= min(size, other_size)
            assert apart, (text, other)


def test_bars_are_shares_of_the_time_forward_and_backward():
    figure = portrait_figure(TIMED)
    assert bars(figure, "r0") == [100.0, pytest.approx(33.33, abs=0.01)]
    assert bars(figure, "r3") == [200.0]
    assert [w for w in words(figure) if "%" in w] == ["90.0%", "10.0%"]
    assert {"mm.default", "relu.default", "12", "900 us", "3 G", "2 MB"} <= set(words(figure))


def test_without_times_flops_decide_and_without_those_the_calls():
    assert "bars: share of the FLOPs" in words(portrait_figure(COUNTED))
    assert bars(portrait_figure(COUNTED), "r0") == [300.0]
    assert "bars: share of the calls" in words(portrait_figure(BARE))
    assert bars(portrait_figure(BARE), "r0") == [300.0, 100.0, 100.0]


def test_the_costliest_by_name_and_the_rest_together():
    shown = words(portrait_figure(MANY))
    assert [w for w in shown if w.startswith("op")] == [f"op{nr}.default" for nr in range(12)]
    assert "28 others" in shown
    assert str(sum(100 - nr for nr in range(12, 40))) in shown


def test_a_long_name_is_cut():
    assert any(w.endswith("...") and len(w) == 38 for w in words(portrait_figure(BARE)))


def test_saved_memory_by_the_depth_that_tells_most():
    figure = saved_memory_figure(KEPT)
    shown = words(figure)
    assert "activations kept, by module" in shown
    assert bars(figure, "r2") == [260.0, 65.0, 65.0]
    assert [w for w in shown if w in ("a", "b", "c", "d")] == ["a", "b", "d"]
    assert "peak 6 kB in forward, d, net.py:3" in shown
    assert {"forward", "backward"} <= set(shown)


def test_the_curve_turns_where_backward_begins():
    curves = [each.get("d") for each in parse(saved_memory_figure(KEPT)).iter() if tag(each) == "path"]
    forward, backward, _ = curves
    turn = forward.split("H")[-1].split("V")[0]
    assert backward.startswith(f"M{turn} ")


def test_nothing_kept_is_drawn_as_words_alone():
    assert not bars(saved_memory_figure(NOTHING), "r2")
    assert "Nothing that came out requires a gradient." in words(saved_memory_figure(NOTHING))
