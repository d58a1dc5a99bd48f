"""Facts about the yaml files in the wheel: every entry is found and read, and says what the generator makes of it."""

import re
from pathlib import Path

import pytest
import torch
import torchgen
import yaml

from glassbox import mini, xray
from glassbox.xray import TorchInternalsError, _torch_internals
from glassbox.xray._entry_words import TAG_NOTES
from glassbox.xray._schema_words import split_schema
from glassbox.xray._yaml_sources import of_torch, parse

PACKAGED = Path(torchgen.__path__[0]) / "packaged"


def told(record):
    """What a record says in the end."""
    return record.rows()[-1]["meaning"]


def test_the_wheel_holds_2585_entries():
    """On 2.14.1; another version has another number, and every entry is cut out of the text all the same."""
    text = _torch_internals.native_functions_yaml()
    count = len(re.findall(r"^- func:", text, flags=re.M))
    assert len(of_torch().native) == count
    if torch.__version__.startswith("2.14.1"):
        assert count == 2585


def test_entries_that_are_cut_say_what_the_whole_file_says():
    whole = yaml.load(_torch_internals.native_functions_yaml(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    names = [entry["func"].partition("(")[0] for entry in whole]
    assert list(of_torch().native) == names
    for name, entry in list(zip(names, whole, strict=True))[::7]:
        assert parse(of_torch().native[name]) == entry


def test_every_schema_of_the_file_comes_apart_and_together_again():
    for name, text in of_torch().native.items():
        schema = re.search(r"func: (.*)", text)[1]
        found, arguments, returns = split_schema(schema)
        parts, keyword = [], False
        for each in arguments:
            if each.keyword and not keyword:
                parts.append("*")
                keyword = True
            parts.append(str(each))
        results = ", ".join(map(str, returns))
        joined = f"{found}({', '.join(parts)}) -> {results if len(returns) == 1 else f'({results})'}"
        assert joined.replace(" ", "") == schema.strip().replace(" ", "")
        assert found == name
        assert all(each.meaning for each in (*arguments, *returns))


def test_the_entry_of_add():
    add = xray.native_function("add.Tensor")
    assert add.schema == "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert add.variants == ("function", "method")
    assert add.tags == ("core", "pointwise")
    assert add.field("structured_delegate") == "add.out"
    assert add.kernel("SparseCPU") == "add_sparse"
    assert add.kernel("MkldnnCPU") == "mkldnn_add"
    assert (add.kind, add.delegate.kind) == ("delegates", "structured")
    assert add.delegate.field("structured_inherits") == "TensorIteratorBase"
    assert add.delegate.field("ufunc_inner_loop").startswith("Generic: add (AllAndComplex")
    assert add.kernel("MPS") == "add_out_mps"
    assert "CompositeExplicitAutogradNonFunctional" in told(add)
    assert add.text.startswith("- func: add.Tensor(")


def test_the_inner_loop_of_add_stands_in_add_out():
    assert xray.native_function("add.Tensor").field("ufunc_inner_loop") == ""
    assert xray.native_function("add.out").field("ufunc_inner_loop")


def test_the_entry_of_relu_as_it_prints():
    lines = [" | ".join(re.split(r"  +", line)) for line in str(xray.native_function("relu")).splitlines()]
    assert lines[:10] == [
        "relu in native_functions.yaml",
        "part | says | meaning",
        "func | relu(Tensor self) -> Tensor",
        "argument self | Tensor self | a tensor",
        "returns | Tensor | a tensor",
        "device_check | NoCheck | whether the generated code checks that all tensors are on one device; NoCheck leaves "
        "that",
        " | open",
        "variants | function, method | in Python as torch.relu(...) and tensor.relu(...)",
        "tags | [core, pointwise] | core: part of the core ATen operators, to which exported programs are reduced; "
        "pointwise:",
        " | each element of the result depends on one element of each input, after broadcasting",
    ]
    said = xray.native_function("relu").rows()[-1]["meaning"]
    assert said.startswith("Only the backends in dispatch have kernels; any other fails.")


def test_no_dispatch_means_composite_implicit_and_the_table_says_so_too():
    for name, text in list(of_torch().native.items())[::23]:
        found = xray.native_function(f"aten::{name}")
        if found.kind == "composite implicit":
            assert "dispatch" not in parse(text) or found.kernel("CompositeImplicitAutograd")
            assert xray.table(f"aten::{name}").registered("CompositeImplicitAutograd") is not None, name


def test_dispatch_keys_of_an_entry_have_registrations():
    cuda = {"CUDA"} if torch.version.cuda is not None else set()
    built = cuda | {"CPU", "Meta", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "SparseCPU", "MkldnnCPU"}
    for name in list(of_torch().native)[::31]:
        found, table = xray.native_function(f"aten::{name}"), xray.table(f"aten::{name}")
        for keys, _ in found.dispatch:
            for key in built & set(keys):
                assert table.registered(key) is not None, (name, key)


def test_annotations_in_words():
    meanings = {each.name: each.meaning for each in xray.native_function("add.out").arguments}
    assert meanings["out"] == "a tensor; written to (marked a)"
    chunk = xray.native_function("chunk")
    assert chunk.arguments[0].meaning == "a tensor; views of it may be in the results (set a)"
    assert chunk.returns[0].meaning == "a list of tensors; a view of the argument that is marked a too"
    linear = xray.native_function("linear")
    assert (linear.arguments[2].meaning, linear.arguments[2].default) == ("a tensor, or None", "None")


def test_every_tag_and_line_of_the_file_is_known():
    tags, lines = set(), set()
    for text in of_torch().native.values():
        entry = parse(text)
        listed = entry.get("tags", [])
        tags |= set(listed if isinstance(listed, list) else [listed])
        lines |= set(entry)
    assert tags <= set(TAG_NOTES)
    explained = {"func", "dispatch", "variants", "tags", "structured_delegate"}
    for name in ("add.out", "convolution", "cat.out", "linalg_solve", "max_pool2d_with_indices", "zeros"):
        explained |= set(dict(xray.native_function(name).notes))
    assert {"structured", "structured_inherits", "precomputed", "autogen", "python_module"} <= explained


def test_operators_without_an_entry_of_their_own():
    out = xray.native_function("convolution.out")
    assert (out.kind, out.generated_by, out.text) == ("generated", "convolution", "")
    assert told(out) == (
        "The generator makes convolution.out by itself, since the entry of convolution lists it under autogen: its "
        "kernel calls convolution and copies the result into out."
    )
    prim = xray.native_function("prims::convert_element_type")
    assert prim.kind == "absent"
    assert told(prim).startswith("It belongs to the namespace prims, not to aten: defined at torch/_")
    old = xray.native_function("quantized_lstm.input_legacy")
    assert re.fullmatch(r"PyTorch defines it elsewhere: defined at aten/src/ATen/native/RNN\.cpp:\d+\.", told(old))


def test_every_operator_of_aten_gets_an_answer():
    for name in sorted(torch._C._dispatch_get_all_op_names())[::5]:
        if not name.startswith("aten::"):
            continue
        found, gradient = xray.native_function(name), xray.derivative(name)
        assert found.text or told(found)
        assert gradient.backward or gradient.reason, name


def test_the_derivative_of_add():
    lines = [" | ".join(re.split(r"  +", line)) for line in str(xray.derivative("add.Tensor")).splitlines()]
    assert lines == [
        "add.Tensor in derivatives.yaml: its node is AddBackward0",
        "part | says | keeps | meaning",
        "gradient of self | handle_r_to_c(self.scalar_type(), grad) | self.scalar_type()",
        "gradient of other | handle_r_to_c(other.scalar_type(), maybe_multiply(grad, alpha.conj())) | "
        "alpha, other.scalar_type()",
        "tangent of result | self_t + maybe_multiply(other_t, alpha)",
    ]
    assert xray.derivative("add.Tensor").saved == ("alpha",)


def test_linear_and_element_wise_tangents_are_explained():
    exp, total = xray.derivative("exp").forward[0], xray.derivative("sum").forward[0]
    assert (exp.formula, exp.meaning[:36]) == ("auto_element_wise", "the function works element by elemen")
    assert (total.formula, total.meaning[:22]) == ("auto_linear", "the function is linear")


def test_mul_keeps_both_operands_and_exp_its_result():
    assert xray.derivative("mul.Tensor").saved == ("other", "self")
    assert xray.derivative("exp").saved == ("result",)


def test_results_without_a_gradient():
    assert xray.derivative("_linalg_det").differentiable == ("True", "False", "False")
    assert xray.derivative("any").reason == "No result has a gradient, so no node is made."
    assert xray.derivative("isnan").constant == ("self",)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("conv2d", "It is CompositeImplicitAutograd: it calls operators that have derivatives"),
        ("argmax", "The generator lists it among those whose result has no gradient"),
        ("randn", "It takes no tensor"),
        ("add.out", "It writes to out: autograd refuses"),
        ("gelu_backward.grad_input", "It writes to out: autograd refuses"),
        ("equal", "It returns no tensor"),
        ("_foreach_add.List", "A foreach operator"),
        ("prims::sin", "It is not of aten"),
    ],
)
def test_why_an_operator_has_no_formula(name, reason):
    found = xray.derivative(name)
    assert (found.entry, found.backward, found.node) == ("", (), "")
    assert found.reason.startswith(reason)


