"""Facts about hidden_copies: each copy that is made, with its line; asked for or not; and nothing changed or left."""

import copy
import inspect
import threading
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils.checkpoint import checkpoint

from glassbox import mini, xray
from glassbox.xray import copies

from .models import MODELS, step_of

HERE = "tests/xray/test_hidden_copies.py"
MODES = pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])


@pytest.fixture(autouse=True)
def _nothing_is_left():
    before = torch._C._dispatch_dump_table("aten::copy_")
    yield
    assert torch._C._dispatch_dump_table("aten::copy_") == before
    assert _get_current_dispatch_mode_stack() == []
    assert not nn.modules.module._global_forward_hooks


def line(function: Any, text: str) -> str:
    """The place of the line in a function's source that holds the text."""
    lines, first = inspect.getsourcelines(function)
    return f"{HERE}:{first + next(nr for nr, each in enumerate(lines) if text in each)}"


def found(record: Any) -> list[tuple[str, str, str, int, int]]:
    return [(site.place.rpartition(":")[2], site.called, site.why, site.times, site.nbytes) for site in record]


def bad_model(x, w):
    x.t().reshape(-1)
    x[:1].expand(64, 64).reshape(-1)
    torch.softmax(x.t(), 0)
    x + w
    torch.mm(x.repeat(1, 2)[:, ::2], x)
    torch.flatten(x.t())
    with torch.autocast("cpu"):
        x @ x


@MODES
def test_the_copies_of_a_bad_model(mode):
    with mode():
        x, w = torch.ones(64, 64), torch.ones(64, 64, dtype=torch.float64)
        record = xray.hidden_copies(bad_model, x, w)
    rows = sorted((site.place, site.called, site.why, site.times, site.nbytes) for site in record)
    assert rows == sorted(
        [
            (line(bad_model, "x.t().reshape"), "reshape", "strides [1, 64] to [64, 1]", 1, 16384),
            (line(bad_model, "x[:1].expand"), "reshape", "256 B expanded, repeated 64 times", 1, 16384),
            (line(bad_model, "torch.softmax"), "softmax", "strides [1, 64] to [64, 1]", 1, 16384),
            (line(bad_model, "x + w"), "+", "f32 to f64", 1, 32768),
            (line(bad_model, "torch.mm"), "mm", "strides [128, 2] to [64, 1]", 1, 16384),
            (line(bad_model, "torch.flatten"), "flatten", "strides [1, 64] to [64, 1]", 1, 16384),
            (line(bad_model, "x @ x"), "@", "f32 to bf16 under autocast", 2, 16384),
        ]
    )
    assert record.asked == ()
    assert (record.times, record.nbytes) == (8, 131072)
    assert record.caption() == "8 hidden copies, 131 kB, at 7 lines"
    assert record[0].nbytes == 32768
    assert record[0].source == "x + w"


def test_the_operator_that_a_mode_sees_is_named():
    x = torch.ones(4, 4)
    ops = {}
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            (site,) = xray.hidden_copies(lambda: x.t().reshape(-1))
        ops[mode] = site.op
    assert ops == {torch.no_grad: "aten.clone.default", torch.inference_mode: "aten.reshape.default"}


@MODES
def test_copies_that_are_asked_for_are_counted_and_not_listed(mode):
    def program():
        x.clone()
        x.t().contiguous()
        x.double()
        x.to(torch.float16)
        x.type(torch.int32)
        y.copy_(x)
        y[0] = x[1]
        copy.deepcopy(y)
        torch.empty(4, 4).copy_(x)
        nn.Linear(4, 4).half()
        torch.clone(x)

    with mode():
        x, y = torch.ones(4, 4), torch.ones(4, 4)
        record = xray.hidden_copies(program)
    assert record.sites == ()
    called = sorted(site.called for site in record.asked)
    assert called == sorted(
        ["clone", "contiguous", "double", "to", "type", "copy_", "[]=", "deepcopy", "copy_", "half", "clone"]
    )
    assert record.asked_rows()[0]["called"] == "double"
    assert record.caption().startswith("0 hidden copies, 0 B; 12 asked for, ")


