"""Facts about the timeline player's Python side: what was run at every size, told moment by moment."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from traitlets import TraitError

from glassbox import mini
from glassbox.draw.moments import moments
from glassbox.draw.size_sweep import SweepPoint, crossing, in_words, sweep_figure
from glassbox.records import Timeline, TimelineEvent
from glassbox.widgets import TimelinePlayer

NEVER, AT_THE_END, EACH = "never waits", "synchronizes at the end", "reads .item() after each"


@pytest.fixture(scope="module")
def player():
    return TimelinePlayer(sizes=(2**20, 1, 2**18))


def points(*times):
    return [SweepPoint(size, host, device, max(host, device)) for size, host, device in times]


def test_each_program_is_run_at_each_size_in_order(player):
    assert player.names == (NEVER, AT_THE_END, EACH)
    assert player.sizes == (1, 2**18, 2**20)
    for name in player.names:
        assert [len(line.launches()) for line in player.timelines[name]] == [12 if name == EACH else 6] * 3


def test_the_times_are_those_of_the_virtual_clock(player):
    """Six launches of 4 us; a kernel of 2**20 floats moves 12 MB, at 1 TB a second."""
    small, _, large = player.points(NEVER)
    assert (small.host_us, small.total_us) == (24.0, 26.5)
    assert large.device_us == pytest.approx(6 * 12 * 2**20 / 1e6, abs=0.02)
    assert (large.host_us, large.total_us) == (24.0, pytest.approx(large.device_us + 10, abs=0.01))


def test_who_waits_does_not_return_early(player):
    for nr in range(3):
        early, late = player.timelines[NEVER][nr], player.timelines[AT_THE_END][nr]
        assert early.returned_us == 24.0 < early.end_us() == pytest.approx(late.returned_us, abs=0.6)
        assert [event.kind for event in early.events if event.kind == "wait"] == []
        assert len(player.timelines[EACH][nr].of_kind("wait")) == 6


def test_memory_was_fetched_before_anybody_looked(player):
    assert [line for lines in player.timelines.values() for line in lines if line.of_kind("malloc")] == []


def test_two_players_say_the_same(player):
    again = TimelinePlayer(sizes=player.sizes)
    assert again.timelines == player.timelines


def test_pages_are_plain_data_of_a_modest_size(player):
    state = json.loads(json.dumps(player.state))
    assert state["sizes"] == [1, 2**18, 2**20]
    assert [each["name"] for each in state["programs"]] == list(player.names)
    assert len(json.dumps(TimelinePlayer().state)) < 330_000


def test_a_page_is_its_figure_with_the_axis_its_moments_lie_on(player):
    [program, *_] = player.state["programs"]
    for page, line in zip(program["runs"], player.timelines[NEVER], strict=True):
        figure = player.state["template"].replace(player.state["body"], page["figure"])
        root = ET.fromstring(figure)
        assert "@" not in re.sub(r"@(media|keyframes)", "", figure)
        assert len([each for each in root.iter() if each.get("data-nr")]) == len(line.events)
        assert len(page["moments"]) == len(moments(line))
        xs = [each["x"] for each in page["moments"]]
        assert xs == sorted(xs) and xs[-1] == pytest.approx(860 - 18, abs=0.1)


def test_the_widget_says_where_launching_stops_to_matter(player):
    assert [each["crossing"] for each in player.state["programs"]] == [2**20] * 3
    assert player.state["programs"][0]["says"] == (
        "From 1,048,576 elements on the device works longer than the host; below that launching sets the pace."
    )


def test_program_and_size_can_be_set_and_are_checked():
    player = TimelinePlayer(sizes=(1, 4))
    player.program, player.size = 2, 1
    assert player.timeline is player.timelines[EACH][1]
    for name, value in (("program", 3), ("size", 2), ("size", -1)):
        with pytest.raises(TraitError, match=f"{name} is a number from 0 to"):
            setattr(player, name, value)
    assert str(player).startswith("reads .item() after each over 4 elements: ")


def test_programs_of_ones_own():
    def make(n):
        x = mini.ones(n, n, device="sim")
        return lambda: (x @ x).relu()

    player = TimelinePlayer({"a layer": make}, sizes=(8, 16))
    assert [event.name for event in player.timeline.of_kind("kernel")] == ["mm", "relu"]


def test_what_it_cannot_do_it_says():
    for given in ({"programs": {}}, {"sizes": ()}):
        with pytest.raises(ValueError, match="at least one program and one size"):
            TimelinePlayer(**given)


def test_a_page_without_scripts_has_what_is_on_show(player):
    html = player.static_html()
    assert html.count("<svg") == 2 and "never waits" in html and ", 1 element." in html


# The moments


def line(*events, returned=None):
    made = tuple(
        TimelineEvent(row, name, start, end, kind, correlation=nr) for row, name, start, end, kind, nr in events
    )
    return Timeline(made, returned_us=returned)


def test_moments_tell_what_both_do_and_what_is_queued():
    told = moments(
        line(
            ("cpu", "add", 0.0, 4.0, "launch", 1),
            ("stream 0", "add", 5.0, 9.0, "kernel", 1),
            ("cpu", "mul", 4.0, 8.0, "launch", 2),
            ("stream 0", "mul", 10.0, 12.0, "kernel", 2),
            ("cpu", "synchronize", 8.0, 12.0, "wait", 0),
            returned=12.0,
        )
    )
    assert [(each.at_us, each.text) for each in told] == [
        (0.0, "0 µs: the host launches add; stream 0 is idle."),
        (4.0, "4 µs: the host launches mul; stream 0 is idle; 1 launched and not begun."),
        (5.0, "5 µs: the host launches mul; stream 0 runs add."),
        (8.0, "8 µs: the host waits: synchronize; stream 0 runs add; 1 launched and not begun."),
        (9.0, "9 µs: the host waits: synchronize; stream 0 is idle; 1 launched and not begun."),
        (10.0, "10 µs: the host waits: synchronize; stream 0 runs mul."),
        (12.0, "12 µs: the host has returned and is free; stream 0 is idle."),
    ]


def test_an_empty_timeline_has_one_moment():
    assert [each.text for each in moments(line())] == ["0 µs: the host is free."]


# The sweep


@pytest.mark.parametrize(
    ("given", "at", "words"),
    [
        (points((1, 4, 1), (8, 4, 4), (64, 4, 9)), 64, "From 64 elements on the device works longer"),
        (points((64, 4, 9), (8, 4, 5), (1, 4, 1)), 8, "From 8 elements on the device works longer"),
        (points((1, 4, 1), (8, 4, 2)), None, "At every size the host works longer"),
        (points((1, 4, 5), (8, 4, 9)), 1, "At every size the device works longer"),
        (points((1, 4, 5), (8, 4, 3), (64, 4, 9)), 64, "From 64 elements on"),
    ],
)
def test_launch_overhead_ends_where_the_device_is_the_slower_one_from_there_on(given, at, words):
    assert crossing(given) == at
    assert in_words(given).startswith(words)


def test_the_sweep_is_drawn_with_a_mark_at_the_size():
    figure = sweep_figure(points((1, 24, 9), (1000, 24, 90)), at=1000)
    assert figure.desc.startswith("From 1,000 elements on")
    [mark] = re.findall(r'<path d="M([\d.]+) [^"]*" class="now"', figure.body)
    dots = re.findall(r'cx="([\d.]+)"', figure.body)
    assert mark == dots[1] and len(dots) == 6
    assert 'class="now"' not in sweep_figure(points((1, 24, 9))).body
    with pytest.raises(ValueError, match="no points"):
        sweep_figure([])