def test_a_formula_that_nobody_wrote_raises_in_backward():
    x = torch.ones(3, requires_grad=True)
    assert xray.derivative("floor_divide").reason.startswith("Nobody wrote one: where an argument requires grad")
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        torch.floor_divide(x, 2.0).sum().backward()
    found = xray.derivative("geqrf")
    assert found.backward[0].meaning == "not written: backward raises, saying so"


def test_an_autograd_kernel_that_is_written_by_hand_is_named():
    for name in ("copy_", "detach", "detach_"):
        assert re.fullmatch(
            r"Its autograd kernel is written by hand: torch/csrc/autograd/VariableTypeManual\.cpp:\d+\.",
            xray.derivative(name).reason,
        )


def test_an_empty_dispatch_line_registers_nothing():
    found = xray.native_function("_nested_get_values")
    assert found.kind == "no kernel"
    assert xray.table("_nested_get_values").registered("CompositeImplicitAutograd") is None


def test_an_in_place_operator_has_the_functional_ones_entry_and_a_copy_the_views():
    found = xray.derivative("add_.Tensor")
    assert (found.entry, found.backward) == ("add.Tensor", xray.derivative("add.Tensor").backward)
    assert xray.derivative("view_copy").node == "ViewBackward0_copy"
    assert xray.derivative("acosh_").entry == "acosh_"


