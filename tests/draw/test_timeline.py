"""Facts about the timeline figure and its axes, read from the layout and from the SVG as XML."""

import re
import xml.etree.ElementTree as ET

import pytest

from glassbox.draw import timeline_figure, timeline_layout
from glassbox.draw._axes import Scale, count_label, log_ticks, nice_ticks, plain_number, time_unit
from glassbox.draw._timeline_layout import BAR, short_name
from glassbox.records import Timeline, TimelineEvent


def bar(row, name, start, end, kind, correlation=0, depth=0):
    return TimelineEvent(row, name, float(start), float(end), kind, correlation=correlation, depth=depth)


ASYNC = Timeline(
    (
        bar("cpu", "mm", 0, 4, "launch", 1),
        bar("stream 0", "mm", 5, 25, "kernel", 1),
        bar("cpu", "_local_scalar_dense", 4, 8, "launch", 2),
        bar("stream 0", "_local_scalar_dense", 26, 28, "copy", 2),
        bar("cpu", "wait for copy", 8, 28, "wait"),
    ),
    returned_us=28.0,
)
TWO = Timeline(
    (
        bar("cpu", "mm", 0, 4, "launch", 1),
        bar("stream 0", "mm", 5, 25, "kernel", 1),
        bar("stream 0", "event", 25, 25, "event"),
        bar("stream 1", "wait for event", 5, 25, "wait"),
        bar("cpu", "add.Tensor", 6, 10, "launch", 2),
        bar("stream 1", "add.Tensor", 26, 31, "kernel", 2),
    ),
    returned_us=10.0,
)
NESTED = Timeline(
    (
        bar("cpu", "conv2d", 0, 900, "op"),
        bar("cpu", "convolution", 5, 890, "op", depth=1),
        bar("cpu", "mkldnn_convolution", 10, 880, "op", depth=2),
        bar("cpu", "a_very_long_name_that_fits_nowhere.overload", 910, 960, "op"),
        bar("cpu", "autograd::engine::evaluate_function: ReluBackward0", 970, 1100, "node"),
    ),
    device="",
)
CROWD = Timeline(
    (
        bar("cpu", "long", 0, 1_000_000, "op"),
        *(bar("cpu", f"op{nr}", nr * 100, nr * 100 + 90, "op", depth=1) for nr in range(10_000)),
    )
)
MANY = Timeline(
    tuple(
        each
        for nr in range(200)
        for each in (
            bar("cpu", "k", nr * 5, nr * 5 + 4, "launch", nr + 1),
            bar("stream 0", "k", nr * 5 + 4, nr * 5 + 8, "kernel", nr + 1),
        )
    )
)
EMPTY = Timeline(())
ALL = {"async": ASYNC, "two": TWO, "nested": NESTED, "crowd": CROWD, "many": MANY, "empty": EMPTY}


def elements(figure, kind):
    return [e for e in ET.fromstring(figure.text).iter() if e.tag.rsplit("}", 1)[-1] == kind]


def boxes(figure):
    """Left, right, baseline and size of every line of text."""
    found = []
    for element in elements(figure, "text"):
        size, x, y = (float(element.get(key)) for key in ("font-size", "x", "y"))
        length = len(element.text) * size * 0.61
        left = x - {"start": 0, "middle": length / 2, "end": length}[element.get("text-anchor", "start")]
        found.append((left, left + length, y, size, element.text))
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("timeline", ALL.values(), ids=ALL.keys())
def test_nothing_lies_outside_and_no_text_lies_on_another(timeline, theme):
    figure = timeline_figure(timeline).with_theme(theme)
    for left, right, y, size, _ in boxes(figure):
        assert left >= 0 and right <= figure.width + 0.5 and size <= y <= figure.height
    for element in elements(figure, "rect"):
        if element.get("x"):
            x, y, w, h = (float(element.get(key)) for key in ("x", "y", "width", "height"))
            assert x >= 0 and x + w <= figure.width and y >= 0 and y + h <= figure.height
    lines = boxes(figure)
    for nr, (left, right, y, size, text) in enumerate(lines):
        for other in lines[nr + 1 :]:
            apart = right <= other[0] or other[1] <= left or abs(y - other[2]) >= min(size, other[3])
            assert apart, (text, other[4])


@pytest.mark.parametrize("timeline", ALL.values(), ids=ALL.keys())
def test_a_timeline_has_a_text_alternative(timeline):
    svg = ET.fromstring(timeline_figure(timeline, title="what ran").text)
    ids = {e.get("id"): e for e in svg.iter() if e.get("id")}
    title, desc = (ids[each] for each in svg.get("aria-labelledby").split())
    assert title.text == "what ran" and desc.text.startswith("Times in order: ")
    if timeline is ASYNC:
        assert "cpu: wait for copy (wait) from 8 to 28 us." in desc.text


def test_time_is_where_the_scale_says_and_back():
    layout = timeline_layout(ASYNC, width=900)
    for each in layout.bars:
        assert each.x == pytest.approx(layout.scale(each.event.start_us))
        assert layout.scale.value(each.x + each.width) == pytest.approx(each.event.end_us)
    assert [lane.row for lane in layout.lanes] == ["cpu", "stream 0"]
    assert [label for _, label in layout.ticks] == ["0", "5", "10", "15", "20", "25"] and layout.unit == "µs"


def test_launches_lead_to_kernels_and_waits_come_from_what_they_waited_for():
    layout = timeline_layout(ASYNC)
    assert layout.arrows == ((0, 1), (2, 3)) and layout.syncs == ((3, 4),)
    # On stream 1 the host's launch waits for nothing; the stream waits until stream 0 has come to the event.
    assert timeline_layout(TWO).syncs == ((1, 3),)
    figure = timeline_figure(ASYNC)
    classes = [e.get("class") for e in elements(figure, "path")]
    assert classes.count("arrow") == 2 and classes.count("sync") == 1


