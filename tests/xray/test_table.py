"""Facts about dispatch tables of the installed torch, read from what the dispatcher prints."""

import re

import pytest
import torch

from glassbox import mini, xray
from glassbox.xray import _torch_internals
from glassbox.xray._key_header import torch_layout
from glassbox.xray.dispatch_tables import parse_row, read_row, read_table, runtime_keys, short_place

# a wheel without CUDA registers no kernels for it
WITH_CUDA = torch.version.cuda is not None

PLACE = re.compile(r"(build/aten/src|aten/src|torch/csrc|torch)/.*\.(cpp|h|cu|py):\d+")


def without_lines(text):
    """The table without the lines of files and the number of keys, which differ from wheel to wheel."""
    return re.sub(r"and \d+ more", "and more", re.sub(r":\d+|_\d+\.cpp", "", text))


def test_the_table_of_add():
    add = xray.table("add.Tensor")
    kinds = {
        key: add[key].kind for key in ("CPU", "AutogradCPU", "AutocastCPU", "HIP", "XLA", "Conjugate", "Undefined")
    }
    assert kinds == {
        "CPU": "kernel",
        "AutogradCPU": "autograd kernel",
        "AutocastCPU": "backend fallback",
        "HIP": "default backend kernel",
        "XLA": "missing",
        "Conjugate": "backend fallback",
        "Undefined": "default backend kernel",
    }
    assert (add["AutocastCPU"].fallthrough, add["Conjugate"].fallthrough) == (True, False)
    assert add["AutogradCPU"].registered_to == "Autograd"
    assert add["HIP"].registered_to == "CompositeExplicitAutogradNonFunctional"
    assert add["CPU"].file.startswith("build/aten/src/ATen/RegisterCPU_")
    assert add["CPU"].line > 0
    assert add["XLA"].line is None
    assert add.op == "aten.add.Tensor"
    assert add.schema == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"


def test_the_beginning_of_a_table_as_it_prints():
    lines = without_lines(str(xray.table("linear"))).splitlines()
    lines = [" | ".join(re.split(r"  +", line)) for line in lines]
    assert lines[0] == "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"
    assert [
        line for line in lines if line.startswith(("PythonTLS", "FuncTorchB", "AutocastCPU", "Autograd", "ADIn"))
    ] == [
        "PythonTLSSnapshot | backend fallback | aten/src/ATen/core/PythonFallbackKernel.cpp",
        "FuncTorchBatched | batched kernel | FuncTorchBatchedDecomposition | "
        "aten/src/ATen/functorch/BatchRulesDecompositions.cpp",
        "AutocastCPU | kernel | aten/src/ATen/autocast_mode.cpp",
        "AutogradNestedTensor | autograd kernel | Autograd | torch/csrc/autograd/generated/VariableType",
        "AutogradCPU, AutogradCUDA, AutogradHIP, AutogradXLA, AutogradMPS and more | math kernel | "
        "CompositeImplicitAutograd | build/aten/src/ATen/RegisterCompositeImplicitAutograd",
        "ADInplaceOrView | fallthrough | aten/src/ATen/core/VariableFallbackKernel.cpp",
    ]


def test_composite_implicit_is_an_alias_that_fills_rows_and_no_key_of_low_priority():
    linear = xray.table("linear")
    assert "CompositeImplicitAutograd" not in linear
    with pytest.raises(KeyError, match="alias keys have no row"):
        linear["CompositeImplicitAutograd"]
    filled = {row.key for row in linear if row.registered_to == "CompositeImplicitAutograd"}
    assert {"CPU", "CUDA", "AutogradCPU", "AutogradCUDA", "Undefined"} <= filled
    assert linear.registered("CompositeImplicitAutograd").alias


def test_structured_kernels_fill_backends_and_the_rest_by_a_non_functional_alias():
    add = xray.table("add.Tensor")
    assert add["CPU"].kind == "kernel"
    if WITH_CUDA:
        assert add["CUDA"].kind == "kernel"
    assert add["PrivateUse1"].registered_to == "CompositeExplicitAutogradNonFunctional"