def test_what_copies_nothing_is_not_found():
    def program():
        a.T @ b
        a.reshape(-1)
        a.contiguous()
        a.to(torch.float32)
        torch.flatten(a)
        a.expand(2, 3, 4).sum()
        torch.relu(a.t())

    a, b = torch.ones(3, 4), torch.ones(3, 5)
    assert xray.hidden_copies(program).sites == ()


def test_what_an_operator_writes_into_its_result_is_its_work():
    def program():
        torch.cat([a, a])
        torch.stack([a, a])
        a.repeat(2, 2)
        nn.functional.pad(a, (1, 1))
        a.masked_fill(a > 0, 1.0)
        a.roll(1)
        torch.add(a, a, out=out)
        a.index_add(0, index, a[:1])
        a.scatter(0, index[:, None], 5.0)
        a.tril()
        a.diag_embed()

    a, out, index = torch.ones(4, 4), torch.empty(4, 4), torch.tensor([0])
    record = xray.hidden_copies(program)
    assert (record.sites, record.asked) == ((), ())


def test_numbers_among_operands_are_no_copies():
    x = torch.ones(4, dtype=torch.float16)
    assert xray.hidden_copies(lambda: (x > 0, x * 2.5, x.div_(3))).sites == ()


def test_einsum_linear_and_mean():
    a, w = torch.ones(2, 3, 4), torch.ones(5, 4, requires_grad=True)
    record = xray.hidden_copies(lambda: torch.einsum("bij,bkj->ik", a, a))
    assert record.nbytes == 2 * a.nbytes
    assert {site.called for site in record} == {"einsum"}
    assert all(site.within.startswith("torch/functional.py:") for site in record)
    (site,) = xray.hidden_copies(lambda: nn.functional.linear(a.transpose(0, 1), w))
    assert (site.called, site.types, site.within) == ("linear", ("f32[3, 2, 4]",), "")
    (site,) = xray.hidden_copies(lambda: torch.ones(4, dtype=torch.float16).mean())
    assert (site.called, site.why, site.op) == ("mean", "f16 to f32", "aten.mean.default")


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_a_kernel_that_rearranges_its_input():
    image, weight = torch.ones(1, 3, 8, 8).to(memory_format=torch.channels_last), torch.ones(2, 3, 3, 3)
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
        (site,) = xray.hidden_copies(lambda: nn.functional.conv2d(image, weight))
    assert (site.op, site.called, site.types) == ("aten.convolution.default", "conv2d", ("f32[2, 3, 3, 3]",))


def test_backward_copies_have_the_line_of_the_forward_call():
    def program():
        y = x.reshape(4, 4).t()
        z = y.sum(0, keepdim=True).expand(8, 4)
        loss = (z * 2).view(8, 4).sum()
        loss.backward()

    w = torch.ones(3, 4, requires_grad=True)
    v = torch.ones(2, 3)

    def mm():
        out = v @ w
        out.sum().backward()

    x = torch.ones(16, requires_grad=True)
    xray.hidden_copies(program)
    record = xray.hidden_copies(mm)
    (site,) = record
    assert site.phase == "backward"
    assert site.called == "MmBackward0"
    assert site.place == line(mm, "v @ w")
    assert site.why == "4 B expanded, repeated 8 times"


def test_modules_and_the_line_within_pytorch():
    torch.manual_seed(0)
    model = nn.Sequential(nn.MultiheadAttention(8, 2, batch_first=True))

    class Calls(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x)[0]

    del model
    record = xray.hidden_copies(Calls(), torch.ones(2, 3, 8))
    assert record.nbytes > 0
    assert {site.module for site in record} == {"attention"}
    assert {site.called for site in record} == {"attention"}
    assert {site.place for site in record} == {line(Calls, "return self.attention")}
    assert all(site.within.startswith("torch/nn/functional.py:") for site in record)
    assert any(site.within.endswith(" contiguous") for site in record)
    assert record.by_module() == {"attention": record.nbytes}
    assert list(record.by_line().values()) == [record.nbytes]


def test_a_line_that_copies_again_and_again_is_one_row():
    def program():
        for _ in range(5):
            x.t().reshape(-1)

    x = torch.ones(8, 8)
    (site,) = xray.hidden_copies(program)
    assert (site.times, site.nbytes, site.types) == (5, 5 * 256, ("f32[8, 8]",))


