"""Facts about the call path explorer's Python side: what a browser gets to know of paths and costs."""

import json

import pytest
from traitlets import TraitError

from glassbox import mini
from glassbox.records import STATIONS, CallPath, CostLayer, Evidence, Frame, Overhead, Spread
from glassbox.widgets import CallPathExplorer
from glassbox.xray import call_path


def made(framework="PyTorch", **more):
    frames = (
        Frame("outermost", language="python", file="main.py", line=1),
        Frame("main", language="python", file="main.py", line=2),
        Frame("<lambda>", language="python", file="main.py", line=7),
        Frame("slot_nb_add", "slot_nb_add", file="Objects/typeobject.c", line=7419, station=1),
        Frame("at::_ops::add::call", "at::_ops::add_Tensor::call(at::Tensor const&)", station=3),
        Frame("pythonFallback", station=4, observer=True),
        Frame("pythonFallback", station=4, observer=True),
        Frame("__torch_dispatch__", language="python", observer=True),
        Frame("nobody knows", known=False),
    )
    evidence = (Evidence(3, "the tensors", "{CPU}"), Evidence(8, "the <device>", "all done"))
    return CallPath("a + b", "aten.add.Tensor", framework, frames, evidence, note="seen & noted", **more)


@pytest.fixture(scope="module")
def ours():
    a, b = mini.randn(3, 4, requires_grad=True), mini.randn(4)
    return call_path(lambda: a + b)


def names(path):
    return [[each["name"] for each in lane] for lane in path["lanes"]]


def test_every_station_is_there_with_its_words_and_its_places():
    state = CallPathExplorer(made()).state
    assert [(each["nr"], each["name"], each["what"], tuple(each["source"])) for each in state["stations"]] == [
        (each.nr, each.name, each.what, each.source) for each in STATIONS
    ]


def test_frames_stand_in_their_lanes_and_evidence_behind_them():
    [path] = CallPathExplorer(made()).state["paths"]
    assert names(path) == [
        ["main", "<lambda>"],
        ["slot_nb_add"],
        [],
        ["at::_ops::add::call", "{CPU}"],
        [],
        [],
        [],
        [],
        ["all done"],
    ]
    assert path["lanes"][3] == [
        {
            "kind": "compiled",
            "name": "at::_ops::add::call",
            "full": "at::_ops::add_Tensor::call(at::Tensor const&)",
            "place": "",
            "by": "",
        },
        {"kind": "evidence", "name": "{CPU}", "full": "", "place": "", "by": "the tensors"},
    ]
    assert [each["kind"] for each in path["lanes"][0]] == ["python", "python"]
    assert path["lanes"][1][0]["place"] == "Objects/typeobject.c:7419"


def test_observers_and_strangers_are_named_once_beside_the_lanes():
    [path] = CallPathExplorer(made()).state["paths"]
    assert (path["observer"], path["unknown"]) == (["pythonFallback", "__torch_dispatch__"], ["nobody knows"])
    assert path["note"] == "seen & noted"


def test_two_frameworks_stand_beside_each_other(ours):
    state = CallPathExplorer(made(), ours).state
    assert [path["framework"] for path in state["paths"]] == ["PyTorch", "the mini-framework"]
    for nr in range(1, len(STATIONS) + 1):
        shown = [each["name"] for each in state["paths"][1]["lanes"][nr] if each["kind"] != "evidence"]
        assert shown == [frame.name for frame in ours.at(nr)]
    assert "broadcast_shapes" in names(state["paths"][1])[7]
    assert json.loads(json.dumps(state)) == state


def test_costs_by_hand_stand_at_the_first_of_their_stations():
    costs = [("3, 4", 0.0271, "dispatcher: one call minus another"), ("1-2", 12.5, "binding")]
    first, second = CallPathExplorer(made(), made("mini"), costs=[costs]).state["paths"]
    assert [(each["lane"], each["stations"], each["says"]) for each in first["costs"]] == [
        (3, "3, 4", "0.027 µs"),
        (1, "1-2", "12.5 µs"),
    ]
    assert second["costs"] == []


def test_a_ledger_gives_its_layers_that_have_a_station_and_none_below_nothing():
    def spread(us):
        return Spread(us, us - 0.01, us + 0.01, us, us, 9)

    layers = (
        CostLayer("Python call", "a call that does nothing", spread(0.02), "1"),
        CostLayer("kernel set-up", "one minus another", spread(-0.1), "7"),
        CostLayer("elsewhere", "has no station", spread(3.0)),
    )
    ledger = Overhead("add.Tensor", "a machine", 9, 1, spread(1.0), layers, ())
    [path] = CallPathExplorer(made(), costs=[ledger]).state["paths"]
    assert [(each["lane"], each["us"], each["what"]) for each in path["costs"]] == [
        (1, 0.02, "Python call: a call that does nothing"),
        (7, 0.0, "kernel set-up: one minus another"),
    ]


@pytest.mark.parametrize("stations", ["", "9", "0", "1, 9", "twelve"])
def test_costs_of_no_station_are_refused(stations):
    with pytest.raises(ValueError, match="costs belong to stations such as"):
        CallPathExplorer(made(), costs=[[(stations, 1.0, "x")]])


def test_what_it_cannot_do_it_says():
    with pytest.raises(ValueError, match="at least one path"):
        CallPathExplorer()
    with pytest.raises(ValueError, match="2 costs for 1 paths"):
        CallPathExplorer(made(), costs=[None, None])


def test_opened_lanes_are_stations_in_order():
    widget = CallPathExplorer(made())
    widget.opened = [7, 4, 7]
    assert widget.opened == [4, 7]
    with pytest.raises(TraitError, match="stations are 1 to 8"):
        widget.opened = [9]


def test_a_page_without_scripts_has_the_figure_and_the_costs_as_text():
    html = CallPathExplorer(made("A & B"), costs=[[("5", 0.95, "node <made>")]]).static_html()
    assert "<svg" in html and "slot_nb_add" in html
    assert "<td>5</td><td>0.95</td>" in html and "node &lt;made&gt;" in html and "A &amp; B</td>" in html
    assert "<table" not in CallPathExplorer(made()).static_html()


def test_as_text_it_is_the_paths():
    assert str(CallPathExplorer(made())) == str(made())
