"""Facts about observe: what went through a module, in numbers that NumPy agrees with, and nothing changed or left."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from glassbox import mini, xray
from glassbox.records import text_table

from .models import MODELS, step_of


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    module = nn.modules.module
    assert not module._global_forward_hooks
    assert not module._global_forward_pre_hooks
    assert not module._global_forward_hooks_with_kwargs


class Gives(nn.Module):
    """A module that gives what it was made with."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.value


def output_of(value: Any) -> Any:
    module = Gives(value)
    (call,) = xray.observe(module, module)
    return call


def test_a_layer_within_a_model():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    nn.init.constant_(model[0].weight, 1.0)
    nn.init.zeros_(model[0].bias)
    x = torch.tensor([[1.0, 2.0], [-3.0, 1.0]])
    seen = xray.observe(model[1], model, x)
    assert str(seen) == (
        "ReLU was called 1 time\n"
        "call  tensor  type       mean  std  min  max  NaN  Inf  zeros\n"
        "1     input   f32[2, 2]  0.5   2.5  -2   3    0    0    0.0%\n"
        "1     output  f32[2, 2]  1.5   1.5  0    3    0    0    50.0%"
    )
    assert torch.equal(seen.result, model(x))


@pytest.mark.parametrize(
    "values",
    [
        torch.linspace(-3, 5, 24).view(4, 6),
        torch.tensor([1.0, math.nan, math.inf, -math.inf, 0.0, 4.0]),
        torch.tensor([60000.0, 60000.0, -1.0], dtype=torch.float16),
        torch.tensor([1.5, 0.0, 3.0], dtype=torch.bfloat16),
        torch.tensor([[1, 0, 5]], dtype=torch.int64),
        torch.tensor([True, False, True]),
        torch.tensor([3 + 4j, 0j]),
        torch.tensor(7.0),
        torch.tensor([0.1, 1e30], dtype=torch.float64),
    ],
    ids=lambda value: str(value.dtype),
)
def test_the_numbers_are_numpys(values):
    (stats,) = output_of(values).outputs
    plain = values.double().numpy() if not values.is_complex() else np.abs(values.numpy())
    finite = plain[np.isfinite(plain)]
    assert (stats.nan, stats.inf) == (np.isnan(plain).sum(), np.isinf(plain).sum())
    assert stats.zeros == pytest.approx((plain == 0).mean())
    for name in ("mean", "std", "min", "max"):
        assert getattr(stats, name) == pytest.approx(getattr(finite, name)(), rel=1e-12)


def test_what_has_no_numbers_says_why():
    with FakeTensorMode():
        fake = torch.ones(2, 3)
    for value, note in ((fake, "no data"), (torch.ones(2, device="meta"), "no data"), (torch.ones(0, 3), "empty")):
        (stats,) = output_of(value).outputs
        assert stats.note == note
        assert stats.mean is stats.zeros is None
    (stats,) = output_of(torch.tensor([math.nan])).outputs
    assert (stats.mean, stats.nan, stats.zeros) == (None, 1, 0.0)


@pytest.mark.filterwarnings("ignore:Sparse CSR", "ignore:The PyTorch API of nested", "ignore:torch.quantize_per_tensor")
def test_unusual_tensors_are_looked_at_as_far_as_they_can_be():
    cases = [
        (torch.eye(3).to_sparse(), 1.0, "sparse: of the values that it holds"),
        (torch.eye(2).to_sparse_csr(), 0.5, "sparse_csr"),
        (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), 1.0, "nested: of all its tensors"),
        (torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8), 1.0, "quantized"),
    ]
    for value, mean, note in cases:
        (stats,) = output_of(value).outputs
        assert (stats.mean, stats.note) == (mean, note)


def test_inside_vmap_the_shape_is_seen_and_the_rest_is_explained():
    layer = nn.Linear(2, 2)
    (call,) = xray.observe(layer, lambda: torch.vmap(layer)(torch.ones(3, 2)))
    assert call.outputs[0].shape == (2,)
    assert call.outputs[0].mean is None
    assert "vmap" in call.outputs[0].note


