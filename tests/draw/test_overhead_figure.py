"""Facts about the figure of a cost ledger, read from the SVG as XML."""

import xml.etree.ElementTree as ET

import pytest

from glassbox.draw import overhead_figure
from glassbox.records import Alternative, CostCurve, CostLayer, Overhead, Spread


def spread(us, wide=0.05):
    return Spread(us, us - wide, us + wide, us - 2 * wide, us + 2 * wide, 50)


def curve(name, base, crossing=None):
    points = tuple((size, spread(base + size / 5000)) for size in (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536))
    return CostCurve(name, f"{name}, as defined", points, crossing)


LAYERS = (
    CostLayer("Python call", "nothing", spread(0.1), "1"),
    CostLayer("dispatcher", "one minus another", spread(0.3), "3, 4"),
    CostLayer("Autograd kernel", "hardly any", spread(0.01), "4, 6"),
    CostLayer("result", "less than none", spread(-0.2), "7"),
)
FULL = Overhead(
    "add.Tensor", "torch 2.14.1, cpu, 1 thread", 50, 1, spread(2.0), LAYERS,
    (curve("requires_grad", 2.0), curve("plain", 1.2, Spread(6000, 5500, 7000, 5000, 9000, 50)),
     curve("no_grad", 1.3, Spread(6000, 5500, float("inf"), 5000, float("inf"), 50)), curve("inference_mode", 1.1)),
    tuple(
        Alternative(name, "as defined", spread(us), spread(us - 1.2))
        for name, us in [("a + b", 1.2), ("torch.ops.aten.a_very_long_operator_name.overload", 2.5), ("op_log", 30)]
    ),
    (CostLayer("vmap", "inside minus outside", spread(1.7)),),
)  # fmt: skip
BARE = Overhead("f", "cpu", 6, 8, spread(1.0), (), (curve("plain", 1.0),))
ONE_SIZE = Overhead(
    "f", "cpu", 6, 8, spread(1.0), LAYERS[:1], (CostCurve("plain", "x", ((8, spread(1.0)),)),), (), LAYERS
)
TINY = Overhead(
    "f", "cpu", 6, 1, spread(0.02, 0.01), LAYERS[2:3], (CostCurve("plain", "x", ((1, spread(0.02, 0.01)),)),)
)
ALL = {"full": FULL, "bare": BARE, "one size": ONE_SIZE, "tiny": TINY}


def elements(figure, kind):
    return [e for e in ET.fromstring(figure.text).iter() if e.tag.rsplit("}", 1)[-1] == kind]


def boxes(figure):
    found = []
    for element in elements(figure, "text"):
        size, x, y = (float(element.get(key)) for key in ("font-size", "x", "y"))
        length = len(element.text) * size * 0.61
        left = x - {"start": 0, "middle": length / 2, "end": length}[element.get("text-anchor", "start")]
        found.append((left, left + length, y, size, element.text))
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("ledger", ALL.values(), ids=ALL.keys())
def test_nothing_lies_outside_and_no_text_lies_on_another(ledger, theme):
    figure = overhead_figure(ledger).with_theme(theme)
    lines = boxes(figure)
    for left, right, y, size, text in lines:
        assert left >= 0 and right <= figure.width and size <= y <= figure.height, text
    for nr, (left, right, y, size, text) in enumerate(lines):
        for other in lines[nr + 1 :]:
            apart = right <= other[0] or other[1] <= left or abs(y - other[2]) >= min(size, other[3])
            assert apart, (text, other[4])
    for element in elements(figure, "rect"):
        x, y, w, h = (float(element.get(key)) for key in ("x", "y", "width", "height"))
        assert x >= 0 and x + w <= figure.width and y >= 0 and y + h <= figure.height
    for element in elements(figure, "circle"):
        assert 0 < float(element.get("cx")) < figure.width and 0 < float(element.get("cy")) < figure.height


def bars(figure):
    """The x and width of every bar, with the class that colours it."""
    found = []
    for group in elements(figure, "g"):
        kind = group.get("class") or ""
        if kind.startswith("k "):
            (rect,) = list(group)
            found.append((kind, float(rect.get("x")), float(rect.get("width"))))
    return found


def test_each_layer_begins_where_the_one_before_it_ends():
    first, second, third, fourth, whole = bars(overhead_figure(FULL))[:5]
    assert second[1] == pytest.approx(first[1] + first[2], abs=0.02)
    # A layer below zero goes back.
    assert fourth[1] + fourth[2] == pytest.approx(third[1] + third[2], abs=1.1)
    assert fourth[1] < third[1] and whole[1] == first[1]


def test_a_long_name_ends_before_the_bars_begin():
    figure = overhead_figure(FULL)
    start = bars(figure)[0][1]
    (long,) = [box for box in boxes(figure) if box[-1].startswith("torch.ops")]
    assert long[-1] == "torch.ops.aten.a_very_lo…" and long[1] <= start


def test_what_cannot_be_told_from_nothing_is_grey_and_says_so():
    figure = overhead_figure(FULL)
    assert [kind for kind, *_ in bars(figure)[:5]] == ["k r4", "k r0", "k out", "k r1", "k hot"]
    assert [text for *_, text in boxes(figure)].count("not told from 0") == 1


def test_the_legend_says_where_the_kernel_outgrows_the_overhead():
    texts = [text for *_, text in boxes(overhead_figure(FULL))]
    assert "kernel outgrows at 6k (5.5k-7k)" in texts
    assert "kernel outgrows at 6k (5.5k-more)" in texts
    assert texts.count("overhead is the larger part") == 2
    # Only the first two curves are marked in the plot, and of these one crosses.
    marks = [e for e in elements(overhead_figure(FULL), "circle") if e.get("class") == "mark"]
    assert len(marks) == 1


def test_who_points_at_a_row_reads_its_definition():
    tips = [e.text for e in elements(overhead_figure(FULL), "title")]
    assert "dispatcher: 0.30 us (0.25 to 0.35). one minus another" in tips
    assert "Autograd kernel: not distinguishable from 0 (-0.040 to 0.060 us). hardly any" in tips
    assert "plain, 64 elements: 1.21 us (1.16 to 1.26)" in tips


def test_the_text_alternative_has_the_numbers():
    desc = elements(overhead_figure(FULL), "desc")[0].text
    assert "dispatcher: 0.30 us (0.25 to 0.35)" in desc
    assert "plain: the kernel outgrows the overhead at 6,000 elements (5,500 to 7,000)" in desc


def test_a_record_shows_its_figure():
    assert "<svg" in FULL._repr_html_() and FULL.figure().title == "What one call of add.Tensor costs"