def test_of_two_aliases_that_fill_backends_each_row_tells_its_own():
    """The non-functional one does not cover XLA and Lazy, whose in-place kernels must not come from below."""
    found = xray.table("all.dims")
    assert found["HIP"].registered_to == "CompositeExplicitAutogradNonFunctional"
    assert found["XLA"].registered_to == "CompositeExplicitAutograd"


def test_randn_has_a_backend_select_kernel_and_add_falls_through_there():
    assert (xray.table("randn")["BackendSelect"].kind, xray.table("randn")["BackendSelect"].fallthrough) == (
        "kernel",
        False,
    )
    assert xray.table("add.Tensor")["BackendSelect"].fallthrough


def test_rows_are_in_the_order_of_priority():
    order = [row.key for row in xray.table("add.Tensor")]
    known = [key for key in runtime_keys(torch_layout()) if key in order]
    assert order == known
    assert order[0] == "PythonDispatcher"
    assert order[-1] == "Undefined"
    assert order.index("AutogradCPU") < order.index("Python") < order.index("CPU")


@pytest.fixture(scope="module")
def names(request):
    found = sorted(torch._C._dispatch_get_all_op_names())
    return found if request.config.getoption("--full") else found[::9]


def test_every_line_that_the_dispatcher_prints_is_in_the_record(names):
    layout = torch_layout()
    for name in names:
        computed, dump = _torch_internals.computed_table(name), _torch_internals.registrations(name)
        found = read_table(name, layout, computed, dump)
        assert {row.key: row.fallthrough for row in found} == {
            key: text.startswith("fallthrough") for key, text in computed.items()
        }
        for row in found:
            assert computed[row.key].endswith(f"[{row.kind}]")
            assert row.kind == "backend fallback" or row.registered_to
        head = ("name:", "schema:", "debug:", "alias analysis")
        printed = [line for line in dump.splitlines() if line and not line.startswith(head)]
        assert len(found.registrations) == len(printed)
        assert [each.fallthrough for each in found.registrations] == ["[ fallthrough" in line for line in printed]