def test_a_wait_comes_from_no_work_of_its_own_row_or_of_before():
    line = Timeline(
        (
            bar("stream 0", "long ago", 0, 3, "kernel"),
            bar("stream 1", "own", 4, 9, "kernel"),
            bar("stream 1", "wait for event", 5, 9, "wait"),
        )
    )
    assert timeline_layout(line).syncs == ()


def test_too_many_arrows_are_left_out_and_counted():
    figure = timeline_figure(MANY)
    assert "arrow" not in [e.get("class") for e in elements(figure, "path")]
    assert "200 launches without arrows" in figure.text


def test_waits_are_hatched_and_the_return_is_marked_where_a_device_goes_on():
    figure = timeline_figure(TWO)
    text = figure.text
    (uid,) = set(re.findall(r"fill:url\((#[\w-]+)-hatch\)", text))
    assert f'id="{uid[1:]}-hatch"' in text and "@UID@" not in text
    assert "returned" in [e.text for e in elements(figure, "text")]
    assert "returned" not in [e.text for e in elements(timeline_figure(NESTED), "text")]


def test_nested_bars_lie_below_each_other_and_inside():
    bars = {each.event.name: each for each in timeline_layout(NESTED).bars}
    outer, inner = bars["conv2d"], bars["convolution"]
    assert inner.y >= outer.y + BAR
    assert outer.x <= inner.x and inner.x + inner.width <= outer.x + outer.width


def test_labels_are_there_where_they_fit():
    bars = {each.event.name: each.label for each in timeline_layout(NESTED, width=1200).bars}
    assert bars["mkldnn_convolution"] == "mkldnn_convolution"
    assert bars["a_very_long_name_that_fits_nowhere.overload"] == "a_ver…"
    assert bars["autograd::engine::evaluate_function: ReluBackward0"] == "ReluBackward0"
    tight = {each.event.name: each.label for each in timeline_layout(NESTED, width=250).bars}
    assert tight["autograd::engine::evaluate_function: ReluBackward0"] == ""
    wide = timeline_layout(Timeline((bar("cpu", "add.Tensor", 0, 1, "op"), bar("cpu", "x", 1, 9, "op"))), width=500)
    assert wide.bars[0].label == "add"


def test_what_points_at_a_bar_reads_all_of_it():
    tips = [e.text for e in elements(timeline_figure(NESTED), "title")]
    assert "a_very_long_name_that_fits_nowhere.overload (op): 50 µs, 910 to 960 µs" in tips
    assert "mm (launch): 4 µs, 0 to 4 µs, launch 1" in [e.text for e in elements(timeline_figure(ASYNC), "title")]


def test_bars_narrower_than_a_pixel_are_drawn_together_and_counted():
    layout = timeline_layout(CROWD)
    assert len(layout.bars) < 1000
    assert sum(each.count for each in layout.bars) == len(CROWD.events)
    assert "10000 bars too narrow to tell apart" in timeline_figure(CROWD).text


def test_a_part_is_shown_as_large_as_the_whole():
    layout = timeline_layout(CROWD, start_us=0, end_us=1000)
    assert {each.event.name for each in layout.bars} == {"long", *(f"op{nr}" for nr in range(11))}
    assert max(each.x + each.width for each in layout.bars) <= layout.scale.end
    assert layout.bars[1].label == "op0"
    with pytest.raises(ValueError, match="from 5 us to 5 us there is no time; let it end later"):
        timeline_layout(CROWD, start_us=5, end_us=5)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "AccumulateGrad"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
         "vectorized_elementwise_kernel"),
        ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH"),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"),
        ("add.Tensor", "add.Tensor"),
    ],
)  # fmt: skip
def test_labels_of_long_names(name, short):
    assert short_name(name) == short


# Axes


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0, 28, 8, [0, 5, 10, 15, 20, 25]),
        (0, 1, 4, [0, 0.5, 1]),
        (0.13, 0.19, 5, [0.14, 0.16, 0.18]),
        (990, 1010, 3, [990, 1000, 1010]),
        (3, 3, 5, [3]),
    ],
)
def test_ticks_are_round_numbers(low, high, most, ticks):
    assert nice_ticks(low, high, most) == pytest.approx(ticks)


@pytest.mark.parametrize("most", [2, 4, 8])
@pytest.mark.parametrize(("low", "high"), [(1, 100), (0.9, 210), (1, 3e7), (0.02, 0.9)])
def test_logarithmic_ticks_are_few_and_inside(low, high, most):
    ticks = log_ticks(low, high, most)
    assert 1 <= len(ticks) <= most + 1 or most == 2
    assert all(low * 0.99 <= tick <= high * 1.01 for tick in ticks) and ticks == sorted(ticks)


def test_a_scale_goes_both_ways():
    for scale in (Scale(0, 50, 10, 110), Scale(1, 10_000, 400, 0, log=True)):
        for value in (1, 7, 30):
            assert scale.value(scale(value)) == pytest.approx(value)
    assert Scale(1, 100, 0, 200, log=True)(10) == pytest.approx(100)
    assert Scale(3, 3, 5, 9)(3) == 5


def test_units_and_counts_are_short():
    assert [time_unit(us)[1] for us in (0.05, 30, 3000, 4e6)] == ["ns", "µs", "ms", "s"]
    assert [count_label(n) for n in (1, 64, 4096, 65536, 1_048_576, 2e9)] == ["1", "64", "4.1k", "65.5k", "1.05M", "2G"]
    assert [plain_number(x) for x in (0.5, 20.0, 1000.0, -0.0)] == ["0.5", "20", "1,000", "0"]
