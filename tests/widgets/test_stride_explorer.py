"""Facts about the stride explorer's Python side: measured ops, bounds, traits and the static picture."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch
from traitlets import TraitError

from glassbox import mini
from glassbox.widgets import StrideExplorer, stride_explorer
from glassbox.widgets.stride_explorer import why_not

BOTH = pytest.mark.parametrize("lib", [torch, mini], ids=["torch", "mini"])


def explorer(lib=torch, **kwargs):
    return StrideExplorer(lib.arange(12, dtype=lib.float32).view(3, 4), **kwargs)


def layout(widget):
    return (widget.shape, widget.stride, widget.offset)


@BOTH
def test_every_op_on_offer_was_measured(lib):
    ops = {e["label"]: (e["shape"], e["stride"], e["offset"]) for e in explorer(lib).ops}
    assert ops["x"] == ([3, 4], [4, 1], 0)
    assert ops["x.T"] == ([4, 3], [1, 4], 0)
    assert ops["x[1:, :2]"] == ([2, 2], [4, 1], 4)
    assert ops["x[:, ::2]"] == ([3, 2], [4, 2], 0)
    assert ops["x[:1].expand(3, -1)"] == ([3, 4], [0, 1], 0)
    assert ops["x.view(2, 6)"] == ([2, 6], [6, 1], 0)
    assert ops["x.view(2, 2, 3)"] == ([2, 2, 3], [6, 3, 1], 0)
    x = torch.arange(12.0).view(3, 4)
    for label, (shape, stride, offset) in ops.items():
        real = eval(label, {"x": x})
        assert (list(real.shape), list(real.stride()), real.storage_offset()) == (shape, stride, offset)


@BOTH
def test_what_copies_or_raises_is_not_offered(lib):
    labels = [e["label"] for e in StrideExplorer(lib.arange(12).view(3, 4).T, name="t").ops]
    assert "t.T" in labels
    assert [label for label in labels if ".view(" in label] == ["t.view(2, 2, 3)"]


@BOTH
def test_choosing_an_op_sets_the_layout(lib):
    widget = explorer(lib)
    widget.op = "x[1:, :2]"
    assert layout(widget) == ([2, 2], [4, 1], 4)
    assert not widget.contiguous
    widget.op = "x.view(2, 6)"
    assert widget.contiguous


def test_a_message_from_the_browser_sets_all_at_once():
    widget = explorer()
    widget.set_state({"op": "as_strided", "shape": [3, 3], "stride": [1, 2], "offset": 5})
    assert layout(widget) == ([3, 3], [1, 2], 5)
    assert (widget.op, widget.contiguous, widget.overlapping) == ("as_strided", False, True)
    widget.set_state({"selected": [1, 2]})
    assert widget.selected == [1, 2]


def test_a_layout_reached_by_hand_gets_its_name():
    widget = explorer()
    widget.set_layout([4, 3], [1, 4])
    assert widget.op == "x.T"
    widget.set_layout([2, 3], [1, 4])
    assert widget.op == "as_strided"


def test_a_layout_that_leaves_the_storage_is_refused_and_nothing_changes():
    widget = explorer()
    with pytest.raises(TraitError, match=r"would reach storage\[15\], but the last element is storage\[11\]"):
        widget.set_layout([4, 4], [4, 1])
    with pytest.raises(TraitError, match=r"reach storage\[12\]"):
        widget.offset = 1
    with pytest.raises(TraitError, match=r"reach storage"):
        widget.set_state({"stride": [5, 1]})
    assert layout(widget) == ([3, 4], [4, 1], 0)
    assert widget.op == "x"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (([2, 2], [1], 0), "needs 2 strides"),
        (([1, 1, 1, 1], [1, 1, 1, 1], 0), "at most 3"),
        (([0], [1], 0), "outside 1 to 12"),
        (([13], [0], 0), "outside 1 to 12"),
        (([12, 9], [0, 1], 0), "108 elements; at most 96"),
        (([2], [-1], 5), "no negative strides"),
        (([2], [1], -1), "before the storage"),
    ],
)
def test_reasons(bad, reason):
    assert reason in why_not(*bad, 12)
    with pytest.raises(TraitError):
        explorer().set_layout(*bad)


def test_the_bounds_are_torchs_own():
    """as_strided raises exactly where the explorer refuses for leaving the storage."""
    storage = torch.arange(12.0)
    for rows in (1, 2, 3):
        for stride in range(7):
            for offset in range(12):
                try:
                    storage.as_strided((rows, 2), (stride, 1), offset)
                    legal = True
                except RuntimeError:
                    legal = False
                assert (why_not([rows, 2], [stride, 1], offset, 12) == "") == legal


def test_unknown_ops_and_indices_are_refused():
    widget = explorer()
    with pytest.raises(TraitError, match=r"'x\.flip' is not offered; choose one of x, x\.T"):
        widget.op = "x.flip"
    with pytest.raises(TraitError, match=r"\[3, 0\] is no index into shape \(3, 4\)"):
        widget.selected = [3, 0]


def test_a_selection_does_not_outlive_its_shape():
    widget = explorer()
    widget.selected = [2, 3]
    widget.op = "x[1:, :2]"
    assert widget.selected == []


@BOTH
def test_a_tensor_of_ones_own(lib):
    widget = StrideExplorer(lib.arange(24).view(2, 3, 4), name="t")
    assert widget.shape == [2, 3, 4]
    assert "t.permute(2, 0, 1)" in [e["label"] for e in widget.ops]
    part = StrideExplorer(lib.arange(12).view(3, 4)[1:], name="p")
    assert (part.offset, len(part.cells)) == (4, 12)


def test_a_tensor_that_needs_grad_is_shown_detached():
    x = torch.ones(2, 3, requires_grad=True)
    widget = StrideExplorer(x * 2)
    widget.op = "x.T"
    assert widget.shape == [3, 2]


def test_the_tensor_is_never_changed():
    x = torch.arange(12.0).view(3, 4)
    widget = StrideExplorer(x)
    for entry in widget.ops:
        widget.op = entry["label"]
    assert x._version == 0


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (torch.zeros(2, 2, 2, 2), "4 dimensions; it shows at most 3"),
        (torch.zeros(100, 100), "10,000 elements"),
        (torch.zeros(0), "0 elements"),
        (torch.zeros(1, 9).expand(12, 9), "108 elements; it shows at most 96"),
        (torch.zeros(1, 13), "sizes from 1 to 12"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_a_sentence(tensor, reason):
    with pytest.raises(ValueError, match=reason):
        StrideExplorer(tensor)


def test_a_tensor_without_data_shows_positions():
    widget = StrideExplorer(torch.zeros(2, 3, device="meta"))
    assert widget.cells == ["0", "1", "2", "3", "4", "5"]


def test_no_tensor_is_refused():
    with pytest.raises(TypeError, match="list is not a tensor"):
        StrideExplorer([1, 2])


def test_the_record_of_what_is_shown():
    widget = explorer()
    widget.op = "x[1:, :2]"
    assert widget.view.cells() == (4, 5, 8, 9)
    assert widget.view.formula((1, 1)) == "x[1:, :2][1,1] = storage[4 + 1*4 + 1*1] = storage[9]"


def test_a_static_export_still_shows_the_figure():
    widget = explorer()
    widget.op = "x.T"
    widget.selected = [1, 2]
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    svg = ET.fromstring(data["text/html"])
    assert "x.T[1,2] = storage[0 + 1*1 + 2*4] = storage[9]" in [e.text for e in svg.iter()]
    assert data["text/plain"] == "StrideExplorer: x.T, shape (4, 3), stride (1, 4), offset 0"


def test_the_grid_is_accessible():
    source = str(explorer()._esm)
    for wanted in ('role: "grid"', 'role: "row"', 'role: "gridcell"', '"aria-live": "polite"', "ArrowDown"):
        assert wanted in source
    assert "innerHTML" not in source


def test_a_refusal_goes_when_the_refused_value_goes():
    settle = re.search(r"const settle = \(\) => \{(.*?)\n    \};", str(explorer()._esm), re.DOTALL)
    assert "input.value = String(valueOf(field, k));" in settle[1]
    assert 'refuse("");' in settle[1]


def test_all_parts_begin_where_the_cells_of_the_grid_begin():
    sheet = (Path(stride_explorer.__file__).parent / "stride_explorer.css").read_text(encoding="utf-8")
    assert re.findall(r"margin(?:-left)?: ([^;]*?);", sheet) == ["var(--gb-gutter)"]
    gutter = int(re.search(r"--gb-gutter: (\d+)px", sheet)[1])
    number = re.search(r"\.gb-number \{ box-sizing: border-box; width: (\d+)px; flex: none;", sheet)
    between = re.search(r"\.gb-line \{ display: flex; gap: (\d+)px", sheet)
    assert gutter == int(number[1]) + int(between[1])


def test_the_default_needs_no_torch():
    code = (
        "import sys; from glassbox.widgets import StrideExplorer; w = StrideExplorer(); w.op = 'x.T'; "
        "print(w.shape, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[4, 3] False"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_kinds_without_strides_to_play_with_are_refused():
    with pytest.raises(TypeError, match="has no storage.*; pass a plain strided tensor.$"):
        StrideExplorer(torch.eye(3).to_sparse())
    channels = torch.quantize_per_channel(torch.ones(2, 3), torch.ones(2), torch.zeros(2), 0, torch.qint8)
    with pytest.raises(TypeError, match="StrideExplorer: x cannot get other strides"):
        StrideExplorer(channels)