def test_a_composite_with_a_formula_says_for_which_keys_it_counts():
    assert xray.derivative("linear").reason.endswith("the formula counts for AutogradNestedTensor.")


def nodes():
    a, b = torch.rand(3, 3, requires_grad=True), torch.rand(3, 3, requires_grad=True)
    return {
        "add.Tensor": a + b,
        "mul.Tensor": a * b,
        "mul.Scalar": torch.ops.aten.mul.Scalar(a, 2),
        "div.Tensor": a / b,
        "exp": a.exp(),
        "tanh": a.tanh(),
        "relu": a.relu(),
        "sigmoid": a.sigmoid(),
        "mm": a.mm(b),
        "addmm": torch.addmm(a, a, b),
        "sum": a.sum(),
        "sum.dim_IntList": a.sum(1),
        "mean.dim": a.mean(1),
        "pow.Tensor_Scalar": a**3,
        "log": a.log(),
        "max.dim": a.max(1).values,
        "_softmax": a.softmax(1),
        "_log_softmax": a.log_softmax(1),
        "view": a.view(9),
        "transpose.int": a.transpose(0, 1),
        "select.int": a[0],
        "where.self": torch.where(a > 0, a, b),
        "cumsum": a.cumsum(0),
        "bmm": torch.bmm(a[None], b[None]),
        "convolution": torch.conv2d(a[None, None], b[None, None]),
        "native_layer_norm": torch.layer_norm(a, (3,)),
        "clamp": a.clamp(0, 1),
        "sqrt": a.sqrt(),
        "gather": a.gather(0, torch.zeros(1, 1, dtype=torch.long)),
    }