def test_a_row_says_the_same_as_torch_itself(names):
    """torch._C knows whether a computed kernel is there and whether it is a fallthrough."""
    for name in names[:: max(1, len(names) // 60)]:
        found = read_table(name, torch_layout(), _torch_internals.computed_table(name), "")
        for key in ("CPU", "CUDA", "Meta", "AutogradCPU", "AutocastCPU", "ADInplaceOrView", "BackendSelect", "Python"):
            assert (key in found) == torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, key)
            if key in found and found[key].kind == "kernel":
                told = torch._C._dispatch_kernel_for_dispatch_key_is_fallthrough(name, key)
                assert found[key].fallthrough == told


def test_places_begin_in_pytorchs_tree_or_in_the_package(names):
    for name in names[::40]:
        for row in read_table(name, torch_layout(), _torch_internals.computed_table(name), ""):
            assert PLACE.fullmatch(row.place) or row.place in ("RegisterOperators", ""), (name, row)


@pytest.mark.parametrize(
    ("where", "short"),
    [
        (
            "/__w/pytorch/pytorch/build/aten/src/ATen/RegisterCPU_0.cpp:1307",
            "build/aten/src/ATen/RegisterCPU_0.cpp:1307",
        ),
        ("/home/me/src/pytorch/torch/csrc/autograd/x.cpp:1", "torch/csrc/autograd/x.cpp:1"),
        (r"C:\actions\pytorch\aten\src\ATen\autocast_mode.cpp:177", "aten/src/ATen/autocast_mode.cpp:177"),
        ("/x/lib/python3.11/site-packages/torch/_meta_registrations.py:53", "torch/_meta_registrations.py:53"),
        ("/usr/lib/python3/dist-packages/torch/include/c10/util/x.h:3", "torch/include/c10/util/x.h:3"),
        ("/home/me/ops.py:12", "/home/me/ops.py:12"),
    ],
)
def test_where_a_wheel_was_built_is_left_out(where, short):
    assert short_place(where) == short


def test_a_registration_from_python_shows_with_its_file_and_goes_again():
    before = xray.table("add.Tensor")
    library = torch.library.Library("aten", "IMPL")
    library.impl("add.Tensor", lambda a, b, *, alpha=1: a, "SparseCsrHIP")
    try:
        row = xray.table("add.Tensor")["SparseCsrHIP"]
        assert (row.kind, row.registered_to) == ("kernel", "SparseCsrHIP")
        assert row.file.endswith("test_table.py")
    finally:
        library._destroy()
    assert xray.table("add.Tensor") == before


def test_a_later_registration_covers_the_earlier_one():
    meta = [each for each in xray.table("add.Tensor").registrations if each.key == "Meta"]
    assert [each.active for each in meta] == [True, False]
    assert xray.table("add.Tensor").registered("Meta").place == meta[0].place


def test_custom_operators_have_tables():
    @torch.library.custom_op("glassbox_table::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    for way in ("glassbox_table::twice", torch.ops.glassbox_table.twice, torch.ops.glassbox_table.twice.default):
        assert xray.table(way).op == "glassbox_table.twice.default"
    assert xray.table("glassbox_table::twice")["CPU"].registered_to == "CompositeExplicitAutograd"


def test_the_parts_of_a_rows_text():
    assert parse_row("fallthrough registered at /a/aten/src/b.cpp:3 [backend fallback]") == (
        True,
        "aten/src/b.cpp:3",
        "backend fallback",
    )
    assert parse_row("registered by RegisterOperators [math kernel]") == (False, "RegisterOperators", "math kernel")
    assert parse_row("registered at b.cpp:3") == (False, "b.cpp:3", "")
    assert parse_row("something new") is None


def test_a_text_of_an_unknown_form_is_kept():
    assert read_row("CPU", "something new").kind == "something new"
    assert read_row("CPU", "registered at /a/b.cpp:3 [of a new kind]").meaning == "of a kind that is not known here"
    found = read_table(
        "x", torch_layout(), {"Brandnew": "registered at a.cpp:1 [kernel]", "CPU": "registered at b [kernel]"}, ""
    )
    assert [row.key for row in found] == ["CPU", "Brandnew"]


def test_operators_are_asked_for_by_name_or_object_and_wrong_ones_refused():
    assert xray.table(torch.ops.aten.add.Tensor) == xray.table("aten::add.Tensor") == xray.table("add.Tensor")
    assert xray.table("add").op == "aten.add.Tensor"
    with pytest.raises(ValueError, match="table: 'pow' means several operators"):
        xray.table("pow")
    with pytest.raises(ValueError, match="did you mean"):
        xray.table("sofmax")
    with pytest.raises(TypeError, match="table: int is no operator"):
        xray.table(3)


def test_mini_operators_have_the_same_rows():
    found = xray.table(mini.ops.aten.add.Tensor)
    assert found.op == "aten.add.Tensor"
    assert (found["CPU"].kind, found["AutogradCPU"].kind, found["AutocastCPU"].fallthrough) == (
        "kernel",
        "autograd kernel",
        True,
    )
    assert found["CPU"].file == "glassbox/mini/aten/native/pointwise.py"
    assert xray.table(mini.ops.aten.relu).op == "aten.relu.default"
    with pytest.raises(ValueError, match=r"aten\.add means several operators; give one of aten\.add\.Tensor"):
        xray.table(mini.ops.aten.add)
    with pytest.raises(TypeError, match="Tensor is no operator; give one such as mini"):
        xray.table(mini.ones(3))


def test_a_table_is_a_table():
    found = xray.table("relu")
    assert len(found.shown()) == len(found.groups()) < len(found.rows()) == len(found)
    assert found.to_markdown().startswith("| keys | kernel | from | place |")
    assert "<summary>what was registered</summary>" in found._repr_html_()
    assert sum(len(group) for group in found.groups()) == len(found)


def test_a_row_that_only_refuses_has_its_kind():
    with torch.library._scoped_library("glassbox_both", "DEF") as lib:
        lib.define("half(Tensor x) -> Tensor")
        for key in ("CompositeImplicitAutograd", "SparseCPU"):
            lib.impl("half", lambda x: x, key)
        row = xray.table("glassbox_both::half")["AutogradOther"]
    assert (row.kind, row.file, row.line) == ("ambiguous autogradother", "", None)
    assert "exclude each other here" in row.meaning
