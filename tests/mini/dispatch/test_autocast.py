"""Facts about autocast: which operators cast what to which dtype, the cache, and that it ends, as in PyTorch."""

from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.mini.aten.core.dispatcher import dispatcher
from glassbox.mini.modes.autocast import FP32, LOWER_PRECISION_FP, PROMOTE

from .programs import approx, log_of, numbers


def square(t: Any, dtype: str = "float32", grad: bool = False) -> Any:
    # No view, for only a leaf that is none is cast once per block.
    return t.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=getattr(t, dtype), requires_grad=grad)


def test_the_operators_with_an_autocast_kernel_are_torchs() -> None:
    for op in dispatcher.operators.values():
        if op.schema.namespace == "aten" and torch._C._dispatch_has_kernel(op.name):
            expected = torch._C._dispatch_has_kernel_for_dispatch_key(op.name, "AutocastCPU")
            assert op.has_kernel_for_dispatch_key("AutocastCPU") == expected, op.name
            assert op.has_kernel_for_dispatch_key("AutocastPrivateUse1") == expected, op.name


def nn(t: Any, name: str) -> Any:
    """An operator that is in nn.functional or in the package itself."""
    return getattr(t.nn.functional, name, None) or getattr(t, name)


CALLS = {
    "mm": lambda t, x: t.mm(x, x),
    "matmul": lambda t, x: x @ x,
    "bmm": lambda t, x: t.bmm(x.unsqueeze(0), x.unsqueeze(0)),
    "addmm": lambda t, x: t.addmm(x, x, x),
    "baddbmm": lambda t, x: t.baddbmm(x.unsqueeze(0), x.unsqueeze(0), x.unsqueeze(0)),
    "linear": lambda t, x: nn(t, "linear")(x, x),
    "conv2d": lambda t, x: t.conv2d(x.view(1, 1, 2, 2), x.view(1, 1, 2, 2)),
    "conv1d": lambda t, x: t.conv1d(x.unsqueeze(0), x.unsqueeze(0)),
    "prod": lambda t, x: x.prod(),
    "prod.dim_int": lambda t, x: x.prod(1),
    "cat": lambda t, x: t.cat([x, x.float()]),
    "stack": lambda t, x: t.stack([x.float(), x]),
    "cat of one dtype": lambda t, x: t.cat([x, x]),
    "mse_loss": lambda t, x: nn(t, "mse_loss")(x, x) if t is torch else t.ops.aten.mse_loss(x, x),
    "add": lambda t, x: x + x,
    "mul by a number": lambda t, x: x * 2,
    "softmax": lambda t, x: x.softmax(1),
    "sum": lambda t, x: x.sum(),
    "relu": lambda t, x: x.relu(),
    "mv": lambda t, x: t.mv(x, x[0]),
    "dot": lambda t, x: t.dot(x[0], x[0]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_an_operator_casts_as_torchs(name: str, dtype: str) -> None:
    logs, values = [], []
    for t in (torch, mini):

        def program(t: Any) -> None:
            x = square(t, dtype)
            with t.autocast("cpu", dtype=t.bfloat16):
                result = CALLS[name](t, x)
            values.append((str(result.dtype).rpartition(".")[2], numbers(result)))

        logs.append(log_of(t, program))
    assert logs[1] == logs[0]
    assert values[0][0] == values[1][0]
    assert values[1][1] == approx(values[0][1])


def test_a_matrix_product_is_two_casts_and_mm() -> None:
    def program(t: Any) -> None:
        a, b = square(t), square(t)
        with t.autocast("cpu", dtype=t.bfloat16):
            a @ b + a

    assert log_of(mini, program)[-4:] == log_of(torch, program)[-4:]
    assert [line.split("(")[0].split()[-1] for line in log_of(mini, program)[-4:]] == [
        "aten._to_copy.default",
        "aten._to_copy.default",
        "aten.mm.default",
        "aten.add.Tensor",
    ]


@pytest.mark.parametrize("cache", [True, False, None])
def test_a_weight_is_cast_once_per_block(cache: bool | None) -> None:
    def program(t: Any) -> None:
        x, w = square(t), square(t, grad=True)
        with t.autocast("cpu", cache_enabled=cache):
            y = x @ w
            y = y @ w
            with t.autocast("cpu"):
                y = y @ w
        with t.autocast("cpu"):
            y = y @ w
        y.sum().backward()

    log = log_of(mini, program)
    assert log == log_of(torch, program)
    forward = log[: next(nr for nr, line in enumerate(log) if "aten.ones_like" in line)]
    casts = sum("aten._to_copy" in line for line in forward)
    # x and w in the first block, w in the second; without the cache w for each of its four products.
    assert casts == (5 if cache is False else 3)


def test_a_cached_cast_shares_its_gradient() -> None:
    grads = []
    for t in (torch, mini):
        w = square(t, grad=True)
        with t.autocast("cpu"):
            (w @ w @ w).float().sum().backward()
        grads.append((numbers(w.grad), str(w.grad.dtype).rpartition(".")[2]))
    assert grads[0] == grads[1]


@pytest.mark.parametrize("first", ["no_grad", "enable_grad", "inference_mode"])
def test_a_cast_made_without_grad_does_not_hide_the_weights_gradient(first: str) -> None:
    logs = []
    for t in (torch, mini):
        w = square(t, grad=True)

        def program(t: Any, w: Any = w) -> None:
            with t.autocast("cpu"):
                with getattr(t, first)():
                    w @ w
                (w @ w).float().sum().backward()

        logs.append(log_of(t, program))
        assert w.grad is not None
    assert logs[1] == logs[0]


def test_blocks_nest_and_end() -> None:
    for t in (torch, mini):
        x = square(t)
        assert not t.is_autocast_enabled("cpu")
        with t.autocast("cpu"):
            assert t.is_autocast_enabled("cpu")
            with t.autocast("cpu", enabled=False):
                assert not t.is_autocast_enabled("cpu")
                assert (x @ x).dtype is t.float32
            assert (x @ x).dtype is t.bfloat16
        assert (x @ x).dtype is t.float32
        with pytest.raises(ZeroDivisionError), t.autocast("cpu"):
            raise ZeroDivisionError
        assert not t.is_autocast_enabled("cpu")


def test_it_decorates_functions() -> None:
    for t in (torch, mini):

        @t.autocast("cpu")
        def product(x: Any) -> Any:
            return x @ x

        assert product(square(t)).dtype is t.bfloat16
        assert not t.is_autocast_enabled("cpu")


def test_its_dtype_can_be_asked_for() -> None:
    for t in (torch, mini):
        assert t.get_autocast_dtype("cpu") is t.bfloat16


def test_a_dtype_it_cannot_do_switches_it_off_with_a_warning() -> None:
    for t in (torch, mini):
        with pytest.warns(UserWarning, match="target dtype is not supported|float64 is not supported"):
            block = t.autocast("cpu", dtype=t.float64)
        with block:
            assert (square(t) @ square(t)).dtype is t.float32


def test_unknown_devices_are_refused() -> None:
    for t in (torch, mini):
        with pytest.raises(RuntimeError, match="nonsense"):
            t.autocast("nonsense")
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
            t.autocast(5)


def test_the_simulated_device_has_one_of_its_own() -> None:
    x, y = square(mini), square(mini).to("sim")
    with mini.autocast("sim"):
        assert (y @ y).dtype is mini.bfloat16
        assert (x @ x).dtype is mini.float32
        assert mini.is_autocast_enabled("sim") and not mini.is_autocast_enabled("cpu")
    with mini.autocast("cpu"):
        assert (y @ y).dtype is mini.float32


def test_the_lists_name_operators_once() -> None:
    listed = [*LOWER_PRECISION_FP, *FP32, *PROMOTE]
    assert len(listed) == len(set(listed)) == 17


def test_its_hops_are_torchs() -> None:
    with mini.autocast("cpu"), mini.record() as seen:
        x = square(mini)
        x @ x
    text = str(seen.hops).splitlines()
    first = text.index("aten.matmul.default @ AutocastCPU [kernel]")
    assert text[first:] == [
        "aten.matmul.default @ AutocastCPU [kernel]",
        *2
        * [
            "  aten.to.dtype @ AutogradCPU [math kernel]",
            "    aten._to_copy.default @ AutogradCPU [autograd kernel]",
            "      aten._to_copy.default @ BackendSelect [kernel]",
            "        aten._to_copy.default @ CPU [kernel]",
        ],
        "  aten.matmul.default @ AutogradCPU [math kernel]",
        "    aten.mm.default @ AutogradCPU [autograd kernel]",
        "      aten.mm.default @ CPU [kernel]",
    ]
