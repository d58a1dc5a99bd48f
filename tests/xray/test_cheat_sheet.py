"""Facts about the sheet of dispatch keys: every key of the installed torch, in the order that the dispatcher has."""

import pytest
import torch

from glassbox import xray
from glassbox.records.key_family import FAMILIES
from glassbox.xray import _torch_internals
from glassbox.xray._key_header import parse_header, torch_layout
from glassbox.xray.key_families import sheet_of


def test_the_order_high_to_low():
    """Not Python > Autocast > Autograd > functorch > backend, as is often told."""
    order = xray.cheat_sheet().priority()
    told = [
        "PythonDispatcher",
        "PreDispatch",
        "FuncTorchDynamicLayerFrontMode",
        "PythonTLSSnapshot",
        "FuncTorchGradWrapper",
        "FuncTorchVmapMode",
        "FuncTorchBatched",
        "AutocastCUDA",
        "AutocastCPU",
        "Tracer",
        "AutogradFunctionality",
        "ADInplaceOrView",
        "ZeroTensor",
        "Negative",
        "Conjugate",
        "Functionalize",
        "FuncTorchDynamicLayerBackMode",
        "Python",
        "Fake",
        "BackendSelect",
        "Dense",
    ]
    # Fake is new in 2.14.
    told = [key for key in told if key in order or key != "Fake"]
    assert [key for key in order if key in told] == told


def test_the_order_is_the_one_in_which_the_dispatcher_chooses():
    """Of two functionalities in one set, the higher on the sheet is the last that torch lists."""
    order = xray.cheat_sheet().priority()
    layout = torch_layout()
    for high, low in zip(order, order[1:], strict=False):
        bits = layout.bits(high, low, "CPU") | 1
        names = _torch_internals.key_names(bits)
        assert names[-1] == layout.key(high, "CPU") != names[-2]


def test_every_key_is_there_once_with_its_bit():
    sheet, layout = xray.cheat_sheet(), torch_layout()
    assert sorted(sheet.priority()) == sorted(layout.functionalities)
    bits = [entry.bit for entry in sheet if entry.bit is not None]
    assert bits == list(reversed(range(layout.size)))
    assert [entry.key for entry in sheet if entry.family == "alias keys"] == list(layout.aliases)
    # Each key that Python knows, runtime or alias, is on the sheet.
    for name in torch._C.DispatchKey.__members__:
        if not name.startswith(("Undefined", "StartOf", "EndOf")):
            assert sheet[name]


def test_every_key_of_the_tried_versions_is_explained():
    sheet = xray.cheat_sheet()
    assert [entry.key for entry in sheet if not entry.known] == []
    assert len({entry.does for entry in sheet}) == len(sheet)
    for entry in sheet:
        assert entry.family in (*FAMILIES, "backend bits", "alias keys")
        assert "\n" not in entry.does
        assert not entry.does.endswith(".")


def test_a_family_is_together():
    """But for functorch, whose keys lie in four places, and the Python keys."""
    families = [entry.family for entry in xray.cheat_sheet()]
    for family in ("autocast", "autograd", "lazy tensors", "backends", "backend bits", "alias keys"):
        first = families.index(family)
        assert families[first : first + families.count(family)] == [family] * families.count(family)


def test_which_keys_exist_once_per_backend():
    sheet = xray.cheat_sheet()
    per_backend = [entry.key for entry in sheet if entry.per_backend]
    assert per_backend == ["AutogradFunctionality", "NestedTensor", "SparseCsr", "Sparse", "Quantized", "Dense"]
    assert sheet["AutogradCUDA"].key == "AutogradFunctionality"
    assert sheet["CUDA"].keys[0] == "CPU" or sheet["CUDA"].family == "backend bits"
    assert sheet["FuncTorchGradWrapper"].family == "functorch"
    with pytest.raises(KeyError, match="has no dispatch key 'FuncTorchGrad'"):
        sheet["FuncTorchGrad"]


def test_a_key_that_is_new_is_kept_and_marked():
    text = _torch_internals.header("c10/core/DispatchKey.h").replace("  Tracer,\n", "  Tracer,\n  Brandnew,\n", 1)
    sheet = sheet_of(parse_header(text), "torch of tomorrow")
    assert (sheet["Brandnew"].known, sheet["Brandnew"].family) == (False, "other")
    order = sheet.priority()
    assert order[order.index("Brandnew") + 1] == "Tracer"
    row = next(row for row in sheet.rows() if row["key"] == "Brandnew")
    assert row["what it does"] == "not known here"


def test_the_sheet_as_markdown():
    lines = xray.cheat_sheet().to_markdown().splitlines()
    assert lines[0] == "| family | key | bit | runtime keys | what it does |"
    assert len(lines) == len(xray.cheat_sheet()) + 2
    autograd = next(line for line in lines if "| AutogradFunctionality |" in line)
    assert autograd.startswith("| autograd | AutogradFunctionality |")
    assert "AutogradCPU, AutogradCUDA, ... (16)" in autograd


def test_the_mini_frameworks_keys_are_pytorchs():
    mini, real = xray.cheat_sheet("mini"), xray.cheat_sheet()
    assert mini.priority() == real.priority()
    assert mini.entries == real.entries
    with pytest.raises(ValueError, match="framework 'jax' is unknown"):
        xray.cheat_sheet("jax")
