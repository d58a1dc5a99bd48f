"""What holds of lab 2 alone: its oracles ask PyTorch and leave it as it was; the framework runs on the solutions."""

import itertools
import subprocess
import sys

import pytest
import torch

from glassbox import mini
from glassbox.tasks.lab2 import pool, predicting, real, resolving

from .labs import LABS

LAB = next(lab for lab in LABS if lab.name == "lab2")
STATE = ("requires_grad", "no_grad", "inference_mode", "inference_tensor", "autocast", "mode", "vmap", "vmap twice")


def test_the_tasks_come_without_torch():
    code = "import sys, glassbox.tasks.lab2; print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip() == "False", ended.stderr


def test_hooks_leave_the_tables_as_they_were():
    before = torch._C._dispatch_dump_table("aten::absolute"), torch._C._dispatch_dump_table("aten::mm")
    for name in ("absolute", "mm"):
        predicting._hops_of.__wrapped__(name, frozenset(("autocast", "mode")))
    assert before == (torch._C._dispatch_dump_table("aten::absolute"), torch._C._dispatch_dump_table("aten::mm"))
    assert torch.is_autocast_enabled("cpu") is False


def test_autocast_is_as_it_was_after_a_plan():
    before = [(torch.is_autocast_enabled(name), torch.get_autocast_dtype(name)) for name in ("cpu", "cuda")]
    LAB.remembering["plan_casts"].oracle("fp32", "cuda", "bfloat16", (("cuda", "float16"),), None)
    assert before == [(torch.is_autocast_enabled(name), torch.get_autocast_dtype(name)) for name in ("cpu", "cuda")]


@pytest.mark.parametrize("key", ["CUDA", "XPU", "SparseCPU", "QuantizedCPU", "PrivateUse1"])
@pytest.mark.parametrize("registered", [(), ("CompositeImplicitAutograd",), ("Autograd", "CPU")])
def test_a_fallback_fills_a_row_in_pytorch_as_the_oracle_says(key, registered):
    """PyTorch's own fallbacks are fixed, so the oracle adds the case's by rule; here they are really registered."""
    fallbacks = torch.library.Library("_", "IMPL")
    fallbacks.fallback(lambda op, *args, **kwargs: None, key)
    try:
        resolving._rows.cache_clear()
        row = resolving._rows(registered).get(key)
    finally:
        fallbacks._destroy()
        resolving._rows.cache_clear()
    assert row == LAB.remembering["resolve_kernel"].oracle(key, registered, (key,))


def test_every_operator_in_every_state_is_predicted_by_the_solution(full):
    """No operator of the pool has hops that the task's words leave out."""
    predict = LAB.solved["predict_hops"]
    names = list(pool.OPERATORS) if full else ["sin", "absolute", "abs_", "fix_", "permute", "swapaxes", "randn", "cat"]
    states = [words for count in range(len(STATE) + 1) for words in itertools.combinations(STATE, count)]
    for name, state in itertools.product(names, states if full else states[::3]):
        case = (pool.call_of(name),), state
        if predicting._runs(case):
            assert predict(*case) == predicting._true_hops(*case), (name, state)


def test_pytorch_knows_the_names_of_most_keys():
    assert {(1, 1), (21, 1), (24, 0), (46, 0)} <= set(real.all_keys())
    assert len(real.all_keys()) > 80


def _steps():
    solved = LAB.solved
    steps = {task.piece: solved[task.function] for task in LAB.tasks if task.piece and task.function != "key_set"}
    return {**steps, "key_bits": lambda functionality, backend: solved["key_set"](((functionality, backend),))}


def _program():
    mini.manual_seed(0)
    layer = mini.nn.Linear(3, 2)
    x = mini.arange(12.0).view(4, 3)
    with mini.record() as seen:
        with mini.autocast("cpu"):
            loss = layer(x).square().mean()
        loss.backward()
        mapped = mini.vmap(lambda row: (row * 2).sum())(x)
        with mini.inference_mode():
            doubled = x.to("sim") + x.to("sim")
    hops = [(hop.depth, hop.op, hop.key) for hop in seen.hops]
    return hops, [each.tolist() for each in (layer.weight.grad, mapped, doubled.cpu())]


def test_the_framework_makes_the_same_hops_on_the_solutions():
    plain = _program()
    with mini.using(**_steps()):
        assert _program() == plain
    assert len(plain[0]) > 50