def test_lines_without_source_still_have_names():
    code = compile("def f(x):\n    return (x.t()\n        .reshape(-1)\n        + 1)\n", "<nowhere>", "exec")
    scope: dict[str, Any] = {}
    exec(code, scope)
    (site,) = xray.hidden_copies(scope["f"], torch.ones(2, 2))
    assert (site.place, site.called, site.source) == ("<nowhere>:3", "reshape", "")


@pytest.mark.parametrize("name", MODELS)
def test_real_models(name):
    """A step's copies are found, and those of its bytes that op_log knows are among them."""
    model, step = step_of(name)
    record = xray.hidden_copies(step)
    with xray.op_log() as log:
        step()
    known = sum(call.outputs[0].nbytes for call in log if call.effect == "copy" and call.name != "aten.detach.default")
    mode_level = sum(site.nbytes for site in (*record, *record.asked) if site.op.rpartition(".")[0] in copies.COPYING)
    assert mode_level == known
    assert all(site.place for site in record)


@pytest.mark.parametrize("name", MODELS)
@MODES
def test_outputs_and_gradients_are_the_same_bits(name, mode):
    model, step = step_of(name)
    outputs: list[Any] = []

    def forward():
        torch.manual_seed(3)
        out: Any = model(x)
        outputs.append(out[0] if isinstance(out, tuple) else out)

    x = torch.rand(MODELS[name][1])
    if mode is torch.enable_grad:
        plain, seen = step(), []
        xray.hidden_copies(lambda: seen.extend(step()))
        assert all(torch.equal(a, b) for a, b in zip(plain, seen, strict=True))
        return
    model.eval()
    with mode():
        forward()
        xray.hidden_copies(forward)
    assert torch.equal(*outputs)