def test_outputs_of_every_structure():
    class Pair(NamedTuple):
        left: torch.Tensor
        right: int

    one = torch.ones(1)
    cases: list[tuple[Any, list[str], list[str]]] = [
        (one, ["output"], []),
        ((one, (one, 3)), ["output[0]", "output[1][0]"], ["int"]),
        ({"a": one, "b": [one]}, ["output['a']", "output['b'][0]"], []),
        (Pair(one, 2), ["output.left"], ["int"]),
        (None, [], ["None"]),
        ("text", [], ["str"]),
        (nn.utils.rnn.pack_sequence([one]), ["output.data", "output.batch_sizes"], ["None", "None"]),
    ]
    for value, names, others in cases:
        call = output_of(value)
        assert [each.name for each in call.outputs] == names
        assert list(call.others) == others


def test_inputs_by_position_and_by_name():
    module = Gives(None)
    (call,) = xray.observe(module, module, torch.ones(1), 5, mask=torch.zeros(2))
    assert [each.name for each in call.inputs] == ["input[0]", "input['mask']"]
    assert call.others == ("None",)
    assert text_table(xray.observe(module, module, torch.ones(1)).shown()).splitlines() == [
        "call  tensor  type    mean  std  min  max  NaN  Inf  zeros",
        "1     input   f32[1]  1     0    1    1    0    0    0.0%",
        "1     output  None",
    ]


def test_an_input_is_looked_at_before_it_is_overwritten():
    layer = nn.ReLU(inplace=True)
    (call,) = xray.observe(layer, layer, torch.tensor([-1.0, 1.0]))
    assert (call.inputs[0].min, call.outputs[0].min) == (-1.0, 0.0)


def test_each_call_counts():
    layer = nn.Linear(1, 1)
    seen = xray.observe(layer, lambda: [layer(torch.full((1, 1), float(k))) for k in range(3)])
    assert [(call.nr, call.inputs[0].mean) for call in seen] == [(1, 0.0), (2, 1.0), (3, 2.0)]
    assert seen.caption() == "Linear was called 3 times"


def test_a_module_that_is_not_called_says_so():
    seen = xray.observe(nn.Linear(1, 1), lambda: 5)
    assert (len(seen), seen.result, str(seen)) == (0, 5, "Linear was not called")
    assert seen.rows() == []


def test_modules_inside():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1)))
    x = torch.ones(1, 2)
    everything = xray.observe(model, model, x, inside=True)
    assert [call.module for call in everything] == [
        "Sequential",
        "Sequential.0",
        "Sequential.1",
        "Sequential.1.0",
        "Sequential.1.1",
    ]
    assert everything.caption() == "Sequential was called 1 time; 4 calls of modules inside of it"
    some = xray.observe(model, model, x, inside="1.*")
    assert [call.module for call in some] == ["Sequential.1.0", "Sequential.1.1"]


def test_where_a_nan_begins():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1)), nn.Tanh())
    with torch.no_grad():
        model[1][1].bias[0] = math.nan
    seen = xray.observe(model, model, torch.ones(1, 2), inside=True)
    call, stats = seen.first_bad()
    assert (call.module, stats.nan) == ("Sequential.1.1", 1)
    assert seen.caption().endswith("NaN or Inf first in output of Sequential.1.1, call 1: 1 NaN, 0 Inf")
    fed = xray.observe(model[2], model[2], torch.full((1, 2), math.nan))
    assert fed[0].outputs[0].is_bad
    assert fed.first_bad() is None