def test_formulas_tell_the_class_of_the_node_and_the_tensors_that_it_really_saves():
    for name, result in nodes().items():
        node, found = result.grad_fn, xray.derivative(f"aten::{name}")
        assert found.node == node.name(), name
        kept = {each.removeprefix("_saved_") for each in dir(node) if each.startswith("_saved_")}
        # A node that has something to keep for one gradient keeps nothing more than its formulas name.
        assert set(found.saved) <= kept, name
        facts = kept - set(found.saved)
        assert len(facts) <= sum(len(formula.facts) for formula in found.backward), (name, facts)


@pytest.mark.slow
def test_what_formulas_keep_is_what_the_generator_says_for_every_entry(full):
    if not full:
        pytest.skip("the generator reads for some ten seconds; --full does it")
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    files = "autograd/derivatives.yaml", "ATen/native/native_functions.yaml", "ATen/native/tags.yaml"
    infos, _ = load_derivatives(*(str(PACKAGED / file) for file in files))
    assert len(infos) > 600
    for schema, by_key in infos.items():
        found = xray.derivative(f"aten::{schema.name}")
        info = by_key.get("Default") or next(iter(by_key.values()))
        assert found.node == (info.op or ""), schema.name
        for key, each in by_key.items():
            for theirs in each.derivatives:
                mine = next(f for f in found.backward if (f.key, f.of) == (key, tuple(theirs.var_names)))
                names = {
                    str(getattr(s.nctype.name, "name", s.nctype.name))
                    for s in (*theirs.saved_inputs, *theirs.saved_outputs)
                }
                assert set(mine.saved) <= names, schema.name
                assert len(names) == len(mine.saved) + len(mine.facts), (schema.name, names, mine)


def test_an_entry_is_found_without_parsing_the_file(monkeypatch):
    xray.native_function("add.Tensor")
    parsed = []
    real = yaml.load
    monkeypatch.setattr(yaml, "load", lambda text, **kwargs: (parsed.append(len(text)), real(text, **kwargs))[1])
    xray.native_function("mul.Tensor")
    xray.derivative("exp")
    assert sum(parsed) < 6000


def test_a_wheel_without_the_files_is_one_sentence(monkeypatch, tmp_path):
    from glassbox.xray import _yaml_sources
    from glassbox.xray._torch_internals import packaged

    caches = packaged.native_functions_yaml, packaged.derivatives_yaml, _yaml_sources.of_torch
    monkeypatch.setattr(packaged, "_packaged", lambda: tmp_path)
    for each in caches:
        each.cache_clear()
    with pytest.raises(
        TorchInternalsError, match=r"has no native_functions\.yaml in torchgen, which this instrument reads"
    ):
        xray.native_function("add.Tensor")
    monkeypatch.undo()
    for each in caches:
        each.cache_clear()
    assert xray.native_function("add.Tensor").text


def test_the_mini_framework_has_entries_of_the_same_form():
    add = xray.native_function(mini.ops.aten.add.Tensor)
    assert (add.kind, add.delegate.kernel("CPU"), add.tags) == ("delegates", "add", ("core", "pointwise"))
    a = mini.ones(3, requires_grad=True)
    for op, result in ((mini.ops.aten.tanh, a.tanh()), (mini.ops.aten.mul.Tensor, a * a), (mini.ops.aten.sum, a.sum())):
        assert xray.derivative(op).node == result.grad_fn.name()
    assert xray.derivative(mini.ops.aten.mul.Tensor).saved == ("other", "self")


def test_entries_are_tables():
    found = xray.native_function("add.Tensor")
    assert found.to_markdown().startswith("| part | says | meaning |")
    assert "<summary>the entry</summary>" in found._repr_html_()
    assert "&lt;" not in found._repr_html_().partition("<pre")[0]
    assert "<details>" in xray.derivative("exp")._repr_html_()
    with pytest.raises(KeyError, match="it has one for: self, other"):
        xray.derivative("add.Tensor").formula("alpha")