def test_parameters_are_made_and_moved_as_ever():
    def program():
        layer = nn.Linear(2, 2).double()
        layer.load_state_dict({"weight": torch.zeros(2, 2), "bias": torch.zeros(2)})
        layer(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
        torch.optim.SGD(layer.parameters(), 0.1).step()
        made.append(layer)

    made: list[nn.Linear] = []
    xray.hidden_copies(program)
    assert made[0].bias.tolist() == pytest.approx([-0.1, -0.1])
    assert isinstance(made[0].weight, nn.Parameter)


def test_a_number_is_written_where_a_tensor_is_expected():
    x = torch.zeros(3)

    def program():
        x[0] = 2.5
        x[1:] = torch.tensor(3)
        x.copy_(torch.tensor(True)) if False else None

    xray.hidden_copies(program)
    assert x.tolist() == [2.5, 3.0, 3.0]


def test_an_exception_passes_and_takes_the_hook_along():
    with pytest.raises(RuntimeError, match="must match"):
        xray.hidden_copies(lambda: torch.ones(2).t().reshape(-1) + torch.ones(3))


def test_other_threads_are_not_listed():
    x = torch.ones(4, 4)

    def other():
        for _ in range(10):
            x.t().reshape(-1)

    def program():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        x.t().reshape(-1)

    (site,) = xray.hidden_copies(program)
    assert site.times == 1


def test_other_threads_are_not_listed_while_an_operator_is_at_work():
    x = torch.ones(4, 4)

    @torch.library.custom_op("glassbox_test::waits", mutates_args=())
    def waits(x: torch.Tensor) -> torch.Tensor:
        thread = threading.Thread(target=lambda: x.t().reshape(-1))
        thread.start()
        thread.join()
        return x + 1

    assert xray.hidden_copies(lambda: waits(x)).sites == ()


def test_a_source_that_is_broadcast_is_told_as_expanded():
    x, row = torch.ones(3, 4), torch.ones(4)
    record = xray.hidden_copies(lambda: (x.copy_(row), x.copy_(row[None])))
    (site,) = record.asked
    assert (site.why, site.times) == ("16 B expanded, repeated 3 times", 2)
    (site,) = xray.hidden_copies(lambda: x.copy_(torch.ones(3, 1))).asked
    assert site.why == "12 B expanded, repeated 4 times"


class Turns(nn.Module):
    def forward(self, x):
        return x.t().reshape(-1).view(x.shape)


class Stack(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(Turns(), nn.ReLU()) for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_layers_that_copy_alike_are_shown_as_one():
    record = xray.hidden_copies(Stack(12), torch.ones(3, 3))
    (row,) = record.shown()
    assert (row["module"], row["modules"], row["times"], row["bytes"]) == ("layers.*.0", 12, 12, "432 B")
    assert [row["bytes"] for row in record.rows()] == [36] * 12
    assert record.by_module() == {f"layers.{nr}.0": 36 for nr in range(12)}
    assert record.caption() == "12 hidden copies, 432 B, at 1 line"


def test_what_copies_in_another_way_or_elsewhere_stays_apart():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a0, self.a1, self.b = Turns(), Turns(), Turns()

        def forward(self, x, y):
            return self.a0(x), self.a1(y), self.b(x)

    record = xray.hidden_copies(Two(), torch.ones(2, 2), torch.ones(4, 4))
    assert [(row["module"], row["bytes"]) for row in record.shown()] == [("a1", "64 B"), ("a0", "16 B"), ("b", "16 B")]
    assert "modules" not in record.shown()[0]


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_what_has_no_line_of_python_is_called_by_what_was_looked_at():
    model = torch.jit.trace(Turns(), torch.ones(2, 2))
    (site,) = xray.hidden_copies(model, torch.ones(2, 2))
    assert (site.called, site.place) == (
        "Turns",
        line(test_what_has_no_line_of_python_is_called_by_what_was_looked_at, "xray.hidden_copies(model"),
    )
    script = torch.jit.trace(bad_script, torch.ones(2, 2))
    (site,) = xray.hidden_copies(script, torch.ones(2, 2))
    assert site.called == "bad_script"
    (site,) = xray.hidden_copies(torch.flatten, torch.ones(2, 2).t())
    assert site.called == "flatten"
    record = xray.hidden_copies(torch.clone, torch.ones(2, 2))
    assert (record.sites, record.asked[0].called) == ((), "clone")


def bad_script(x):
    return x.t().reshape(-1)


def test_the_phase_is_that_of_op_log():
    def program():
        y = checkpoint(lambda x: turns(x).sin(), x, use_reentrant=False)
        (y * 2).sum().backward()
        x.t().reshape(-1)

    turns, x = Turns(), torch.ones(3, 3, requires_grad=True)
    record = xray.hidden_copies(program)
    with xray.op_log() as log:
        program()
    phases = [call.phase for call in log if call.effect == "copy" and call.name == "aten.clone.default"]
    assert sorted(site.phase for site in record for _ in range(site.times) if "clone" in site.op) == sorted(phases)
    assert "backward" in phases and "forward" in phases


@pytest.mark.filterwarnings("ignore:Using `torch.compile.module.`")
def test_the_record_says_that_what_was_compiled_ran_eagerly():
    note = ("It is compiled; shown are the copies of its eager run.",)
    x = torch.ones(3, 3)
    inside = nn.Sequential(Turns())
    inside[0].compile(backend="eager")
    for compiled in (torch.compile(Turns(), backend="eager"), torch.compile(bad_script, backend="eager"), inside):
        record = xray.hidden_copies(compiled, x)
        assert (record.notes, record.times) == (note, 1)
        assert record.caption() == f"1 hidden copy, 36 B, at 1 line\n{note[0]}"
    assert xray.hidden_copies(Turns(), x).notes == ()


def test_it_reads_well():
    x = torch.ones(64, 64)
    record = xray.hidden_copies(lambda: (x.t().reshape(-1), x.clone()))
    rows = record.to_markdown().splitlines()
    assert rows[0] == "| bytes | times | line | called | why | op | type | module | phase | within | source |"
    assert rows[2].startswith(f"| 16.4 kB | 1 | {HERE}:")
    assert record.caption() == "1 hidden copy, 16.4 kB, at 1 line; 1 asked for, 16.4 kB"
    assert str(xray.hidden_copies(lambda: None)) == "0 hidden copies, 0 B"


def test_bad_arguments():
    with pytest.raises(TypeError, match="hidden_copies: int cannot be called"):
        xray.hidden_copies(3)
    with pytest.raises(TypeError, match="looks at torch only"):
        xray.hidden_copies(print, mini.ones(2))