def test_a_call_that_raised_and_was_caught():
    class Breaks(nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    module = Breaks()

    def program():
        try:
            module(torch.ones(1))
        except ValueError:
            return "caught"

    seen = xray.observe(module, program)
    assert seen.result == "caught"
    assert seen[0].raised
    assert seen.rows()[-1]["type"] == "raised"


@pytest.mark.parametrize("pattern", ["*", "1.*", "Sequential.1.*", "Sequential", "Sequential*", "Net.1.*", "*.0", ""])
def test_a_pattern_is_a_path_or_what_the_record_prints(pattern):
    model = nn.Sequential(nn.ReLU(), nn.Sequential(nn.ReLU(), nn.Tanh()))
    seen = xray.observe(model, model, torch.ones(1), inside=pattern)
    below = ["Sequential.0", "Sequential.1", "Sequential.1.0", "Sequential.1.1"]
    assert [call.module for call in seen] == {
        "*": below,
        "1.*": below[2:],
        "Sequential.1.*": below[2:],
        "Sequential": ["Sequential"],
        "Sequential*": ["Sequential", *below],
        "*.0": ["Sequential.1.0"],
    }.get(pattern, [])


def test_an_exception_passes_and_takes_the_hooks_along():
    layer = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        xray.observe(layer, layer, torch.ones(1, 3))


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_are_the_same_bits(name):
    model, step = step_of(name)
    plain = step()
    state = torch.get_rng_state()
    next_node = torch._C._autograd._get_sequence_nr()
    step()
    nodes = torch._C._autograd._get_sequence_nr() - next_node
    next_node = torch._C._autograd._get_sequence_nr()
    seen = xray.observe(model, step, inside=True)
    assert torch._C._autograd._get_sequence_nr() - next_node == nodes
    assert all(torch.equal(a, b) for a, b in zip(plain, seen.result, strict=True))
    assert torch.equal(torch.get_rng_state(), state)
    assert len(seen) > 0


def test_a_log_does_not_see_the_looking():
    model, step = step_of("convnet")
    with xray.op_log() as plain:
        step()
    with xray.op_log() as observed:
        xray.observe(model, step, inside=True)
    assert observed.names() == plain.names()


def test_the_fast_path_of_a_transformer_stays_what_it_is():
    """It asks for hooks on its modules; so there are none, and its inner modules are not called."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with torch.no_grad(), xray.op_log() as log:
        seen = xray.observe(layer, layer, torch.ones(1, 3, 8), inside=True)
    assert "aten._transformer_encoder_layer_fwd.default" in log.names()
    assert [call.module for call in seen] == ["TransformerEncoderLayer"]


def test_modes_of_autograd_and_autocast_stay_on():
    layer = nn.Linear(2, 2)
    found = []

    def program():
        with torch.autocast("cpu"):
            found.append(layer(torch.ones(1, 2)))
            found.append(torch.ones(2, 2) @ torch.ones(2, 2))

    seen = xray.observe(layer, program)
    assert [each.dtype for each in found] == [torch.bfloat16, torch.bfloat16]
    assert found[0].requires_grad
    assert seen[0].outputs[0].dtype == "bfloat16"
    with torch.inference_mode():
        assert len(xray.observe(layer, layer, torch.ones(1, 2))) == 1
        assert torch.is_inference_mode_enabled()


@pytest.mark.filterwarnings("ignore:Using `torch.compile.module.`")
def test_compiled_code_runs_no_hooks_and_the_record_says_so():
    graphs = []

    def backend(graph, example):
        graphs.append([node.target for node in graph.graph.nodes if node.op == "call_function"])
        return graph.forward

    model, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(1, 2)
    compiled = torch.compile(model, backend=backend)
    compiled(x)
    seen = xray.observe(model[0], compiled, x)
    assert str(seen) == "Linear was not called; a function of torch.compile runs no hooks"
    torch.compiler.reset()
    xray.observe(model[0], torch.compile(model, backend=backend), x)
    warm, cold = graphs
    assert warm == cold


def test_modules_of_the_mini_framework():
    model = mini.nn.Sequential(mini.nn.Linear(2, 2), mini.nn.ReLU())
    twin = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with torch.no_grad():
        for theirs, ours in zip(twin.parameters(), model.parameters(), strict=True):
            theirs.copy_(torch.tensor(ours.tolist()))
    x = [[1.0, -2.0], [0.5, 3.0]]
    ours = xray.observe(model, model, mini.tensor(x), inside=True)
    theirs = xray.observe(twin, twin, torch.tensor(x), inside=True)
    assert str(ours) == str(theirs)
    assert not model._forward_hooks
    assert not model[0]._forward_pre_hooks


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((torch.ones(1), print), "observe: Tensor is no module"),
        ((nn.ReLU(), 3), "observe: int cannot be called"),
    ],
)
def test_bad_arguments(args, says):
    with pytest.raises(TypeError, match=says):
        xray.observe(*args)
    with pytest.raises(TypeError, match="inside is a int"):
        xray.observe(nn.ReLU(), print, inside=3)
